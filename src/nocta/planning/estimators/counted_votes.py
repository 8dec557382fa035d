"""NOCT-Contrastive for additive predictors: the voters' losses are looked up in tables.

What a feature adds to the prediction of each subject is computed once per feature and pattern
(`slot_shares.py`); after that, the loss of a voter under a plan needs only additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.policy import Observation
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.retrieval import NeighborBank, Neighbors
from nocta.planning.estimators.slot_shares import AskedFor, ShareTables
from nocta.planning.estimators.targets import LossTargets


class CountedState(NamedTuple):
    """The voters of every subject, and what its prefixes request."""

    neighbors: Neighbors
    asked: AskedFor


class CountedContrastive(ContrastiveEstimator):
    """The same votes, looked up in tables.

    Args:
        bank: Finds the neighbors.
        targets: Losses of the same training subjects, by predictors that add up features.
        tables: Tables of the same targets, if another estimator has them.
        options: Options of `ContrastiveEstimator`.
    """

    chunk = 32

    def __init__(
        self,
        bank: NeighborBank,
        targets: LossTargets,
        *,
        tables: ShareTables | None = None,
        **options: Any,
    ) -> None:
        super().__init__(bank, targets, **options)
        self.tables = tables or ShareTables(targets, self.limits)

    def start(self, observation: Observation) -> CountedState:  # type: ignore[override]
        self._require_sum()
        return CountedState(self.bank.nearest(observation), AskedFor.nothing_more(observation))

    @torch.no_grad()
    def branch(  # type: ignore[override]
        self, state: CountedState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[CountedState, Tensor]:
        asked, (n, q), s = state.asked.of(parents.numpy()), parents.shape, len(subsets)
        masks = asked[:, :, :time].reshape(n * q, time, asked.shape[-1])
        subjects, weight, _ = state.neighbors
        row = torch.arange(n).repeat_interleave(q)  # the subject of each prefix
        who = self.tables.at(time).position[subjects]
        k, n_classes = who.shape[1], self.targets.predictors[0].n_classes_
        some = max(1, self.limits.lookup_units // (max(s, subsets.shape[1]) * k * n_classes))
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
        slot = self.tables.at(time)
        if not len(slot.truth[0]):
            return torch.zeros(len(masks), len(subsets))
        # A voter without a label at this slot has no loss: position 0 stands in, with weight 0.
        weight, who = weight * (who >= 0), who.clamp(min=0)
        losses = slot.losses(*slot.of_some(masks, who), subsets, self.loss, who)
        return (losses @ weight[:, :, None])[:, :, 0]
