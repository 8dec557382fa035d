"""What a preset provides: everything fitted that turns a cost weight into a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort, even_rows
from nocta.core.losses import TrajectoryLoss, pair_losses
from nocta.core.operating_points import cost_of_everything
from nocta.core.options import Preset
from nocta.core.predictor import Predictor
from nocta.core.rollout import rollout
from nocta.model.state import State
from nocta.planning.algorithm import PlanningPolicy, Search
from nocta.planning.plan_values import PlanValues
from nocta.planning.space import ActionTable
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted
from nocta.predictors.fitting import fit_predictor

EstimatorName = Literal["auto", "direct", "amortized", "contrastive", "ensemble"]
#: Losses of subjects after requests, `(b,)` and `(b, L, M)` to `(b, L, kinds)`.
Losses = Callable[[NDArray[np.int64], NDArray[np.bool_]], Tensor]
#: Maximum number of subjects sampled to estimate what acquiring everything saves and costs.
MOST_ASKED = 50_000
#: Shares that validation chooses from, and the most subjects on whom one is tried.
SHARES = (0.0, 0.5, 1.0)
_MOST_TRIED = 300


@dataclass(frozen=True)
class Task:
    """What a planner is fitted to; the predictor is fitted too, if none is given."""

    train: Cohort
    val: Cohort
    estimator: str
    seed: int
    progress: bool
    predictor: Predictor | None
    options: Any  # of the preset, checked
    preset: Preset = "default"

    def cross_fitted(self, preset: Preset) -> CrossFittedPredictor:
        """The given predictor or the one of the preset, once per fold."""
        if self.predictor is not None:
            return as_cross_fitted(self.predictor, self.train, self.val, self.seed, self.progress)
        weight, how = self.options.class_weight, (preset, self.seed, self.progress)
        return fit_predictor(self.train, self.val, *how, class_weight=weight)


class Planner(ABC):
    """A fitted preset: a predictor, an estimator of loss-to-go, and a way to search plans."""

    predictor: Predictor
    #: The cost weight at which acquiring everything breaks even: the scale of useful ones.
    cost_scale: float
    #: What may be acquired at each slot, if plans are grown slot by slot.
    actions: ActionTable
    #: Subjects for whom plans are searched at once.
    chunk: int = 256

    @property
    def loss(self) -> TrajectoryLoss:
        """The loss in which plans are scored."""
        return "cross-entropy"

    @classmethod
    @abstractmethod
    def fit(cls, task: Task) -> Self:
        """Fit what the estimator of the task needs."""

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
            promised_loss=self.loss,
        )

    def values(self, cost_weight: float) -> PlanValues | None:
        """What any plan is worth, for explanations; `None` if the planner cannot tell."""
        return None

    def actions_for(self, catalog: Catalog) -> ActionTable:
        """The offered subsets at the prices and under the constraints of a catalog."""
        if getattr(self, "_priced_for", None) is not catalog:
            self._priced_for, self._priced = catalog, self.actions.obeying(catalog)
        return self._priced

    def realized(
        self, cohort: Cohort, cost_weight: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Loss and charge of every subject after a roll-out, `(n,)` each."""
        done = rollout(self.policy(cost_weight), cohort)
        losses = np.nan_to_num(pair_losses(cohort.labels, done.probabilities))
        return losses.sum(axis=1), done.costs

    def regret(self, cohort: Cohort, cost_weight: float) -> NDArray[np.float64]:
        """Realized loss plus weighted cost of every subject, in units of cost: what NOCT means."""
        losses, costs = self.realized(cohort, cost_weight)
        return np.asarray(losses / cost_weight + costs)

    def least_regret(
        self,
        use: Callable[[float], None],
        val: Cohort,
        seed: int,
        preferred: float,
        factors: Sequence[float] = (0.3, 0.6, 1.0),
        n_tried: int = _MOST_TRIED,
    ) -> float:
        """The preferred share, unless another has clearly less loss plus cost on validation.

        "Clearly" is by more than a standard error of the difference, over some cost weights, given
        as factors of the scale. `use` makes the planner plan with a share.
        """
        some = val.subset(np.random.default_rng(seed).permutation(len(val))[:n_tried])
        regret = {}
        for share in SHARES:
            use(share)
            tried = [self.regret(some, self.cost_scale * factor) for factor in factors]
            regret[share] = np.sum(tried, axis=0)
        lead = {share: regret[preferred] - own for share, own in regret.items()}
        sure = {s: d.mean() - d.std() / np.sqrt(max(len(d) - 1, 1)) for s, d in lead.items()}
        return max(SHARES, key=lambda share: (max(sure[share], 0.0), share == preferred))

    @abstractmethod
    def state(self) -> State:
        """Plain configuration and arrays that restore the fitted planner."""

    @classmethod
    @abstractmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`."""


def break_even_weight(losses: Losses, cohort: Cohort) -> float:
    """Loss (first kind) saved by acquiring everything, per unit of its cost; on an even sample."""
    index = even_rows(len(cohort), MOST_ASKED)
    cohort = cohort.sample(MOST_ASKED)
    nothing = np.zeros_like(cohort.recorded)
    everything = np.broadcast_to(cohort.catalog.open_slots, nothing.shape).copy()
    saved = losses(index, nothing)[..., 0].sum(1) - losses(index, everything)[..., 0].sum(1)
    return max(float(saved.mean()) / max(cost_of_everything(cohort), 1e-9), 1e-6)


def slot_worth(losses: Losses, cohort: Cohort, n_subjects: int = 400) -> NDArray[np.float64]:
    """Loss each slot saves if it is acquired alone, `(L, M)`; never negative."""
    rows = np.linspace(0, len(cohort) - 1, min(n_subjects, len(cohort))).astype(np.int64)
    shape = cohort.catalog.open_slots.shape
    nothing = losses(rows, np.zeros((len(rows), *shape), dtype=bool))[..., 0].sum(1).mean()
    worth = np.zeros(shape)
    for t, m in np.argwhere(cohort.catalog.open_slots):
        asked = np.zeros((len(rows), *shape), dtype=bool)
        asked[:, t, m] = True
        worth[t, m] = float(nothing - losses(rows, asked)[..., 0].sum(1).mean())
    return np.maximum(worth, 0.0)
