"""What a preset provides: everything fitted that turns a cost weight into a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort, even_rows
from nocta.core.predictor import Predictor
from nocta.core.rollout import rollout
from nocta.planning.algorithm import PlanningPolicy, Search
from nocta.planning.estimators.targets import LossTargets

EstimatorName = Literal["amortized", "contrastive", "ensemble"]
#: So many subjects tell what a slot is worth and what it is charged for.
MOST_ASKED = 50_000
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Planner(ABC):
    """A fitted preset: a predictor, an estimator of loss-to-go, and a way to search plans."""

    predictor: Predictor
    #: Cost weight at which acquiring everything just breaks even: the scale of useful ones.
    cost_scale: float
    #: Subjects searched for at once.
    chunk: int = 256

    @classmethod
    @abstractmethod
    def fit(
        cls,
        train: Cohort,
        val: Cohort,
        estimator: EstimatorName,
        *,
        seed: int,
        progress: bool,
        **options: Any,
    ) -> Self:
        """Fit predictor and estimator; options are the preset's own."""

    @abstractmethod
    def search(self, cost_weight: float) -> Search:
        """How plans are searched at this cost weight."""

    def policy(self, cost_weight: float, *, replan: bool = True) -> PlanningPolicy:
        """Algorithm 1 at this cost weight."""
        return PlanningPolicy(
            self.predictor,
            self.search(cost_weight),
            cost_weight,
            replan=replan,
            chunk=self.chunk,
        )

    def regret(self, cohort: Cohort, cost_weight: float) -> NDArray[np.float64]:
        """Realised loss plus weighted cost of every subject, in units of cost: what NOCT means."""
        done = rollout(self.policy(cost_weight), cohort)
        truth = np.maximum(cohort.labels, 0)[..., None]
        chance = np.take_along_axis(done.probabilities, truth, axis=2)[..., 0]
        losses = np.where(cohort.labelled, -np.log(np.maximum(chance, 1e-12)), 0.0)
        return np.asarray(losses.sum(axis=1) / cost_weight + done.costs)

    @abstractmethod
    def state(self) -> State:
        """Plain configuration and arrays that restore the fitted planner."""

    @classmethod
    @abstractmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`."""


def break_even_weight(targets: LossTargets, cohort: Cohort) -> float:
    """Loss saved by acquiring everything, per unit of what that costs; first kind of loss.

    Of very many subjects an even sample is asked.
    """
    index = even_rows(len(cohort), MOST_ASKED)
    cohort = cohort.sample(MOST_ASKED)
    nothing = np.zeros_like(cohort.recorded)
    everything = np.broadcast_to(cohort.catalog.open_slots, nothing.shape)
    saved = targets(index, nothing)[..., 0].sum(1) - targets(index, everything.copy())[..., 0].sum(
        1
    )
    price = float(cohort.catalog.cost_of(cohort.recorded).mean())
    return max(float(saved.mean()) / max(price, 1e-9), 1e-6)


def slot_worth(targets: LossTargets, cohort: Cohort, n_subjects: int = 400) -> NDArray[np.float64]:
    """Loss each slot saves when acquired alone, `(L, M)`; never negative."""
    rows = np.linspace(0, len(cohort) - 1, min(n_subjects, len(cohort))).astype(np.int64)
    shape = cohort.catalog.open_slots.shape
    nothing = targets(rows, np.zeros((len(rows), *shape), dtype=bool))[..., 0].sum(1).mean()
    worth = np.zeros(shape)
    for t, m in np.argwhere(cohort.catalog.open_slots):
        asked = np.zeros((len(rows), *shape), dtype=bool)
        asked[:, t, m] = True
        worth[t, m] = float(nothing - targets(rows, asked)[..., 0].sum(1).mean())
    return np.maximum(worth, 0.0)
