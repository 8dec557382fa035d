"""NOCT-Contrastive: score a plan by what it did for similar training subjects.

Paper: section 3.4, equation 6. The training subjects nearest to the query, seen through the
query's mask, are carried along the plan with their own recorded values and labels; their losses
are averaged. The metric is learned (`nocta.estimators.embedding`), or taken from the predictor or
the values for the ablation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.estimators.base import SequentialEstimator
from nocta.estimators.plug_in import grows_trees, shared_plan_losses
from nocta.estimators.retrieval import NeighborBank, Neighbors, rows_by_mask
from nocta.estimators.targets import LossTargets
from nocta.exceptions import ConfigError
from nocta.objective import LossReduction, PlanningLoss
from nocta.plans.tree import PlanTree
from nocta.policies.base import Observation
from nocta.predictors.gru import combine, state_half
from nocta.predictors.recurrent import RecurrentPredictor

#: Numbers held at once for one slot of voters' states; bounds memory.
_UNITS = 1 << 24


class VotingState(NamedTuple):
    """Where the predictors stand with every voter after some prefixes.

    Voters are kept apart by the predictor that never saw them, so that each is asked once.
    """

    neighbors: Neighbors
    voters: dict[int, Tensor]  # positions among all n * K voters, by fold
    hidden: dict[int, Tensor]  # (voters of the fold, prefixes, hidden)


class ContrastiveEstimator(SequentialEstimator):
    """Averages the plug-in loss over the nearest training subjects.

    Choose it when the evidence behind a plan should be real subjects that can be shown. Each
    decision looks up neighbours; `AmortizedEstimator` answers from one network.

    Args:
        bank: Finds the neighbours.
        targets: Losses of the same training subjects under any request.
        loss: Which loss plans are scored by; may be changed at any time.
        reduction: Sum of the loss over later times (equation 1), or mean over labelled ones.
    """

    def __init__(
        self,
        bank: NeighborBank,
        targets: LossTargets,
        loss: PlanningLoss = "cross-entropy",
        reduction: LossReduction = "sum",
    ) -> None:
        self.bank = bank
        self.targets = targets
        self.loss: PlanningLoss = loss
        self.reduction: LossReduction = reduction

    # -- plans shared by all subjects, any predictor ------------------------------

    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        if plans.ndim == 4:
            return super().score_plans(observation, plans)
        neighbors, time = self.bank.nearest(observation), int(observation.time[0])
        tree = PlanTree.of(plans, time) if grows_trees(self.targets) else None
        out = torch.zeros(len(observation), len(plans))
        for mask, rows in rows_by_mask(observation.history.requested):
            # Who votes for several subjects with the same mask is asked once.
            voters, place = torch.unique(neighbors.subjects[rows], return_inverse=True)
            losses = shared_plan_losses(
                self.targets, voters.numpy(), mask, plans, time, self.loss, self.reduction, tree
            )
            for row, own in zip(rows.tolist(), place, strict=True):
                out[row] = neighbors.weight[row] @ losses[own]
        return out

    # -- plans grown slot by slot, recurrent predictor ----------------------------

    @torch.no_grad()
    def start(self, observation: Observation) -> VotingState:
        if self.reduction != "sum":
            raise ConfigError("Growing plans slot by slot needs loss_reduction='sum'.")
        neighbors = self.bank.nearest(observation)
        time, k = int(observation.time[0]), neighbors.subjects.shape[1]
        flat = neighbors.subjects.reshape(-1).numpy()
        voters, hidden = self._by_fold(flat), {}
        for fold, rows in voters.items():
            predictor = self._predictor(fold)
            hidden[fold] = torch.zeros(len(rows), 1, predictor.hidden)
            if time >= 0:
                asked = observation.history.requested[rows.numpy() // k]
                inputs = self.targets.data[fold].inputs(flat[rows.numpy()], asked)
                hidden[fold][:, 0] = predictor.net_.states(inputs[:, : time + 1])[:, -1]
        return VotingState(neighbors, voters, hidden)

    @torch.no_grad()
    def branch(
        self, state: VotingState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[VotingState, Tensor]:
        subjects, weight, _ = state.neighbors
        (n, q), k, s = parents.shape, subjects.shape[1], len(subsets)
        losses, hidden = torch.empty(n * k, q * s), {}
        for fold, rows in state.voters.items():
            width = state.hidden[fold].shape[2]
            chosen = parents[rows // k][..., None].expand(-1, -1, width)
            known = state.hidden[fold].gather(1, chosen)
            voters, some = subjects.reshape(-1)[rows], max(1, _UNITS // (q * s * width))
            parts = [
                self._continue(fold, *part, subsets, time)
                for part in zip(torch.split(voters, some), torch.split(known, some), strict=True)
            ]
            hidden[fold] = torch.cat([part for part, _ in parts]).flatten(1, 2)
            losses[rows] = torch.cat([loss for _, loss in parts]).flatten(1)
        vote = weight[:, None] @ losses.view(n, k, q * s)
        return VotingState(state.neighbors, state.voters, hidden), vote.view(n, q, s)

    def _continue(
        self, fold: int, voters: Tensor, known: Tensor, subsets: Tensor, time: int
    ) -> tuple[Tensor, Tensor]:
        """Predictor states `(v, q, s, h)` and losses `(v, q, s)` of `v` voters one slot further."""
        predictor, data = self._predictor(fold), self.targets.data[fold]
        net = predictor.net_
        slots = data.slots[voters, time][:, None] * subsets.float()[:, data.owner]
        frame = data.frame[voters, time][:, None].expand(-1, len(subsets), -1)
        from_input = net.input_half(torch.cat([slots, frame], dim=-1))[:, None]
        from_state = state_half(net.cell, known)[:, :, None]
        hidden = combine(from_input, from_state, known[:, :, None])
        log_proba = F.log_softmax(net.head(hidden) / predictor.temperature_, dim=-1)
        labels = data.labels[voters, time][:, None, None]
        soft = self.targets.soft_labels
        soft = None if soft is None else soft[voters, time][:, None, None]
        return hidden, self.targets.judge(log_proba, labels, soft, self.loss)

    def _by_fold(self, subjects: NDArray[np.int64]) -> dict[int, Tensor]:
        """Positions grouped by the predictor that never saw the subject."""
        folds = self.targets.fold[subjects]
        return {int(f): torch.from_numpy(np.flatnonzero(folds == f)) for f in np.unique(folds)}

    def _predictor(self, fold: int) -> RecurrentPredictor:
        predictor = self.targets.predictors[fold]
        if not isinstance(predictor, RecurrentPredictor):
            raise ConfigError(
                "Growing plans slot by slot needs the recurrent predictor; use a sample search "
                "with this one."
            )
        return predictor
