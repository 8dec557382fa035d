"""What each feature adds to an additive prediction at one slot, by its pattern of earlier requests.

This depends on nothing else, so it is computed once per feature and pattern, for all training
subjects. Predictions under any plan are then sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.policy import Observation
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.objective import PlanningLoss
from nocta.predictors.walking import additive_net, next_shares


class AskedFor(NamedTuple):
    """What some prefixes have requested; prefix i continues i // s with subset i % s."""

    before: NDArray[np.bool_]  # (n, q, L, M)
    time: int
    subsets: NDArray[np.bool_]  # (s, M)

    def of(self, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        """What the chosen prefixes `(n, q')` have requested, `(n, q', L, M)`."""
        which, subset = np.divmod(chosen, len(self.subsets))
        found = np.take_along_axis(self.before, which[:, :, None, None], axis=1)
        if self.time >= 0:
            found[:, :, self.time] |= self.subsets[subset]
        return found

    @classmethod
    def nothing_more(cls, observation: Observation) -> Self:
        """One prefix per subject: its requests so far."""
        asked = observation.history.requested[:, None].copy()
        return cls(asked, -1, np.zeros((1, asked.shape[-1]), dtype=bool))


class ShareTables:
    """The tables of all slots, computed on first use; estimators of the same targets share them."""

    def __init__(self, targets: LossTargets, limits: Limits = DEFAULT_LIMITS) -> None:
        self.targets, self.limits = targets, limits
        self._slots: dict[int, SlotShares] = {}

    def at(self, time: int) -> SlotShares:
        if time not in self._slots:
            self._slots[time] = SlotShares(self.targets, time, self.limits)
        return self._slots[time]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_slots": {}}  # tables are not copied


class SlotShares:
    """What each feature adds to the predictions at one slot, by its pattern.

    Only for the `v` training subjects that have a label at the slot; the others have no loss.
    """

    def __init__(self, targets: LossTargets, time: int, limits: Limits = DEFAULT_LIMITS) -> None:
        self.targets, self.time, self.limits = targets, time, limits
        folds = torch.from_numpy(targets.fold)
        folds = torch.where(targets.labeled[:, time], folds, -1)
        self.members = [torch.nonzero(folds == f)[:, 0] for f in range(len(targets.predictors))]
        order = torch.cat(self.members)
        soft = targets.soft_labels
        labels = targets.data[0].labels[order, time]
        self.truth = labels, None if soft is None else soft[order, time]
        self.position = torch.full((len(folds),), -1)  # of every subject among the v
        self.position[order] = torch.arange(len(order))
        self.place: dict[tuple[int, bytes], int] = {}
        self.free = torch.zeros(0)  # (C, v), the same whatever was acquired
        self.table = torch.zeros(0)  # (patterns, 2, C, v): not acquired at the slot, acquired

    def of(self, masks: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Logits with nothing acquired at the slot, and what each feature would add to them.

        `(p, C, v)` and `(p, M, C, v)`, after earlier requests `(p, time, M)`.
        """
        rows = self._rows(masks)  # first: it may replace the table
        found = self.table[rows]  # (p, M, 2, C, v)
        return self.free + found[:, :, 0].sum(dim=1), found[:, :, 1] - found[:, :, 0]

    def of_some(self, masks: NDArray[np.bool_], who: Tensor) -> tuple[Tensor, Tensor]:
        """The same for `k` subjects each, at positions `(p, k)`: `(p, C, k)`, `(p, M, C, k)`."""
        rows = self._rows(masks)
        found = self.table.permute(0, 3, 1, 2)[rows[:, :, None], who[:, None]]  # (p, M, k, 2, C)
        without, with_it = found.transpose(2, 4).unbind(dim=3)  # (p, M, C, k)
        return self.free[:, who].transpose(0, 1) + without.sum(dim=1), with_it - without

    def losses(
        self,
        without: Tensor,
        more: Tensor,
        subsets: Tensor,
        loss: PlanningLoss,
        who: Tensor | None = None,
    ) -> Tensor:
        """Losses after acquiring each subset, `(p, s, k)`, from the output of `of` or `of_some`.

        `who`, `(p, k)`, are the positions of the subjects; all by default.
        """
        gained = subsets.float() @ more.flatten(2)
        logits = without[:, None] + gained.view(*gained.shape[:2], *without.shape[1:])
        # The class axis is strided: several times faster than a contiguous one.
        log_proba = F.log_softmax(logits, dim=2).movedim(2, -1)
        labels, soft = self.truth
        if who is not None:
            labels, soft = labels[who][:, None], None if soft is None else soft[who][:, None]
        return self.targets.judge(log_proba, labels, soft, loss)

    def _rows(self, masks: NDArray[np.bool_]) -> Tensor:
        """Where in the table each feature's pattern is, `(p, M)`."""
        keys = [[(m, column.tobytes()) for m, column in enumerate(mask.T.copy())] for mask in masks]
        wanted = {key for row in keys for key in row}
        if self.table.numel() > self.limits.table_units or (self.place and not self.table.numel()):
            self.place, self.table = {}, torch.zeros(0)
        self._learn(sorted(wanted - self.place.keys()))
        return torch.tensor([[self.place[key] for key in row] for row in keys])

    def _learn(self, wanted: list[tuple[int, bytes]]) -> None:
        """Compute new patterns; one mask holds a pattern of every feature."""
        if not wanted:
            return
        n_features = int(self.targets.data[0].owner.max()) + 1
        waiting: list[list[bytes]] = [[] for _ in range(n_features)]
        for feature, pattern in wanted:
            waiting[feature].append(pattern)
        masks = np.zeros((max(map(len, waiting)), self.time, len(waiting)), dtype=bool)
        for feature, patterns in enumerate(waiting):
            for i, pattern in enumerate(patterns):
                masks[i, :, feature] = np.frombuffer(pattern, dtype=bool)
        size = max(self.time, 1) * len(waiting) * max(len(self.truth[0]), 1)
        some = max(1, self.limits.lookup_units // size)
        pieces = [self._shares(masks[i : i + some]) for i in range(0, len(masks), some)]
        added = torch.cat(pieces)  # (p, 2, v, M, C)
        rows = []
        for feature, patterns in enumerate(waiting):
            for i, pattern in enumerate(patterns):
                self.place[feature, pattern] = len(self.place)
                rows.append(added[i, :, :, feature].transpose(1, 2))
        new = torch.stack(rows)
        self.table = torch.cat([self.table, new]) if len(self.table) else new

    def _shares(self, masks: NDArray[np.bool_]) -> Tensor:
        parts, free = [], []
        for fold, rows in enumerate(self.members):
            predictor, data = self.targets.networks[fold], self.targets.data[fold]
            net, p = additive_net(self.targets.predictors[fold]), len(masks)
            assert net is not None
            state = torch.zeros(p, len(rows), net.state_width)
            if self.time:
                shown = torch.from_numpy(masks).float()[..., data.owner][:, None]
                slots = data.slots[rows][:, : self.time] * shown
                frame = data.frame[rows][:, : self.time].expand(p, -1, -1, -1)
                walked = net.walk(torch.cat([slots, frame], dim=-1).flatten(0, 1))
                state = walked[:, -1].view(p, len(rows), net.state_width)
            here, frame = data.slots[rows, self.time], data.frame[rows, self.time]
            never, without, with_it = next_shares(net, state, here, frame)
            heat = predictor.temperature_
            free.append(never[0] / heat)
            parts.append(torch.stack([without, with_it], dim=1) / heat)
        self.free = torch.cat(free).T
        return torch.cat(parts, dim=2)


def can_be_counted(targets: LossTargets) -> bool:
    """Whether losses can be looked up: every predictor adds up its features."""
    return all(additive_net(p) is not None for p in targets.predictors)
