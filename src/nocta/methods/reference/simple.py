"""Reference methods that every comparison carries: they do not look at what they acquire.

All of them acquire for a given predictor and respect prices, fees, opening times, hard budgets
and both availability rules. `static` in particular is hard to beat.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort, even_rows
from nocta.core.errors import ConfigError
from nocta.core.operating_points import cost_targets, nearest_to_targets, spread_knob
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.methods.contract import Method, require_fitted, require_predictor
from nocta.methods.fixed import FirstVisitPolicy, FixedPlanPolicy, RandomPolicy
from nocta.methods.reference.greedy import GreedyOptions, GreedyPath, greedy_path, slot_blocks
from nocta.predictors.cross_fitted import OutOfFoldPredictor

ChooseOn = Literal["validation", "training"]


class _Reference(Method):
    """What the reference methods share: they are given a predictor and learn little else."""

    shares_predictor = True

    predictor_: Predictor
    open_slots_: NDArray[np.bool_]

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        self.predictor_ = require_predictor(self, predictor)
        self.open_slots_ = train.catalog.open_slots
        self.names_ = train.catalog.names
        self._choose(train, val, seed, progress)
        return self

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        """Choose, on validation as a rule; nothing to choose by default."""

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "predictor_")
        return [{}]

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "predictor_")
        return self._policy(setting)

    @abstractmethod
    def _policy(self, setting: dict[str, Any]) -> Policy: ...


class Nothing(_Reference):
    """Acquires nothing: what the context and the base rates give."""

    name = "nothing"

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(np.zeros_like(self.open_slots_), self.predictor_)


class Everything(_Reference):
    """Acquires all that is open, visit by visit, as long as the budget lasts."""

    name = "everything"

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(self.open_slots_, self.predictor_)


class Random(_Reference):
    """Acquires each open slot with the same probability.

    The setting is `{"probability": p}`; values are chosen to match the costs aimed at.
    """

    name = "random"

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        self.seed_ = seed

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "predictor_")
        draws = np.random.default_rng(self.seed_).random(val.recorded.shape)

        def cost_at(probability: float) -> float:
            return float(val.catalog.cost_of((draws < probability) & val.recorded).mean())

        knobs = spread_knob(
            cost_at,
            (1e-3, 1.0),
            cost_targets(val, n_points),
            n_evaluations=12 * n_points,
            tolerance=0.002,
        )
        return [{"probability": round(p, 6)} for p in knobs]

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return RandomPolicy(float(setting["probability"]), self.predictor_)


class _AlongPath(_Reference):
    """Methods that move along a path of growing plans, found on validation."""

    path_: GreedyPath

    def __init__(self, options: GreedyOptions | None = None) -> None:
        self.options = options

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        self.path_ = greedy_path(
            *self._judges(train, val),
            self._blocks(),
            seed=seed,
            options=self.options,
            progress=progress,
        )

    def _judges(self, train: Cohort, val: Cohort) -> tuple[Predictor, Cohort]:
        """Who predicts, and for whom, when plans are chosen."""
        return self.predictor_, val

    @abstractmethod
    def _blocks(self) -> NDArray[np.bool_]:
        """What is added at one step, `(b, L, M)`."""

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "path_")
        costs = self.path_.costs[1:]
        steps = 1 + nearest_to_targets(costs, _within(val, n_points, costs))
        return [{"n_slots": int(self.path_.plans[k].sum())} for k in steps]

    def _plan(self, setting: dict[str, Any]) -> NDArray[np.bool_]:
        sizes = self.path_.plans.sum(axis=(1, 2))
        step = np.searchsorted(sizes, int(setting["n_slots"]), side="right") - 1
        return np.asarray(self.path_.plans[step])


class Static(_AlongPath):
    """One set of slots for everybody, grown by greedy forward selection on validation.

    The setting is `{"n_slots": k}`: how many slots of the greedy order are acquired.

    Args:
        options: How much work the selection may do.
        choose_on: `"validation"`, or `"training"`: the training subjects, of whom there are more,
            each judged by a predictor that never saw it, where there is one.

    Example:
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> train, val = tiny_cohort(40).split((0.5, 0.5))
        >>> static = Static().fit(train, val, seed=0, predictor=RunningMeanPredictor(2))
        >>> [list(setting) for setting in static.settings(val, 2)]
        [['n_slots'], ['n_slots']]
    """

    name = "static"

    def __init__(
        self, options: GreedyOptions | None = None, choose_on: ChooseOn = "validation"
    ) -> None:
        super().__init__(options)
        self.choose_on: ChooseOn = choose_on

    def check_options(self) -> None:
        if self.choose_on not in ("validation", "training"):
            raise ConfigError(f"choose_on is '{self.choose_on}'; use 'validation' or 'training'.")

    def _judges(self, train: Cohort, val: Cohort) -> tuple[Predictor, Cohort]:
        if self.choose_on == "validation":
            return super()._judges(train, val)
        found = self.predictor_
        if found.out_of_fold is None:
            raise ConfigError(
                "choose_on='training' needs predictors that never saw the subjects they judge, and "
                "this one saw them all; use 'validation'."
            )
        rows = even_rows(len(train), (self.options or GreedyOptions()).max_subjects)
        return OutOfFoldPredictor(found.out_of_fold, rows), train.subset(rows)

    def _blocks(self) -> NDArray[np.bool_]:
        return slot_blocks(self.open_slots_)

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(self._plan(setting), self.predictor_, self.path_.priority)


class FirstVisit(_AlongPath):
    """Acquires at the first visit only: the best features there, in greedy order.

    The setting is `{"n_slots": k}`: how many features. A subject whose first visit yields
    nothing is asked at the next one.

    Args:
        options: How much work the selection may do.
    """

    name = "first-visit"

    def _blocks(self) -> NDArray[np.bool_]:
        first = np.zeros_like(self.open_slots_)
        first[int(self.open_slots_.any(axis=1).argmax())] = True
        return slot_blocks(self.open_slots_ & first)

    def _policy(self, setting: dict[str, Any]) -> Policy:
        features = np.asarray(self._plan(setting).any(axis=0))
        return FirstVisitPolicy(features, self.predictor_, self.path_.priority.min(axis=0))


@dataclass(frozen=True)
class _Rhythm:
    every: int
    plan: NDArray[np.bool_]
    priority: NDArray[np.float64]
    cost: float
    loss: float


class Periodic(_Reference):
    """A fixed set of features at every k-th visit, the best of its cost on validation.

    The setting is `{"every": k, "features": [names]}`. For each `k` features are added in greedy
    order; of all pairs of rhythm and set, those are kept that no cheaper one beats.

    Args:
        options: How much work the selection of features may do for each rhythm.
    """

    name = "periodic"

    rhythms_: list[_Rhythm]

    def __init__(self, options: GreedyOptions | None = None) -> None:
        self.options = options

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        found: list[_Rhythm] = []
        for every in _rhythms(len(self.open_slots_)):
            columns = self._visits(every) & self.open_slots_
            blocks = np.einsum("lm,mk->mlk", columns, np.eye(columns.shape[1], dtype=bool))
            blocks = blocks[blocks.any(axis=(1, 2))]
            if not len(blocks):
                continue
            path = greedy_path(
                self.predictor_, val, blocks, seed=seed, options=self.options, progress=progress
            )
            points = zip(path.plans[1:], path.costs[1:], path.losses[1:], strict=True)
            found += [
                _Rhythm(every, plan, path.priority, float(c), float(x)) for plan, c, x in points
            ]
        self.rhythms_ = _unbeaten(found)

    def _visits(self, every: int) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(self.open_slots_)) % every == 0)[:, None]

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "rhythms_")
        costs = np.array([r.cost for r in self.rhythms_])
        chosen = [
            self.rhythms_[i] for i in nearest_to_targets(costs, _within(val, n_points, costs))
        ]
        return [
            {
                "every": r.every,
                "features": [self.names_[m] for m in np.flatnonzero(r.plan.any(axis=0))],
            }
            for r in chosen
        ]

    def _policy(self, setting: dict[str, Any]) -> Policy:
        wanted = np.isin(self.names_, setting["features"])
        plan = self._visits(int(setting["every"])) & wanted & self.open_slots_
        priority = next((r.priority for r in self.rhythms_ if r.every == setting["every"]), None)
        return FixedPlanPolicy(plan, self.predictor_, priority)


def _rhythms(n_times: int) -> list[int]:
    """Every k up to 6, then ever wider steps, and once only."""
    wide = np.unique(np.geomspace(6, max(n_times, 6), 6).round().astype(int)).tolist()
    return [k for k in sorted({*range(1, 7), *wide, n_times}) if k <= n_times]


def _unbeaten(points: list[_Rhythm]) -> list[_Rhythm]:
    """Those with a lower loss than everything cheaper, cheapest first."""
    kept: list[_Rhythm] = []
    for point in sorted(points, key=lambda r: (r.cost, r.loss)):
        if not kept or point.loss < kept[-1].loss:
            kept.append(point)
    return kept


def _within(val: Cohort, n_points: int, costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost targets, squeezed into what a method can spend."""
    targets = cost_targets(val, n_points)
    reach = min(1.0, float(costs.max(initial=0.0)) / float(targets[-1]) if targets[-1] else 1.0)
    return targets * reach
