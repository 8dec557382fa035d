"""NOCT-Contrastive for other predictors than walking networks: what a voter loses is remembered.

If the predictor is additive, the voters' losses are looked up in tables: what a feature adds to the
prediction of each subject is computed once per feature and pattern (`slot_shares.py`), and the
loss under a plan needs only additions. Any other predictor is asked for `predict_proba`: a
voter's loss at a slot depends only on what was requested up to it, so it is predicted once.
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
from nocta.planning.estimators.slot_shares import AskedFor, ShareTables, can_be_counted
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.walking import walking_net

#: Histories predicted at once; bounds memory.
_AT_ONCE = 8192


class AskedState(NamedTuple):
    """The voters of every subject, and what its prefixes request."""

    neighbors: Neighbors
    asked: AskedFor


class _AskingContrastive(ContrastiveEstimator):
    """Votes whose state is only what was requested."""

    chunk = 32

    def start(self, observation: Observation) -> AskedState:  # type: ignore[override]
        self._require_sum()
        return AskedState(self.bank.nearest(observation), AskedFor.nothing_more(observation))


class CountedContrastive(_AskingContrastive):
    """The same votes, looked up in tables; predictors must add up features."""

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

    @torch.no_grad()
    def branch(  # type: ignore[override]
        self, state: AskedState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[AskedState, Tensor]:
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
        return AskedState(state.neighbors, after), torch.cat(votes).view(n, q, s)

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


class PredictedContrastive(_AskingContrastive):
    """The same votes from a predictor that cannot walk slot by slot; arguments as there."""

    def __init__(self, bank: NeighborBank, targets: LossTargets, **options: Any) -> None:
        super().__init__(bank, targets, **options)
        # By slot, loss and requests: the loss of every training subject, NaN if not known yet.
        self._known: dict[bytes, NDArray[np.float32]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}

    @torch.no_grad()
    def branch(  # type: ignore[override]
        self, state: AskedState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[AskedState, Tensor]:
        asked, offered = state.asked.of(parents.numpy()), subsets.numpy()
        n, q = asked.shape[:2]
        subjects, weight, _ = state.neighbors
        if len(self._known) * len(self.targets.fold) > self.limits.table_units:
            self._known.clear()
        votes = torch.empty(n, q * len(offered))
        for i in range(n):
            masks = np.repeat(asked[i], len(offered), axis=0)  # (q * s, L, M)
            masks[:, time] |= np.tile(offered, (q, 1))
            masks[:, time + 1 :] = False
            votes[i] = self._losses(masks, subjects[i].numpy(), time) @ weight[i]
        return AskedState(state.neighbors, AskedFor(asked, time, offered)), votes.view(n, q, -1)

    def _losses(self, masks: NDArray[np.bool_], voters: NDArray[np.int64], time: int) -> Tensor:
        """Losses at a slot after requests `(p, L, M)`, by voter, `(p, K)`."""
        head = b"%d|%s|" % (time, self.loss.encode())
        codes = np.packbits(masks.reshape(len(masks), -1), axis=1)
        unknown = np.full(len(self.targets.fold), np.nan, dtype=np.float32)
        tables = [self._known.setdefault(head + c.tobytes(), unknown.copy()) for c in codes]
        missing = [(p, voters[np.isnan(t[voters])]) for p, t in enumerate(tables)]
        rows = np.repeat([p for p, _ in missing], [len(v) for _, v in missing])
        index = np.concatenate([v for _, v in missing])
        kind = self.targets.kinds.index(self.loss)
        for i in range(0, len(rows), _AT_ONCE):
            some = slice(i, i + _AT_ONCE)
            found = self.targets(index[some], masks[rows[some]])[:, time, kind].numpy()
            for row, voter, loss in zip(rows[some], index[some], found, strict=True):
                tables[row][voter] = loss
        return torch.from_numpy(np.stack([table[voters] for table in tables]))


def voting_estimator(
    bank: NeighborBank, targets: LossTargets, *, tables: ShareTables | None = None, **options: Any
) -> ContrastiveEstimator:
    """The kind of NOCT-Contrastive whose plans grow fastest with these predictors.

    `tables` of another estimator are used if they are of the same targets.
    """
    if can_be_counted(targets):
        shared = tables if tables is not None and tables.targets is targets else None
        return CountedContrastive(bank, targets, tables=shared, **options)
    walks = all(walking_net(predictor) is not None for predictor in targets.predictors)
    kind = ContrastiveEstimator if walks else PredictedContrastive
    return kind(bank, targets, **options)
