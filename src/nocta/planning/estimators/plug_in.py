"""The plug-in loss of many plans for training subjects, whose future is on record (equation 3)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.planning.estimators.targets import LossTargets
from nocta.planning.objective import LossReduction, PlanningLoss, loss_to_go, losses_at_times
from nocta.predictors.plan_tree import PlanScorer, PlanTree

#: Rows (subject, plan) scored at once: few enough to stay in cache, and to leave no large holes
#: between what retrieval keeps.
_ROWS = 4096
#: The same for (subject, node) of a tree of plans.
_NODES = 16384


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
        labelled = targets.labelled[torch.from_numpy(index[rows]), None, time + 1 :, None]
        counted = labelled.expand(later.shape).movedim(-1, -2)
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
