"""The parts DiFA decides and predicts with: a state with imputations, two networks, the policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.methods.difa.vaeac import SkipNet, Vaeac
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots

_CHUNK = 512


class DifaNetworks(nn.Module):
    """Predictor and policy over one state: completed slots, time, context.

    The policy also reads what is pending at the current visit. `nearness`, `stop_logit` and
    `end_logit` set where its logits begin, see `DifaOptions`.
    """

    def __init__(
        self,
        width: int,
        n_classes: int,
        shape: tuple[int, int],
        hidden: int,
        nearness: float,
        stop_logit: float,
        end_logit: float,
    ) -> None:
        super().__init__()
        self.n_times, self.n_features = shape
        n_slots = self.n_times * self.n_features
        self.predictor = SkipNet(width, n_classes, hidden)
        self.policy = SkipNet(width + self.n_features, n_slots + 2, hidden)
        with torch.no_grad():
            self.policy.head.bias[-2:] += torch.tensor([stop_logit, end_logit])
        # Share of a logit by how many slots ahead it is; the current visit and the next are near.
        ahead = torch.arange(self.n_times + 1, dtype=torch.float32)
        self.nearness = nn.Parameter(-nearness * (ahead - 1).clamp(min=0))

    def set_dropout(self, rate: float) -> None:
        self.predictor.drop.p = self.policy.drop.p = rate

    def action_logits(self, state: Tensor, clock: Tensor, pending: Tensor) -> Tensor:
        """One logit per slot and a last one, `(n, L * M + 1)`.

        The last one is for stopping, or for ending the current visit if some of it is `pending`.
        """
        logits = self.policy(torch.cat([state, pending], dim=1))
        ahead = (torch.arange(self.n_times) - clock[:, None]).clamp(min=0)  # (n, L)
        near = self.nearness[ahead].repeat_interleave(self.n_features, dim=1)
        waiting = pending.detach().sum(dim=1, keepdim=True) > 0
        last = torch.where(waiting, logits[:, -1:], logits[:, -2:-1])
        return torch.cat([logits[:, :-2] + near, last], dim=1)


class DifaModel:
    """Encoder, imputer and networks: states, predictions and logits from slots."""

    def __init__(self, imputer: Vaeac, networks: DifaNetworks) -> None:
        self.encoder, self.imputer, self.networks = imputer.encoder_, imputer, networks

    def state(self, slots: Tensor, context: Tensor, time: Tensor) -> Tensor:
        """Acquired values with imputations of the rest, the mask, the time (none at -1)."""
        now = F.one_hot(time + 1, self.networks.n_times + 1)[:, 1:].float()
        return torch.cat([self.imputer.complete(slots, context).flatten(1), now, context], dim=1)

    def class_logits(self, slots: Tensor, context: Tensor, time: Tensor) -> Tensor:
        """Logits of the label at `time` from the slots up to it; later ones are hidden."""
        past = torch.arange(slots.shape[1]) <= time[:, None]
        found: Tensor = self.networks.predictor(self.state(slots * past[..., None], context, time))
        return found

    def action_logits(
        self, slots: Tensor, context: Tensor, clock: Tensor, pending: Tensor
    ) -> Tensor:
        """As those of the networks; `slots` hold imputations in place of what is pending."""
        return self.networks.action_logits(self.state(slots, context, clock), clock, pending)


@dataclass(eq=False)
class DifaPolicy(Policy):
    """Acquires the open slot with the largest logit, or stops if that is more likely than not.

    While results are pending, a visit goes on with its open slot with the largest logit, or ends
    if ending has a larger one.
    """

    acts_within_visit = True

    model: DifaModel
    max_acquisitions: int

    @torch.no_grad()
    def decide(self, observation: Observation) -> Decision:
        slots, context = self._encode(observation.history)
        clock, waiting = torch.from_numpy(observation.time), observation.waiting
        pending = (observation.requested & ~observation.history.requested).any(axis=1)
        logits = self.model.action_logits(
            slots, context, clock, torch.from_numpy(pending).float()
        ).numpy()
        takes = affordable_slots(observation)
        here = np.arange(takes.shape[1]) == observation.time[:, None]
        takes &= (here | ~waiting[:, None])[:, :, None]
        takes &= (observation.requested.sum(axis=(1, 2)) < self.max_acquisitions)[:, None, None]
        found = np.where(takes.reshape(len(takes), -1), logits[:, :-1], -np.inf)
        best, last = found.max(axis=1), logits[:, -1]
        goes_on = np.where(waiting, best > last, (last <= 0) & ~np.isneginf(best))
        return acquire_slot(np.where(goes_on, found.argmax(axis=1), -1), observation)

    @torch.no_grad()
    def predict_proba(self, history: History) -> NDArray[np.float32]:
        length = history.values.shape[1]
        times = torch.arange(length)
        parts = []
        for rows in np.array_split(np.arange(len(history)), len(history) // _CHUNK + 1):
            slots, context = self._encode(history.subset(rows))
            n = len(rows)
            logits = self.model.class_logits(
                slots.repeat_interleave(length, dim=0),
                context.repeat_interleave(length, dim=0),
                times.repeat(n),
            )
            parts.append(logits.softmax(dim=1).view(n, length, -1))
        return torch.cat(parts).numpy()

    def _encode(self, history: History) -> tuple[Tensor, Tensor]:
        encoder = self.model.encoder
        slots = encoder.encode_slots(history.values, history.unavailable)
        return slots, encoder.encode_frame(history.context)[:, 0, encoder.n_times_ :]
