"""Reference methods: what they acquire does not depend on the values they see.

They acquire for a given predictor and respect prices, fees, opening times, hard budgets and both
availability rules. `static` is hard to beat.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort, even_rows
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.knob_search import search_knob
from nocta.core.operating_points import CurveEnds, mean_loss, spread_points
from nocta.core.options import read_options
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.methods.contract import Method, require_fitted, require_predictor
from nocta.methods.fixed import FirstVisitPolicy, FixedPlanPolicy, RandomPolicy
from nocta.methods.reference.greedy import GreedyOptions, GreedyPath, greedy_path, slot_blocks
from nocta.model.state import Arrays, State, nest, take_part
from nocta.predictors.cross_fitted import OutOfFoldPredictor
from nocta.predictors.registry import predictor_state, restore_predictor

ChooseOn = Literal["validation", "training"]


class Reference(Method):
    """What the reference methods share: a given predictor, and how they are saved.

    What `_choose` learned is saved by `_learned`, and read back by `_recall`.
    """

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
        """Choose, usually on validation; nothing to choose by default."""

    def _learned(self) -> State:
        return {}, {}

    def _recall(self, config: dict[str, Any], arrays: Arrays) -> None:
        """Inverse of `_learned`."""

    def state(self) -> State:
        config, arrays = self._learned()
        config |= {"arguments": self.arguments(), "names": list(self.names_)}
        arrays["open_slots"] = self.open_slots_
        return nest(config, arrays, predictor=predictor_state(self.predictor_))

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        out = cls(**config["arguments"])
        out.open_slots_, out.names_ = arrays["open_slots"], tuple(config["names"])
        out.predictor_ = restore_predictor(*take_part(config, arrays, "predictor"))
        out._recall(config, arrays)
        return out

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "predictor_")
        return [{}]

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "predictor_")
        return self._policy(setting)

    @abstractmethod
    def _policy(self, setting: dict[str, Any]) -> Policy: ...


class Nothing(Reference):
    """Acquires nothing: what the context and the base rates give."""

    name = "nothing"

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(np.zeros_like(self.open_slots_), self.predictor_)


class Everything(Reference):
    """Acquires all that is open, visit by visit, while the budget lasts."""

    name = "everything"

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(self.open_slots_, self.predictor_)


class Random(Reference):
    """Acquires each open slot with the same probability.

    The setting is `{"probability": p}`.
    """

    name = "random"

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        self.seed_ = seed

    def _learned(self) -> State:
        return {"seed": self.seed_}, {}

    def _recall(self, config: dict[str, Any], arrays: Arrays) -> None:
        self.seed_ = config["seed"]

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "predictor_")
        draws = np.random.default_rng(self.seed_).random(val.recorded.shape)

        def point_at(probability: float) -> tuple[float, float]:
            known = History.of(val, draws < probability)
            loss = mean_loss(val.labels, self.predictor_.predict_proba(known))
            return float(val.catalog.cost_of(known.acquired).mean()), loss

        ends = CurveEnds.of(self.predictor_, val)
        knobs = search_knob(point_at, (1e-3, 1.0), ends, n_points)
        return [{"probability": round(p, 6)} for p in knobs]

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return RandomPolicy(float(setting["probability"]), self.predictor_)


@dataclass(eq=False)
class AlongPath(Reference):
    """Methods that move along a path of growing plans, found on validation.

    The setting is `{"n_slots": k}`: how many slots of the greedy order are acquired.

    Args:
        options: Limits on the work of the selection.
    """

    bundle = GreedyOptions
    options: GreedyOptions | Mapping[str, Any] | None = None

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        self.path_ = greedy_path(
            *self._judges(train, val),
            self._blocks(),
            seed=seed,
            options=read_options(GreedyOptions, self.options),
            progress=progress,
        )

    def _learned(self) -> State:
        return {}, vars(self.path_).copy()

    def _recall(self, config: dict[str, Any], arrays: Arrays) -> None:
        self.path_ = GreedyPath(arrays["plans"], arrays["costs"], arrays["losses"])

    def _judges(self, train: Cohort, val: Cohort) -> tuple[Predictor, Cohort]:
        """The predictor and the subjects that judge plans."""
        return self.predictor_, val

    @abstractmethod
    def _blocks(self) -> NDArray[np.bool_]:
        """What is added at one step, `(b, L, M)`."""

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "path_")
        ends = CurveEnds.of(self.predictor_, val)
        steps = 1 + spread_points(self.path_.costs[1:], self.path_.losses[1:], ends, n_points)
        return [{"n_slots": int(self.path_.plans[k].sum())} for k in steps]

    def _plan(self, setting: dict[str, Any]) -> NDArray[np.bool_]:
        sizes = self.path_.plans.sum(axis=(1, 2))
        step = np.searchsorted(sizes, int(setting["n_slots"]), side="right") - 1
        return np.asarray(self.path_.plans[step])


@dataclass(eq=False)
class Static(AlongPath):
    """One set of slots for everybody, grown by greedy forward selection on validation.

    Args:
        choose_on: `"validation"`, or `"training"`: the training subjects, who are more, each judged
            by a predictor that never saw it.

    Example:
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> train, val = tiny_cohort(40).split((0.5, 0.5))
        >>> static = Static().fit(train, val, seed=0, predictor=RunningMeanPredictor(2))
        >>> [list(setting) for setting in static.settings(val, 2)]
        [['n_slots'], ['n_slots']]
    """

    name = "static"

    choose_on: ChooseOn = "validation"

    def _judges(self, train: Cohort, val: Cohort) -> tuple[Predictor, Cohort]:
        if self.choose_on == "validation":
            return super()._judges(train, val)
        found = self.predictor_
        if found.out_of_fold is None:
            raise ConfigError(
                "choose_on='training' needs predictors that never saw the subjects they judge, and "
                "this one saw them all; use 'validation'."
            )
        rows = even_rows(len(train), read_options(GreedyOptions, self.options).max_subjects)
        return OutOfFoldPredictor(found.out_of_fold, rows), train.subset(rows)

    def _blocks(self) -> NDArray[np.bool_]:
        return slot_blocks(self.open_slots_)

    def _policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(self._plan(setting), self.predictor_, self.path_.priority)


class FirstVisit(AlongPath):
    """Acquires at the first visit only: the best features there, in greedy order.

    If the first visit of a subject yields nothing, they are requested at the next one.
    """

    name = "first-visit"

    def _blocks(self) -> NDArray[np.bool_]:
        first = np.zeros_like(self.open_slots_)
        first[int(self.open_slots_.any(axis=1).argmax())] = True
        return slot_blocks(self.open_slots_ & first)

    def _policy(self, setting: dict[str, Any]) -> Policy:
        features = np.asarray(self._plan(setting).any(axis=0))
        return FirstVisitPolicy(features, self.predictor_, self.path_.priority.min(axis=0))
