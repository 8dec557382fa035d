"""The reference method `periodic`: the same features at every k-th visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.operating_points import CurveEnds, spread_points
from nocta.core.options import read_options
from nocta.core.policy import Policy
from nocta.methods.contract import require_fitted
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.reference.greedy import GreedyOptions, greedy_path
from nocta.methods.reference.method import Reference
from nocta.model.state import Arrays, State


@dataclass(frozen=True)
class _Rhythm:
    every: int
    plan: NDArray[np.bool_]
    priority: NDArray[np.float64]
    cost: float
    loss: float


_FIELDS = ("every", "plan", "priority", "cost", "loss")


@dataclass(eq=False)
class Periodic(Reference):
    """A fixed set of features at every k-th visit, the best of its cost on validation.

    The setting is `{"every": k, "features": [names]}`. For each `k` features are added in greedy
    order; a pair of rhythm and set is kept if no cheaper one beats it.

    Args:
        options: Limits on the work of the selection of features for each rhythm.
    """

    name = "periodic"
    bundle = GreedyOptions

    options: GreedyOptions | Mapping[str, Any] | None = None

    def _choose(self, train: Cohort, val: Cohort, seed: int, progress: bool) -> None:
        found: list[_Rhythm] = []
        options = read_options(GreedyOptions, self.options)
        for every in _rhythms(len(self.open_slots_)):
            columns = self._visits(every) & self.open_slots_
            blocks = np.einsum("lm,mk->mlk", columns, np.eye(columns.shape[1], dtype=bool))
            blocks = blocks[blocks.any(axis=(1, 2))]
            if not len(blocks):
                continue
            path = greedy_path(
                self.predictor_, val, blocks, seed=seed, options=options, progress=progress
            )
            points = zip(path.plans[1:], path.costs[1:], path.losses[1:], strict=True)
            found += [
                _Rhythm(every, plan, path.priority, float(c), float(x)) for plan, c, x in points
            ]
        self.rhythms_ = _unbeaten(found)

    def _learned(self) -> State:
        kept = [vars(rhythm) for rhythm in self.rhythms_]
        return {}, {name: np.array([one[name] for one in kept]) for name in _FIELDS}

    def _recall(self, config: dict[str, Any], arrays: Arrays) -> None:
        self.rhythms_ = [
            _Rhythm(int(every), plan, priority, float(cost), float(loss))
            for every, plan, priority, cost, loss in zip(
                *(arrays[name] for name in _FIELDS), strict=True
            )
        ]

    def _visits(self, every: int) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(self.open_slots_)) % every == 0)[:, None]

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "rhythms_")
        points = [r.cost for r in self.rhythms_], [r.loss for r in self.rhythms_]
        ends = CurveEnds.of(self.predictor_, val)
        chosen = [self.rhythms_[i] for i in spread_points(*points, ends, n_points)]
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
    """Every k up to 6, then wider and wider steps, and once only."""
    wide = np.unique(np.geomspace(6, max(n_times, 6), 6).round().astype(int)).tolist()
    return [k for k in sorted({*range(1, 7), *wide, n_times}) if k <= n_times]


def _unbeaten(points: list[_Rhythm]) -> list[_Rhythm]:
    """Those with a lower loss than everything cheaper, cheapest first."""
    kept: list[_Rhythm] = []
    for point in sorted(points, key=lambda r: (r.cost, r.loss)):
        if not kept or point.loss < kept[-1].loss:
            kept.append(point)
    return kept
