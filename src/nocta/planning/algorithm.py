"""Algorithm 1: score plans, execute the earliest part of the best one, replan.

Batched over a cohort: subjects at the same slot are searched together, and identical observations
are searched once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import PlanError
from nocta.core.losses import TrajectoryLoss
from nocta.core.policy import Decision, Observation, Policy, Promise
from nocta.core.predictor import Predictor
from nocta.planning.search import FoundPlans

#: Finds the best plans, at the cost weight of each, of subjects who are all at the same slot.
Search = Callable[[Observation, NDArray[np.float64]], FoundPlans]


@dataclass(eq=False, repr=False)
class PlanningPolicy(Policy):
    """Plans ahead, acquires the earliest part of the plan, and replans (Algorithm 1)."""

    predictor: Predictor  # predicts from what was acquired
    search: Search  # finds the best plans under an estimator of loss-to-go
    #: What one unit of cost is worth in loss (`alpha`), one number or one per subject of the
    #: roll-out.
    cost_weight: float | NDArray[np.float64]
    _: KW_ONLY
    #: Plan again after each acquisition; otherwise the first plan is carried out.
    replan: bool = True
    #: Number of subjects searched at once; small chunks stay in the processor's cache.
    chunk: int = 256
    #: Called with every batch of observations and the plans found for it.
    on_plans: Callable[[Observation, FoundPlans], None] | None = None
    #: The loss in which the search expresses what it expects.
    promised_loss: TrajectoryLoss = "cross-entropy"
    _committed: dict[int, NDArray[np.bool_]] = field(init=False, default_factory=dict)

    def begin(self, n_subjects: int, seed: int) -> None:
        self._committed = {}

    def decide(self, observation: Observation) -> Decision:
        if self.replan:
            return Decision.from_plans(self.best_plans(observation).plans[:, 0])
        new = np.array([int(row) not in self._committed for row in observation.rows], dtype=bool)
        if new.any():
            plans = self.best_plans(observation.subset(new)).plans[:, 0]
            self._committed |= zip(observation.rows[new].tolist(), plans, strict=True)
        return Decision.from_plans(self._remainder(observation))

    def promise(self, observation: Observation) -> Promise:
        """What the best plan is expected to lose and to be charged if it is carried out."""
        found = replace(self, on_plans=None).best_plans(observation)
        return found.losses[:, 0], found.charges[:, 0]

    def best_plans(self, observation: Observation) -> FoundPlans:
        """The best plans of every subject; subjects may be at different slots."""
        weight = np.asarray(self.cost_weight, dtype=float)
        weights = weight[observation.rows] if weight.ndim else np.full(len(observation), weight)
        _check_weights(weights, observation)
        pieces: list[tuple[NDArray[np.int64], FoundPlans]] = []
        for time in np.unique(observation.time):
            rows = np.flatnonzero(observation.time == time)
            first, back = _distinct(observation, weights, rows)
            chunks = np.array_split(first, max(1, -(-len(first) // self.chunk)))
            found = FoundPlans.concatenate(
                [self.search(observation.subset(c), weights[c]) for c in chunks]
            ).take(back)
            if self.on_plans is not None:
                self.on_plans(observation.subset(rows), found)
            pieces.append((rows, found))
        order = np.argsort(np.concatenate([rows for rows, _ in pieces]), kind="stable")
        best = FoundPlans.concatenate([found for _, found in pieces]).take(order)
        _check_finite(best)
        return best

    def _remainder(self, observation: Observation) -> NDArray[np.bool_]:
        """The rest of the committed plans, without slots that are closed or not affordable."""
        plans = np.stack([self._committed[int(r)] for r in observation.rows])
        plans = plans & observation.open_slots
        spent = np.cumsum(observation.catalog.cost_per_visit(plans), axis=1)
        return np.asarray(plans & (spent <= observation.remaining[:, None] + 1e-9)[:, :, None])


def _check_weights(weights: NDArray[np.float64], observation: Observation) -> None:
    """Raise unless the weighted price of everything is a number that networks can hold."""
    most = float(weights.max(initial=0.0)) * observation.catalog.price_of_everything
    if not most < float(np.finfo(np.float32).max):
        raise PlanError(
            f"The cost weight {weights.max():g} times the price of everything "
            f"({observation.catalog.price_of_everything:g}) is too large to compute with. Use a "
            f"smaller cost weight, or smaller prices."
        )


def _check_finite(found: FoundPlans) -> None:
    """Raise if an expected loss or charge is not a finite number: no advice is better than that."""
    numbers = {"loss": found.losses, "charge": found.charges, "loss of stopping": found.stopping}
    for name, array in numbers.items():
        if not np.isfinite(array).all():
            raise PlanError(
                f"The expected {name} of a plan is not a finite number, so nothing can be advised. "
                f"The model is damaged, or its training diverged; fit it again."
            )


def _distinct(
    observation: Observation, weights: NDArray[np.float64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row of each distinct observation, and the position of each row's twin among them."""
    known = observation.history
    parts = [known.values[rows], known.unavailable[rows], known.context[rows], weights[rows]]
    parts += [known.acquired[rows], observation.remaining[rows]]
    if observation.available is not None:
        parts.append(observation.available[rows])
    flat = [np.ascontiguousarray(p).reshape(len(rows), -1).view(np.uint8) for p in parts if p.size]
    keys = np.ascontiguousarray(np.concatenate(flat, axis=1))
    rows_as_one = keys.view(np.dtype((np.void, keys.shape[1]))).reshape(-1)
    _, first, back = np.unique(rows_as_one, return_index=True, return_inverse=True)
    return rows[first], back
