"""NOCT-Contrastive with a predictor of any kind: the voters' losses come from `predict_proba`.

A voter's loss at a slot depends on the voter and on what was requested up to that slot, and on
nothing else. So it is predicted once and remembered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.policy import Observation
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.counted_votes import CountedContrastive, CountedState
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.slot_shares import AskedFor, ShareTables, can_be_counted
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.walking import walking_net

#: Histories predicted at once; bounds memory.
_AT_ONCE = 8192


class PredictedContrastive(ContrastiveEstimator):
    """The same votes from a predictor that cannot walk slot by slot; arguments as there."""

    chunk = 32

    def __init__(self, bank: NeighborBank, targets: LossTargets, **options: Any) -> None:
        super().__init__(bank, targets, **options)
        # By slot, loss and requests: the loss of every training subject, NaN if not known yet.
        self._known: dict[bytes, NDArray[np.float32]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}

    def start(self, observation: Observation) -> CountedState:  # type: ignore[override]
        self._require_sum()
        return CountedState(self.bank.nearest(observation), AskedFor.nothing_more(observation))

    @torch.no_grad()
    def branch(  # type: ignore[override]
        self, state: CountedState, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[CountedState, Tensor]:
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
        return CountedState(state.neighbors, AskedFor(asked, time, offered)), votes.view(n, q, -1)

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

    Args:
        bank: Finds the neighbors.
        targets: Losses of the same training subjects under any request.
        tables: Tables of another estimator; used if they are of the same targets.
        options: Options of `ContrastiveEstimator`.
    """
    if can_be_counted(targets):
        shared = tables if tables is not None and tables.targets is targets else None
        return CountedContrastive(bank, targets, tables=shared, **options)
    walks = all(walking_net(predictor) is not None for predictor in targets.predictors)
    kind = ContrastiveEstimator if walks else PredictedContrastive
    return kind(bank, targets, **options)
