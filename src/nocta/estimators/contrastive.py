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
    """Where the predictor stands with every voter after a prefix."""

    hidden: Tensor  # (n, q, K, hidden)
    neighbors: Neighbors

    def take(self, rows: slice) -> VotingState:
        """The state of some of the subjects."""
        return VotingState(self.hidden[rows], Neighbors(*(part[rows] for part in self.neighbors)))


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
        n, k = neighbors.subjects.shape
        time = int(observation.time[0])
        flat = neighbors.subjects.reshape(-1).numpy()
        asked = np.repeat(observation.history.requested, k, axis=0)
        hidden = torch.zeros(n * k, self._predictor(0).hidden)
        if time >= 0:
            for fold, rows in self._by_fold(flat):
                inputs = self.targets.data[fold].inputs(flat[rows], asked[rows])
                states = self._predictor(fold).net_.states(inputs[:, : time + 1])
                hidden[torch.from_numpy(rows)] = states[:, -1]
        return VotingState(hidden.view(n, 1, k, -1), neighbors)

    @torch.no_grad()
    def branch(
        self, state: VotingState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[VotingState, Tensor]:
        n, units = len(parents), parents.shape[1] * len(subsets) * state.hidden[0, 0].numel()
        size = max(1, _UNITS // units)
        if n <= size:
            return self._branch(state, time, parents, subsets)
        parts = [
            self._branch(state.take(slice(i, i + size)), time, parents[i : i + size], subsets)
            for i in range(0, n, size)
        ]
        hidden = torch.cat([part.hidden for part, _ in parts])
        return VotingState(hidden, state.neighbors), torch.cat([vote for _, vote in parts])

    def _branch(
        self, state: VotingState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[VotingState, Tensor]:
        voters, width = state.neighbors.subjects, state.hidden.shape[-1]
        (n, q), k, s = parents.shape, voters.shape[1], len(subsets)
        chosen = parents[:, :, None, None].expand(n, q, k, width)
        parent = state.hidden.gather(1, chosen)
        # Voters are walked fold by fold; each fold's predictor never saw its voters.
        hidden, losses = torch.empty(n, q, s, k, width), torch.empty(n, q, s, k)
        for fold, rows in self._by_fold(voters.reshape(-1).numpy()):
            subject, voter = torch.from_numpy(rows // k), torch.from_numpy(rows % k)
            if len(rows) == n * k:
                hidden, losses = self._branch_voters(fold, voters, parent, subsets, time)
                continue
            own = parent[subject, :, voter][:, :, None]  # (rows, q, 1, h)
            one = self._branch_voters(fold, voters[subject, voter][:, None], own, subsets, time)
            hidden[subject, :, :, voter], losses[subject, :, :, voter] = (
                one[0][:, :, :, 0],
                one[1][..., 0],
            )
        vote = torch.einsum("nqsk,nk->nqs", losses, state.neighbors.weight)
        return VotingState(hidden.flatten(1, 2), state.neighbors), vote

    def _branch_voters(
        self, fold: int, voters: Tensor, parent: Tensor, subsets: Tensor, time: int
    ) -> tuple[Tensor, Tensor]:
        """Predictor states `(n, q, s, k, h)` and losses `(n, q, s, k)` one slot further."""
        predictor, data = self._predictor(fold), self.targets.data[fold]
        net = predictor.net_
        slots = data.slots[voters, time][:, None] * subsets.float()[:, None, data.owner]
        frame = data.frame[voters, time][:, None].expand(-1, len(subsets), -1, -1)
        from_input = net.input_half(torch.cat([slots, frame], dim=-1))[:, None]
        from_state = state_half(net.cell, parent)[:, :, None]
        hidden = combine(from_input, from_state, parent[:, :, None])
        log_proba = F.log_softmax(net.head(hidden) / predictor.temperature_, dim=-1)
        labels = data.labels[voters, time][:, None, None]
        soft = self.targets.soft_labels
        soft = None if soft is None else soft[voters, time][:, None, None]
        return hidden, self.targets.judge(log_proba, labels, soft, self.loss)

    def _by_fold(self, subjects: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Positions grouped by the predictor that never saw the subject."""
        folds = self.targets.fold[subjects]
        return [(int(f), np.flatnonzero(folds == f)) for f in np.unique(folds)]

    def _predictor(self, fold: int) -> RecurrentPredictor:
        predictor = self.targets.predictors[fold]
        if not isinstance(predictor, RecurrentPredictor):
            raise ConfigError(
                "Growing plans slot by slot needs the recurrent predictor; use a sample search "
                "with this one."
            )
        return predictor
