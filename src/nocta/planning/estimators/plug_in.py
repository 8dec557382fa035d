"""The plug-in loss of many plans for training subjects, whose future is on record (equation 3)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.planning.estimators.targets import LossTargets
from nocta.planning.objective import LossReduction, PlanningLoss, loss_to_go, losses_at_times
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.plan_tree import PlanTree

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

    Args:
        targets: Losses of the subjects on record.
        index: `(n,)` which of them.
        requested: `(n, L, M)` or `(L, M)` what each is supposed to have asked for by `time`.
        plans: `(p, L, M)` shared by all; false at and before `time`.
        time: The current slot; -1 before the first visit.
        reduction: Sum over the later times, or mean over the labelled ones.
    """
    requested = np.broadcast_to(requested, (len(index), *plans.shape[1:])).copy()
    size = max(1, _ROWS // len(plans))
    pieces = [
        _chunk_losses(targets, index[rows], requested[rows], plans, time, reduction)
        for rows in np.array_split(np.arange(len(index)), max(1, -(-len(index) // size)))
    ]
    return torch.cat(pieces)


def shared_plan_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    plans: NDArray[np.bool_],
    time: int,
    kind: PlanningLoss,
    reduction: LossReduction = "sum",
    tree: PlanTree | None = None,
) -> Tensor:
    """One kind of loss-to-go of every plan, `(n, p)`, for subjects who were asked for the same.

    Args:
        targets: Losses of the subjects on record.
        index: `(n,)` which of them.
        requested: `(L, M)` what all of them are supposed to have asked for by `time`.
        plans: `(p, L, M)` shared by all; false at and before `time`.
        time: The current slot; -1 before the first visit.
        kind: Which loss.
        reduction: Sum over the later times, or mean over the labelled ones.
        tree: The same plans as a tree, where it serves (`grows_trees`).
    """
    if tree is None:
        which = targets.kinds.index(kind)
        return plan_losses(targets, index, requested, plans, time, reduction)[..., which]
    size = max(1, _NODES // len(tree))
    pieces = [
        _tree_losses(targets, index[i : i + size], requested, tree, time, kind, reduction)
        for i in range(0, len(index), size)
    ]
    return torch.cat(pieces)


def grows_trees(targets: LossTargets) -> bool:
    """Whether losses can be computed along a tree of plans: realised ones of one plain network."""
    return (
        len(targets.predictors) == 1
        and isinstance(targets.predictors[0], MLPPredictor)
        and not targets.expected
    )


def _tree_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    tree: PlanTree,
    time: int,
    kind: PlanningLoss,
    reduction: LossReduction,
) -> Tensor:
    predictor, data, rows = targets.predictors[0], targets.data[0], torch.from_numpy(index)
    assert isinstance(predictor, MLPPredictor)
    asked = np.broadcast_to(requested, (len(index), *requested.shape)).copy()
    log_proba = predictor.tree_log_proba(data.inputs(rows, asked), data.slots[rows], tree)
    labels = data.labels[rows, time + 1 :]
    total = tree.along_paths(losses_at_times(log_proba, labels[:, tree.depth], kind))
    if reduction == "sum":
        return total
    return total / (labels >= 0).sum(1).clamp(min=1)[:, None]


def _chunk_losses(
    targets: LossTargets,
    index: NDArray[np.int64],
    requested: NDArray[np.bool_],
    plans: NDArray[np.bool_],
    time: int,
    reduction: LossReduction,
) -> Tensor:
    predictor = targets.predictors[0]
    n, p = len(index), len(plans)
    labelled = targets.labelled[torch.from_numpy(index), None, :, None]
    if grows_trees(targets) and isinstance(predictor, MLPPredictor):
        data = targets.data[0]
        log_proba = predictor.plan_log_proba(
            data.inputs(index, requested),
            data.slots[torch.from_numpy(index)],
            torch.from_numpy(plans),
            time + 1,
        )
        labels = data.labels[torch.from_numpy(index), None, time + 1 :].expand(n, p, -1)
        later = torch.stack([losses_at_times(log_proba, labels, k) for k in targets.kinds], dim=-1)
    else:
        asked = (requested[:, None] | plans).reshape(n * p, *plans.shape[1:])
        losses = targets(np.repeat(index, p), asked)
        later = losses.view(n, p, *losses.shape[1:])[:, :, time + 1 :]
    counted = labelled[:, :, time + 1 :].expand(later.shape)
    return loss_to_go(later.movedim(-1, -2), -1, counted.movedim(-1, -2), reduction)
