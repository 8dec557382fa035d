"""NOCT-Contrastive: score a plan by what it did for similar training subjects.

Paper: section 3.4, equation 6. The training subjects nearest to the query, seen through the query's
mask, follow the plan with their own recorded values and labels; their losses are averaged. The
metric is learned (`embedding.py`); for the ablation it comes from the predictor or the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.planning.estimators.retrieval import NeighborBank, Neighbors, rows_by_mask
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.estimators.targets import LossTargets, grows_trees, plan_losses, tree_losses
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.objective import LossReduction, PlanningLoss
from nocta.predictors.plan_tree import PlanTree
from nocta.predictors.walking import WalkingNet, walking_net


class VotingState(NamedTuple):
    """The predictor's state of every voter after some prefixes, by the fold it was held out of."""

    neighbors: Neighbors
    voters: dict[int, Tensor]  # positions among all n * K voters, by fold
    hidden: dict[int, Tensor]  # (voters of the fold, prefixes, hidden)


@dataclass(eq=False, repr=False)
class ContrastiveEstimator(SequentialEstimator):
    """Averages the plug-in loss over the nearest training subjects.

    Choose it if the evidence for a plan should be real subjects that can be shown. Each decision
    looks up neighbors; `AmortizedEstimator` answers from one network.
    """

    #: Subjects searched for at once. Each holds every voter's state, so few stay in cache.
    chunk: ClassVar[int] = 4

    bank: NeighborBank  # finds the neighbors
    targets: LossTargets  # losses of the same training subjects under any request
    loss: PlanningLoss = "cross-entropy"  # the loss that scores plans; may be changed at any time
    #: Sum of the loss over later times (equation 1), or mean over labeled ones.
    reduction: LossReduction = "sum"
    limits: Limits = DEFAULT_LIMITS  # how much of the voters' states is held at once

    # -- plans shared by all subjects, any predictor ------------------------------

    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        if plans.ndim == 4:
            return super().score_plans(observation, plans)
        neighbors, time = self.bank.nearest(observation), int(observation.time[0])
        tree = PlanTree.of(plans, time) if grows_trees(self.targets) else None
        which = self.targets.kinds.index(self.loss)
        out = torch.zeros(len(observation), len(plans))
        for mask, rows in rows_by_mask(observation.history.requested):
            # A voter of several subjects with the same mask is computed once.
            voters, place = torch.unique(neighbors.subjects[rows], return_inverse=True)
            asked = (self.targets, voters.numpy(), mask)
            if tree is not None:
                losses = tree_losses(*asked, tree, time, self.loss, self.reduction)
            else:
                losses = plan_losses(*asked, plans, time, self.reduction)[..., which]
            for row, own in zip(rows.tolist(), place, strict=True):
                out[row] = neighbors.weight[row] @ losses[own]
        return out

    # -- plans grown slot by slot ---------------------------------------------

    @torch.no_grad()
    def start(self, observation: Observation) -> VotingState:
        self._require_sum()
        neighbors = self.bank.nearest(observation)
        time, k = int(observation.time[0]), neighbors.subjects.shape[1]
        flat = neighbors.subjects.reshape(-1).numpy()
        folds = self.targets.fold[flat]  # by the predictor that was not trained on the voter
        voters = {int(f): torch.from_numpy(np.flatnonzero(folds == f)) for f in np.unique(folds)}
        hidden: dict[int, Tensor] = {}
        for fold, rows in voters.items():
            net = self._net(fold)
            known = torch.zeros(len(rows), 1, net.state_width)
            if time >= 0:
                asked = observation.history.requested[rows.numpy() // k]
                inputs = self.targets.data[fold].inputs(flat[rows.numpy()], asked)
                known[:, 0] = net.walk(inputs[:, : time + 1])[:, -1]
            hidden[fold] = known
        return VotingState(neighbors, voters, hidden)

    @torch.no_grad()
    def branch(
        self, state: VotingState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[VotingState, Tensor]:
        subjects, weight, _ = state.neighbors
        (n, q), k, s = parents.shape, subjects.shape[1], len(subsets)
        losses = torch.empty(n * k, q * s)
        hidden: dict[int, Tensor] = {}
        for fold, rows in state.voters.items():
            voters, chosen = subjects.reshape(-1)[rows], parents[rows // k]
            known = state.hidden[fold]
            known = known.gather(1, chosen[..., None].expand(-1, -1, known.shape[2]))
            some = max(1, self.limits.voter_units // (q * s * known.shape[2]))
            parts = [
                self._continue(fold, *part, subsets, time)
                for part in zip(torch.split(voters, some), torch.split(known, some), strict=True)
            ]
            hidden[fold] = torch.cat([after for after, _ in parts]).flatten(1, 2)
            losses[rows] = torch.cat([loss for _, loss in parts]).flatten(1)
        vote = weight[:, None] @ losses.view(n, k, q * s)
        return VotingState(state.neighbors, state.voters, hidden), vote.view(n, q, s)

    def _continue(
        self, fold: int, voters: Tensor, known: Tensor, subsets: Tensor, time: int
    ) -> tuple[Tensor, Tensor]:
        """The predictor's states `(v, q, s, h)` for `v` voters one slot later, and losses."""
        net, data = self._net(fold), self.targets.data[fold]
        shown = data.slots[voters, time][:, None] * subsets.float()[:, data.owner]
        rest = data.frame[voters, time][:, None].expand(-1, len(subsets), -1)
        hidden = net.extend(known[:, :, None], torch.cat([shown, rest], dim=-1)[:, None])
        logits = net.read(hidden)
        log_proba = F.log_softmax(logits / self.targets.networks[fold].temperature_, dim=-1)
        labels = data.labels[voters, time][:, None, None]
        soft = self.targets.soft_labels
        soft = None if soft is None else soft[voters, time][:, None, None]
        return hidden, self.targets.judge(log_proba, labels, soft, self.loss)

    def _require_sum(self) -> None:
        if self.reduction != "sum":
            raise ConfigError("Growing plans slot by slot needs loss_reduction='sum'.")

    def _net(self, fold: int) -> WalkingNet:
        net = walking_net(self.targets.predictors[fold])
        if net is None:
            raise ConfigError(
                f"ContrastiveEstimator grows plans slot by slot, which needs a predictor whose "
                f"network can walk; {type(self.targets.predictors[fold]).__name__} has none. Use "
                f"`voting_estimator`, which asks any predictor."
            )
        return net
