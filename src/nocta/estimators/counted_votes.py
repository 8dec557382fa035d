"""NOCT-Contrastive where features add up: what the voters lose is looked up.

With few subjects and a linear predictor, what a feature adds to anybody's prediction is computed
once per feature and pattern (`nocta.estimators.slot_shares`); a voter under a plan costs additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.estimators.contrastive import ContrastiveEstimator
from nocta.estimators.retrieval import NeighborBank, Neighbors
from nocta.estimators.slot_shares import UNITS, AskedFor, SlotShares, can_be_counted
from nocta.estimators.targets import LossTargets
from nocta.objective import LossReduction, PlanningLoss
from nocta.policies.base import Observation


class CountedState(NamedTuple):
    """Who votes for every subject, and what its prefixes ask for."""

    neighbors: Neighbors
    asked: AskedFor


class CountedContrastive(ContrastiveEstimator):
    """The same votes from tables; arguments as for `ContrastiveEstimator`."""

    def __init__(
        self,
        bank: NeighborBank,
        targets: LossTargets,
        loss: PlanningLoss = "cross-entropy",
        reduction: LossReduction = "sum",
    ) -> None:
        super().__init__(bank, targets, loss, reduction)
        self._slots: dict[int, SlotShares] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_slots": {}}  # what is remembered stays behind

    def start(self, observation: Observation) -> CountedState:  # type: ignore[override]
        self._require_sum()
        return CountedState(self.bank.nearest(observation), AskedFor.nothing_more(observation))

    @torch.no_grad()
    def branch(  # type: ignore[override]
        self, state: CountedState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[CountedState, Tensor]:
        asked, (n, q), s = state.asked.of(parents.numpy()), parents.shape, len(subsets)
        if time not in self._slots:
            self._slots[time] = SlotShares(self.targets, time)
        masks = asked[:, :, :time].reshape(n * q, time, asked.shape[-1])
        subjects, weight, _ = state.neighbors
        row = torch.arange(n).repeat_interleave(q)  # whose voters a prefix asks
        who = self._slots[time].position[subjects]
        k, n_classes = who.shape[1], self.targets.predictors[0].n_classes_
        some = max(1, UNITS // (max(s, subsets.shape[1]) * k * n_classes))
        votes = [
            self._votes(time, masks[i : i + some], who[rows], weight[rows], subsets)
            for i in range(0, n * q, some)
            for rows in (row[i : i + some],)
        ]
        after = AskedFor(asked, time, subsets.numpy())
        return CountedState(state.neighbors, after), torch.cat(votes).view(n, q, s)

    def _votes(
        self, time: int, masks: NDArray[np.bool_], who: Tensor, weight: Tensor, subsets: Tensor
    ) -> Tensor:
        """Mean loss of the voters at a slot, by prefix and subset, `(p, s)`."""
        slot = self._slots[time]
        labels, soft = slot.truth
        if not len(labels):
            return torch.zeros(len(masks), len(subsets))
        # Nobody without a label there has a loss: looked up like somebody else, counted as nothing.
        weight, who = weight * (who >= 0), who.clamp(min=0)
        without, more = slot.of_some(masks, who)  # (p, C, k), (p, M, C, k)
        gained = subsets.float() @ more.flatten(2)
        logits = without[:, None] + gained.view(*gained.shape[:2], *without.shape[1:])
        log_proba = F.log_softmax(logits, dim=2).movedim(2, -1)  # (p, s, k, C)
        truth = labels[who][:, None], None if soft is None else soft[who][:, None]
        losses = self.targets.judge(log_proba, *truth, self.loss)
        return (losses @ weight[:, :, None])[:, :, 0]


def votes_of(
    bank: NeighborBank,
    targets: LossTargets,
    loss: PlanningLoss = "cross-entropy",
    reduction: LossReduction = "sum",
) -> ContrastiveEstimator:
    """The estimator whose plans grow fastest with these predictors."""
    kind = CountedContrastive if can_be_counted(targets) else ContrastiveEstimator
    return kind(bank, targets, loss, reduction)
