"""The mean loss of a plan over the population, counted: the plug-in loss of all training subjects.

Paper: equation 3. With few subjects, this is more precise than a network; each subject is scored by
a predictor that was not trained on it. The mean depends only on what is requested, so each distinct
prefix of a plan is computed once and remembered, from the tables of `slot_shares`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.estimators.slot_shares import AskedFor, ShareTables, can_be_counted
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.objective import PlanningLoss


class PopulationPlugIn(SequentialEstimator):
    """The mean plug-in loss over all training subjects, independent of the subject's values.

    A saved model contains the subjects of `train`, because it needs them to count. `tables` are
    those of another estimator with the same targets.
    """

    def __init__(
        self,
        train: Cohort,
        targets: LossTargets,
        loss: PlanningLoss = "cross-entropy",
        tables: ShareTables | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if not can_be_counted(targets):
            raise ConfigError("Counting over the population needs additive predictors.")
        self.train = train
        self.targets = targets
        self.loss: PlanningLoss = loss
        self._known: dict[bytes, Tensor] = {}
        self.tables = tables or ShareTables(targets, limits)
        self.limits = limits

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}  # remembered means are not copied

    def start(self, observation: Observation) -> AskedFor:
        return AskedFor.nothing_more(observation)

    def branch(
        self, state: AskedFor, time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[AskedFor, Tensor]:
        asked, offered = state.of(parents.numpy()), subsets.numpy()
        flat = asked.reshape(-1, *asked.shape[2:])[:, :time]
        head = b"%d|%d|%s|" % (time, len(offered), self.loss.encode())
        head += np.packbits(offered).tobytes()
        codes = np.packbits(flat.reshape(len(flat), -1), axis=1)
        keys = [head + code.tobytes() for code in codes]
        if len(self._known) > self.limits.remembered_prefixes:
            self._known.clear()
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        rows = np.fromiter(new.values(), dtype=np.int64)
        size = max(len(offered), 2 * offered.shape[1]) * len(self.targets.fold)
        some = max(1, self.limits.lookup_units // size)
        means = [
            self._means(flat[rows[i : i + some]], time, subsets) for i in range(0, len(rows), some)
        ]
        self._known |= zip(new, torch.cat(means) if means else (), strict=True)
        found = torch.stack([self._known[key] for key in keys])
        return AskedFor(asked, time, offered), found.view(*parents.shape, len(offered))

    @torch.no_grad()
    def _means(self, masks: NDArray[np.bool_], time: int, subsets: Tensor) -> Tensor:
        slot = self.tables.at(time)
        losses = slot.losses(*slot.of(masks), subsets, self.loss)
        return losses.sum(dim=-1) / len(self.targets.fold)
