"""What estimators learn from: the loss of training subjects at every time, under any request.

Their future is on record, so the plug-in loss of any plan is known (equation 3, `plan_losses`).
The loss of a predictor on its own training subjects is too optimistic. With few subjects it pays to
score each one with a predictor that was not trained on it (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.predictor import Network, Predictor
from nocta.planning.objective import (
    LossReduction,
    PlanningLoss,
    loss_to_go,
    losses_at_times,
    self_expected_losses,
    soft_label_losses,
)
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.plan_tree import PlanScorer, PlanTree

#: Histories that a predictor without a network is asked for at once; bounds memory.
_AT_ONCE = 8192
#: Subjects who are predicted from everything at once; bounds memory.
_INFORMED_AT_ONCE = 20_000
#: Smallest probability whose logarithm is taken.
_LEAST = 1e-7
#: Rows (subject, plan) scored at once: few enough to stay in cache, and to leave no large holes
#: between what retrieval keeps.
_ROWS = 4096
#: The same for (subject, node) of a tree of plans.
_NODES = 16384


class LossTargets:
    """Losses of a cohort's subjects under requests, from predictors fitted elsewhere.

    Predictors with a network are asked through it, on inputs that are encoded once. Any other is
    asked for `predict_proba` of the histories that the requests give, which is slower.

    Args:
        cohort: The subjects to score.
        predictors: One predictor, or one per fold.
        fold: `(n,)` which predictor scores each subject; the first one by default.
        kinds: The losses to compute, in this order.
        expected: Use the loss the predictor expects of itself instead of the realized one: no
            label noise, but only as good as its calibration.
        hindsight: If not `expected`, the share of each label that is replaced by the prediction
            from everything recorded, which is less noisy with few subjects. Unlike `expected`, a
            prediction from little data is not its own judge.
    """

    def __init__(
        self,
        cohort: Cohort,
        predictors: Sequence[Predictor],
        fold: NDArray[np.int64] | None = None,
        kinds: Sequence[PlanningLoss] = ("cross-entropy", "error"),
        expected: bool = False,
        hindsight: float = 0.0,
    ) -> None:
        self.predictors = list(predictors)
        self.fold = np.zeros(len(cohort), dtype=np.int64) if fold is None else fold
        self.kinds = tuple(kinds)
        self.expected = expected
        self.cohort = cohort
        networks = [p.network for p in self.predictors]
        #: One per predictor, or none at all.
        self.networks: list[Network] = [n for n in networks if n is not None]
        if len(self.networks) < len(networks):
            self.networks = []
        self.data = [EncodedCohort(n.encoder_, cohort) for n in self.networks]
        self.labels = torch.from_numpy(cohort.labels)
        self.labeled = torch.from_numpy(cohort.labeled)
        self.hindsight = hindsight
        self.soft_labels = self._soft_labels(cohort) if hindsight and not expected else None

    def subset(self, cohort: Cohort, rows: NDArray[np.int64]) -> LossTargets:
        """Losses of some of the subjects: those of `cohort.subset(rows)`."""
        shared = (self.kinds, self.expected, self.hindsight)
        return LossTargets(cohort.subset(rows), self.predictors, self.fold[rows], *shared)

    def __call__(self, index: NDArray[np.int64], requested: NDArray[np.bool_]) -> Tensor:
        """Losses of the subjects at `index` at every time, `(b, L, n_kinds)`; 0 if unlabeled."""
        log_proba, rows = self._log_proba(index, requested), torch.as_tensor(index)
        labels = self.labels[rows]
        soft = None if self.soft_labels is None else self.soft_labels[rows]
        return torch.stack([self.judge(log_proba, labels, soft, k) for k in self.kinds], dim=-1)

    def judge(
        self, log_proba: Tensor, labels: Tensor, soft: Tensor | None, kind: PlanningLoss
    ) -> Tensor:
        """Losses of log-probabilities `(..., C)`; 0 if the label is -1. Labels broadcast."""
        if self.expected:
            return self_expected_losses(log_proba, kind) * (labels >= 0)
        if soft is not None:
            return soft_label_losses(log_proba, soft, kind) * (labels >= 0)
        return losses_at_times(log_proba, labels.expand(log_proba.shape[:-1]), kind)

    def _log_proba(self, index: NDArray[np.int64], requested: NDArray[np.bool_]) -> Tensor:
        """Log-probabilities after these requests, by each subject's predictor, `(b, L, C)`."""
        n_classes = self.predictors[0].n_classes_
        out = torch.zeros(len(index), requested.shape[1], n_classes)
        for which, predictor in enumerate(self.predictors):
            rows = np.flatnonzero(self.fold[index] == which)
            if rows.size and self.networks:
                inputs = self.data[which].inputs(torch.as_tensor(index[rows]), requested[rows])
                out[torch.as_tensor(rows)] = self.networks[which].log_proba(inputs)
                continue
            for i in range(0, rows.size, _AT_ONCE):
                some = rows[i : i + _AT_ONCE]
                history = History.of(self.cohort.subset(index[some]), requested[some])
                found = torch.from_numpy(np.asarray(predictor.predict_proba(history), np.float32))
                out[torch.as_tensor(some)] = found.clamp(min=_LEAST).log()
        return out

    def _soft_labels(self, cohort: Cohort) -> Tensor:
        """Labels mixed with the prediction from everything, `(n, L, C)`."""
        n, slots = len(cohort), cohort.catalog.open_slots
        pieces = np.array_split(np.arange(n), max(1, -(-n // _INFORMED_AT_ONCE)))
        informed = torch.cat(
            [self._log_proba(p, np.broadcast_to(slots, (len(p), *slots.shape))) for p in pieces]
        ).exp()
        truth = F.one_hot(self.labels.clamp(min=0), informed.shape[-1])
        return (1 - self.hindsight) * truth + self.hindsight * informed


def plan_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    plans: NDArray[np.bool_],
    time: int,
    reduction: LossReduction = "sum",
) -> Tensor:
    """Loss-to-go of every plan for every subject, `(n, p, n_kinds)`.

    `requested`, `(n, L, M)` or `(L, M)`, is assumed to have been requested by `time`; `plans`,
    `(p, L, M)`, are shared by all and false at and before `time`.
    """
    requested = np.broadcast_to(requested, (len(index), *plans.shape[1:])).copy()
    size = max(1, _ROWS // len(plans))
    pieces = []
    for rows in np.array_split(np.arange(len(index)), max(1, -(-len(index) // size))):
        later = _later_losses(targets, index[rows], requested[rows], plans, time)
        labeled = targets.labeled[torch.from_numpy(index[rows]), None, time + 1 :, None]
        counted = labeled.expand(later.shape).movedim(-1, -2)
        pieces.append(loss_to_go(later.movedim(-1, -2), -1, counted, reduction))
    return torch.cat(pieces)


def _later_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    plans: NDArray[np.bool_],
    time: int,
) -> Tensor:
    """Losses after slot `time`, `(n, p, L - time - 1, n_kinds)`."""
    predictor, rows = targets.predictors[0], torch.from_numpy(index)
    n, p = len(index), len(plans)
    if grows_trees(targets) and isinstance(predictor, PlanScorer):
        data = targets.data[0]
        inputs = data.inputs(index, requested)
        shared = torch.from_numpy(plans)
        log_proba = predictor.plan_log_proba(inputs, data.slots[rows], shared, time + 1)
        labels = data.labels[rows, None, time + 1 :].expand(n, p, -1)
        return torch.stack([losses_at_times(log_proba, labels, k) for k in targets.kinds], dim=-1)
    asked = (requested[:, None] | plans).reshape(n * p, *plans.shape[1:])
    losses = targets(np.repeat(index, p), asked)
    return losses.view(n, p, *losses.shape[1:])[:, :, time + 1 :]


def tree_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    tree: PlanTree,
    time: int,
    kind: PlanningLoss,
    reduction: LossReduction = "sum",
) -> Tensor:
    """One kind of loss-to-go of every plan of a tree, `(n, p)`; see `grows_trees`.

    The same `requested`, `(L, M)`, holds for all subjects.
    """
    predictor, data = targets.predictors[0], targets.data[0]
    assert isinstance(predictor, PlanScorer)
    size = max(1, _NODES // len(tree))
    pieces = []
    for rows in torch.split(torch.from_numpy(index), size):
        asked = np.broadcast_to(requested, (len(rows), *requested.shape)).copy()
        log_proba = predictor.tree_log_proba(data.inputs(rows, asked), data.slots[rows], tree)
        labels = data.labels[rows, time + 1 :]
        total = tree.along_paths(losses_at_times(log_proba, labels[:, tree.depth], kind))
        if reduction == "mean":
            total = total / (labels >= 0).sum(1).clamp(min=1)[:, None]
        pieces.append(total)
    return torch.cat(pieces)


def grows_trees(targets: LossTargets) -> bool:
    """Whether losses can be computed along a tree of plans: realized ones of one `PlanScorer`."""
    return (
        len(targets.predictors) == 1
        and isinstance(targets.predictors[0], PlanScorer)
        and not targets.expected
    )
