"""What a plan does on average, counted: the plug-in loss of all training subjects (equation 3).

With few subjects no network knows this as well as the subjects themselves, each judged by a
predictor that never saw it. The average does not depend on anybody's values, only on what is asked
for, so each distinct beginning of a plan is looked at once and remembered. What a feature adds to
a prediction depends on when that feature was asked for and on nothing else, so that is computed
once per feature and pattern, and a plan costs additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.cohort.cohort import Cohort
from nocta.estimators.base import SequentialEstimator
from nocta.estimators.targets import LossTargets
from nocta.exceptions import ConfigError
from nocta.objective import PlanningLoss
from nocta.policies.base import Observation
from nocta.predictors.walking import AdditiveNet, next_shares

#: Beginnings of plans whose averages are remembered, at most.
_MOST_REMEMBERED = 200_000
#: Numbers of a slot's table that are remembered, about.
_MOST_HELD = 1 << 25
#: Numbers held at once while beginnings are looked at; bounds memory.
_UNITS = 1 << 22


class AskedFor(NamedTuple):
    """What some prefixes have asked for; prefix i continues i // s by subset i % s."""

    before: NDArray[np.bool_]  # (n, q, L, M)
    time: int
    subsets: NDArray[np.bool_]  # (s, M)

    def of(self, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        """What the chosen prefixes `(n, q')` have asked for, `(n, q', L, M)`."""
        which, subset = np.divmod(chosen, len(self.subsets))
        found = np.take_along_axis(self.before, which[:, :, None, None], axis=1)
        if self.time >= 0:
            found[:, :, self.time] |= self.subsets[subset]
        return found


class PopulationPlugIn(SequentialEstimator):
    """The mean plug-in loss over all training subjects, whatever the subject's own values.

    Args:
        train: The subjects; kept with a saved model, which could not go on counting otherwise.
        targets: Their losses, by predictors to whose outputs features add.
        loss: Which loss plans are scored by; may be changed at any time.
    """

    def __init__(
        self, train: Cohort, targets: LossTargets, loss: PlanningLoss = "cross-entropy"
    ) -> None:
        if not can_be_counted(targets):
            raise ConfigError("Counting over the population needs predictors that are additive.")
        self.train = train
        self.targets = targets
        self.loss: PlanningLoss = loss
        self._known: dict[bytes, Tensor] = {}
        self._slots: dict[int, _SlotShares] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}, "_slots": {}}  # what is remembered stays behind

    def start(self, observation: Observation) -> AskedFor:
        asked = observation.history.requested[:, None].copy()
        return AskedFor(asked, -1, np.zeros((1, asked.shape[-1]), dtype=bool))

    def branch(
        self, state: AskedFor, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[AskedFor, Tensor]:
        asked, offered = state.of(parents.numpy()), subsets.numpy()
        flat = asked.reshape(-1, *asked.shape[2:])[:, :time]
        head = b"%d|%d|%s|" % (time, len(offered), self.loss.encode())
        head += np.packbits(offered).tobytes()
        codes = np.packbits(flat.reshape(len(flat), -1), axis=1)
        keys = [head + code.tobytes() for code in codes]
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        rows = np.fromiter(new.values(), dtype=np.int64)
        some = max(1, _UNITS // (max(len(offered), 2 * offered.shape[1]) * len(self.targets.fold)))
        means = [
            self._means(flat[rows[i : i + some]], time, subsets) for i in range(0, len(rows), some)
        ]
        self._known |= zip(new, torch.cat(means) if means else (), strict=True)
        found = torch.stack([self._known[key] for key in keys])
        return AskedFor(asked, time, offered), found.view(*parents.shape, len(offered))

    @torch.no_grad()
    def _means(self, masks: NDArray[np.bool_], time: int, subsets: Tensor) -> Tensor:
        """Mean loss at a slot after each of some requests `(p, time, M)`, by subset, `(p, s)`."""
        if time not in self._slots:
            self._slots[time] = _SlotShares(self.targets, time)
        slot = self._slots[time]
        without, more = slot.of(masks)  # (p, C, v), (p, M, C, v)
        gained = subsets.float() @ more.flatten(2)
        logits = without[:, None] + gained.view(*gained.shape[:2], *without.shape[1:])
        # Over classes that lie apart in memory: several times faster than over neighbours.
        log_proba = F.log_softmax(logits, dim=2).movedim(2, -1)
        losses = self.targets.judge(log_proba, *slot.truth, self.loss)
        return losses.sum(dim=-1) / len(self.targets.fold)


class _SlotShares:
    """What each feature adds to the predictions at one slot, by its pattern.

    Of `v` training subjects: those who have a label there, since nobody else has a loss.

    Args:
        targets: Holds the subjects and their predictors.
        time: The slot.
    """

    def __init__(self, targets: LossTargets, time: int) -> None:
        self.targets, self.time = targets, time
        folds = torch.from_numpy(targets.fold)
        folds = torch.where(targets.labelled[:, time], folds, -1)
        self.members = [torch.nonzero(folds == f)[:, 0] for f in range(len(targets.predictors))]
        order = torch.cat(self.members)
        soft = targets.soft_labels
        labels = targets.data[0].labels[order, time]
        self.truth = labels, None if soft is None else soft[order, time]
        self.place: dict[tuple[int, bytes], int] = {}
        self.free = torch.zeros(0)  # (C, v), the same whatever was acquired
        self.table = torch.zeros(0)  # (patterns, 2, C, v): not acquired at the slot, acquired

    def of(self, masks: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Logits with nothing acquired at the slot, and what each feature would add to them."""
        keys = [[(m, column.tobytes()) for m, column in enumerate(mask.T.copy())] for mask in masks]
        wanted = {key for row in keys for key in row}
        if self.table.numel() > _MOST_HELD:
            self.place, self.table = {}, torch.zeros(0)
        self._learn(sorted(wanted - self.place.keys()))
        index = torch.tensor([[self.place[key] for key in row] for row in keys])
        found = self.table[index]  # (p, M, 2, C, v)
        return self.free + found[:, :, 0].sum(dim=1), found[:, :, 1] - found[:, :, 0]

    def _learn(self, wanted: list[tuple[int, bytes]]) -> None:
        """Patterns of different features are looked at together, one mask for many."""
        if not wanted:
            return
        n_features = self.targets.data[0].owner.max().item() + 1
        waiting: list[list[bytes]] = [[] for _ in range(int(n_features))]
        for feature, pattern in wanted:
            waiting[feature].append(pattern)
        masks = np.zeros((max(map(len, waiting)), self.time, len(waiting)), dtype=bool)
        for feature, patterns in enumerate(waiting):
            for i, pattern in enumerate(patterns):
                masks[i, :, feature] = np.frombuffer(pattern, dtype=bool)
        some = max(1, _UNITS // (max(self.time, 1) * len(waiting) * max(len(self.truth[0]), 1)))
        pieces = [self._shares(masks[i : i + some]) for i in range(0, len(masks), some)]
        added = torch.cat(pieces)  # (p, 2, v, M, C)
        rows = []
        for feature, patterns in enumerate(waiting):
            for i, pattern in enumerate(patterns):
                self.place[feature, pattern] = len(self.place)
                rows.append(added[i, :, :, feature].transpose(1, 2))
        self.table = (
            torch.cat([self.table, torch.stack(rows)]) if len(self.table) else torch.stack(rows)
        )

    def _shares(self, masks: NDArray[np.bool_]) -> Tensor:
        parts, free = [], []
        for fold, rows in enumerate(self.members):
            predictor, data = self.targets.predictors[fold], self.targets.data[fold]
            net, p = predictor.net_, len(masks)
            assert isinstance(net, AdditiveNet)
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
    """Whether the average can be counted: features add to the outputs of every predictor."""
    return all(isinstance(p.net_, AdditiveNet) for p in targets.predictors)
