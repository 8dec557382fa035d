"""Differentiable episodes of DiFA, and the losses along them.

The forward pass acquires one slot at a time, as a roll-out does. The backward pass sees a slot
that may be known a little more or less, so the gradient of a loss reaches the logits of the policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.cohort.cohort import Cohort
from nocta.policies.difa_model import DifaModel
from nocta.policies.one_at_a_time import slot_prices
from nocta.predictors.encoding import EncodedCohort

#: An episode is given up where it goes on with less than this probability.
_NEGLIGIBLE = 0.01


class Pairs(NamedTuple):
    """Labelled predictions: position in the batch, and time, `(p,)` each."""

    row: Tensor
    time: Tensor


class Episode(NamedTuple):
    """What a batch acquired, step by step; the first step is before any acquisition.

    Args:
        requested: `(s, b, L, M)` what had been asked for; the last of an episode is repeated.
        cost: `(s, b)` what had been charged.
        stops: `(s, b)` probability of stopping there, summing to one.
        visited: `(s, b)` the same if every step of the episode were as likely.
    """

    requested: Tensor
    cost: Tensor
    stops: Tensor
    visited: Tensor


class Subjects:
    """A cohort to train on: simulated episodes and losses, both differentiable."""

    def __init__(
        self, model: DifaModel, cohort: Cohort, known: bool = False, within_visit: bool = True
    ) -> None:
        self.model, self.catalog = model, cohort.catalog
        self.data = EncodedCohort(model.encoder, cohort)
        self.context = self.data.frame[:, 0, cohort.n_times :]
        self.recorded = torch.from_numpy(cohort.recorded)
        self.labelled = torch.from_numpy(cohort.labelled)
        self.within_visit = within_visit
        #: What a policy may ask for: all that is open, or what is known to be there.
        self.offered = self.recorded if known else torch.from_numpy(cohort.catalog.open_slots)
        self.offered = self.offered.expand_as(self.recorded)

    def pairs(self, index: NDArray[np.int64]) -> Pairs:
        """Every labelled prediction of these subjects."""
        row, time = self.labelled[torch.from_numpy(index)].nonzero(as_tuple=True)
        return Pairs(row, time)

    def some_pairs(
        self, index: NDArray[np.int64], per_subject: int, rng: np.random.Generator
    ) -> Pairs:
        """A few labelled predictions per subject, at random."""
        row, time = self.pairs(index)
        n = min(len(row), per_subject * len(index))
        chosen = torch.from_numpy(rng.permutation(len(row))[:n])
        return Pairs(row[chosen], time[chosen])

    def loss(self, index: NDArray[np.int64], requested: Tensor, pairs: Pairs) -> Tensor:
        """Mean cross-entropy of causal predictions after `requested`, `(b, L, M)`."""
        if not len(pairs.row):
            return requested.sum() * 0.0
        return self._losses(index, requested[pairs.row], pairs).mean()

    def losses_along(self, index: NDArray[np.int64], episode: Episode, pairs: Pairs) -> Tensor:
        """Cross-entropy of every prediction at every step, `(s, p)`.

        Acquisitions are in the order of time, so a prediction changes until the clock is past
        its time; it is computed at those steps and copied to the later ones.
        """
        past = torch.arange(self.recorded.shape[1]) <= pairs.time[:, None]  # (p, L)
        before = (episode.requested.detach()[-1, pairs.row].sum(dim=2) * past).sum(dim=1)
        n_changes = before.round().long()
        step = torch.arange(len(episode.requested))[:, None]
        at, pair = (step <= n_changes).nonzero(as_tuple=True)
        chosen = Pairs(pairs.row[pair], pairs.time[pair])
        found = self._losses(index, episode.requested[at, chosen.row], chosen)
        table = torch.zeros(len(step), len(pairs.row)).index_put((at, pair), found)
        return table.gather(0, torch.minimum(step, n_changes))

    def _losses(self, index: NDArray[np.int64], requested: Tensor, pairs: Pairs) -> Tensor:
        """Cross-entropy of each prediction after requests of its own, `(p, L, M)` to `(p,)`."""
        rows = torch.from_numpy(index)[pairs.row]
        slots = self.data.slots[rows] * requested[..., self.data.owner]
        logits = self.model.class_logits(slots, self.context[rows], pairs.time)
        return F.cross_entropy(logits, self.data.labels[rows, pairs.time], reduction="none")

    def episode(
        self, index: NDArray[np.int64], max_acquisitions: int, temperature: float | None = None
    ) -> Episode:
        """Let the policy acquire one slot at a time.

        Args:
            index: The subjects.
            max_acquisitions: Of each.
            temperature: Of the straight-through Gumbel-softmax; an episode then goes on until
                stopping earlier is all but certain. `None` takes the largest logit and stops
                where that is more likely than not.
        """
        subjects = torch.from_numpy(index)
        recorded, full = self.recorded[subjects], self.data.slots[subjects]
        n, length, width = recorded.shape
        requested, cost = torch.zeros(n, length, width), torch.zeros(n)
        clock, going, goes_on = torch.full((n,), -1), torch.arange(n), torch.ones(n)
        trail, costs, stops = [requested], [cost], []
        while len(trail) <= max_acquisitions:
            asked = requested.detach()[going] > 0.5
            earliest = clock[going, None, None] + (not self.within_visit)
            later = torch.arange(length)[:, None] >= earliest
            open_slots = (later & ~asked & self.offered[subjects[going]]).flatten(1)
            logits = self.model.action_logits(
                full[going] * requested[going][..., self.data.owner],
                self.context[subjects[going]],
                clock[going],
            )
            stop = torch.where(open_slots.any(dim=1), logits[:, -1].sigmoid(), 1.0)
            if temperature is None:
                stop = (stop > 0.5).float()
            stops.append(torch.zeros(n).index_put((going,), goes_on[going] * stop))
            goes_on = goes_on.index_put((going,), goes_on[going] * (1 - stop))
            stays = goes_on.detach()[going] > _NEGLIGIBLE
            going = going[stays]
            if not len(going):
                break
            picked = _pick(logits[stays, :-1], open_slots[stays], temperature)
            clock[going] = picked.detach().argmax(dim=1) // width
            picked = picked.view(-1, length, width)
            prices = slot_prices(self.catalog, (asked[stays] & recorded[going]).numpy())
            charge = picked * recorded[going] * torch.from_numpy(prices).float()
            cost = cost.index_add(0, going, charge.sum(dim=(1, 2)))
            requested = requested.index_add(0, going, picked)
            trail.append(requested)
            costs.append(cost)
        return _finished(trail, costs, stops, goes_on)


def _pick(logits: Tensor, open_slots: Tensor, temperature: float | None) -> Tensor:
    """One open slot each, `(n, L * M)`: hard forwards, soft backwards."""
    logits = logits.masked_fill(~open_slots, -torch.inf)
    if temperature is None:
        return F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
    return F.gumbel_softmax(logits, tau=temperature, hard=True)


def _finished(
    trail: list[Tensor], costs: list[Tensor], stops: list[Tensor], goes_on: Tensor
) -> Episode:
    """Stack the steps; whoever would still go on stops at the last step."""
    if len(stops) < len(trail):
        stops = [*stops, torch.zeros_like(goes_on)]
    stopping = torch.stack(stops)
    stopping = torch.cat([stopping[:-1], stopping[-1:] + (1 - stopping.sum(dim=0, keepdim=True))])
    requested = torch.stack(trail)
    n_acquired = requested.detach()[-1].sum(dim=(1, 2)).round()
    visited = (torch.arange(len(trail))[:, None] <= n_acquired).float()
    return Episode(requested, torch.stack(costs), stopping, visited / visited.sum(dim=0))
