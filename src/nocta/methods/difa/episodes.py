"""Differentiable episodes of DiFA, and the losses along them.

The forward pass acquires one slot at a time, as a roll-out does. The backward pass sees a slot
that may be known a little more or less, so the gradient of a loss reaches the logits of the policy.
If results come back after a visit, a step is a visit: its slots are ordered one after the other,
each in the knowledge of which are pending, until a pick says that it is over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Results, offered_slots
from nocta.methods.difa.networks import DifaModel
from nocta.methods.one_at_a_time import slot_prices
from nocta.predictors.encoding import EncodedCohort

#: An episode is given up if it goes on with less than this probability.
_NEGLIGIBLE = 0.01


class Pairs(NamedTuple):
    """Labeled predictions: position in the batch, and time, `(p,)` each."""

    row: Tensor
    time: Tensor


class Episode(NamedTuple):
    """What a batch acquired, step by step: an acquisition each, or a visit; first nothing."""

    requested: Tensor  # (s, b, L, M) what had been asked for; the last of an episode is repeated
    cost: Tensor  # (s, b) what had been charged
    stops: Tensor  # (s, b) probability of stopping there, summing to one
    visited: Tensor  # (s, b) the same if every step of the episode were as likely


class Subjects:
    """A cohort to train on: simulated episodes and losses, both differentiable."""

    def __init__(
        self,
        model: DifaModel,
        cohort: Cohort,
        availability: Availability = "on-arrival",
        results: Results = "after-visit",
    ) -> None:
        self.model, self.catalog = model, cohort.catalog
        self.data = EncodedCohort(model.encoder, cohort)
        self.context = self.data.frame[:, 0, cohort.n_times :]
        self.recorded = torch.from_numpy(cohort.recorded)
        self.labeled = torch.from_numpy(cohort.labeled)
        self.whole_visits = results == "after-visit"
        #: What a policy may ask for: all that is open, or what is known to be there.
        self.offered = torch.from_numpy(offered_slots(cohort, availability).copy())

    def pairs(self, index: NDArray[np.int64]) -> Pairs:
        """Every labeled prediction of these subjects."""
        row, time = self.labeled[torch.from_numpy(index)].nonzero(as_tuple=True)
        return Pairs(row, time)

    def some_pairs(
        self, index: NDArray[np.int64], per_subject: int, rng: np.random.Generator
    ) -> Pairs:
        """A few labeled predictions per subject, at random."""
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
        added = episode.requested.detach().sum(dim=3).diff(dim=0)[:, pairs.row]
        n_changes = ((added * past).sum(dim=2) > 0.5).sum(dim=0)
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

        `temperature` is that of the straight-through Gumbel-softmax; an episode then goes on until
        stopping earlier is all but certain. Without one, the largest logit is taken, and an episode
        stops if that is more likely than not.
        """
        run = _Run(self, index, max_acquisitions, temperature)
        goes_on = torch.ones(len(index))
        trail, costs, stops = [run.requested], [run.cost], []
        going = torch.arange(len(index))
        while True:
            open_slots, logits = run.open_slots(going), run.logits(going)
            stop = torch.where(open_slots.any(dim=1), logits[:, -1].sigmoid(), 1.0)
            if temperature is None:
                stop = (stop > 0.5).float()
            stops.append(torch.zeros(len(index)).index_put((going,), goes_on[going] * stop))
            goes_on = goes_on.index_put((going,), goes_on[going] * (1 - stop))
            stays = goes_on.detach()[going] > _NEGLIGIBLE
            going = going[stays]
            if not len(going):
                break
            run.acquire(going, _pick(logits[stays, :-1], open_slots[stays], temperature))
            if self.whole_visits:
                run.complete_visit(going)
            trail.append(run.requested)
            costs.append(run.cost)
        return _finished(trail, costs, stops)


class _Run:
    """The state of running episodes: what was asked for, what it cost, which visit they are at."""

    def __init__(
        self,
        subjects: Subjects,
        index: NDArray[np.int64],
        max_acquisitions: int,
        temperature: float | None,
    ) -> None:
        rows = torch.from_numpy(index)
        self.model, self.catalog, self.owner = subjects.model, subjects.catalog, subjects.data.owner
        self.context, self.slots = subjects.context[rows], subjects.data.slots[rows]
        self.recorded, self.offered = subjects.recorded[rows], subjects.offered[rows]
        self.max_acquisitions, self.temperature = max_acquisitions, temperature
        self.requested = torch.zeros(self.recorded.shape)
        self.cost = torch.zeros(len(index))
        self.clock = torch.full((len(index),), -1)
        #: The last slot that nothing can be added to.
        self.closed = torch.full((len(index),), -1)

    def open_slots(self, rows: Tensor, under_way: bool = False) -> Tensor:
        """What can be asked for, `(r, L * M)`; of a visit that is `under_way`, nothing else."""
        asked = self.requested.detach()[rows] > 0.5
        times = torch.arange(asked.shape[1])
        open_times = times > self.closed[rows, None]
        if under_way:
            open_times = times == self.clock[rows, None]
        out = open_times[:, :, None] & ~asked & self.offered[rows]
        out &= (asked.sum(dim=(1, 2)) < self.max_acquisitions)[:, None, None]
        return out.flatten(1)

    def logits(self, rows: Tensor, under_way: bool = False) -> Tensor:
        """Those of the policy, `(r, L * M + 1)`; of a visit `under_way`, results are pending."""
        requested, clock = self.requested[rows], self.clock[rows]
        pending = torch.zeros_like(requested)
        if under_way:
            now = torch.arange(requested.shape[1]) == clock[:, None]
            pending = requested * now[:, :, None]
        known = self.slots[rows] * (requested - pending)[..., self.owner]
        return self.model.action_logits(known, self.context[rows], clock, pending.sum(dim=1))

    def acquire(self, rows: Tensor, picked: Tensor) -> None:
        """Ask for the slot that is `picked`, `(r, L * M)`, if any, and charge for it."""
        _, _, width = self.requested.shape
        hard = picked.detach()
        moves = hard.sum(dim=1) > 0.5
        self.clock[rows[moves]] = hard[moves].argmax(dim=1) // width
        self.closed[rows] = self.clock[rows] - 1
        picked = picked.view(-1, *self.requested.shape[1:])
        acquired = (self.requested.detach()[rows] > 0.5) & self.recorded[rows]
        prices = torch.from_numpy(slot_prices(self.catalog, acquired.numpy())).float()
        charge = (picked * self.recorded[rows] * prices).sum(dim=(1, 2))
        self.cost = self.cost.index_add(0, rows, charge)
        self.requested = self.requested.index_add(0, rows, picked)

    def complete_visit(self, rows: Tensor) -> None:
        """Add to the current visit until ending it is picked; then nothing more of it is open."""
        everybody = rows
        while True:
            open_slots = self.open_slots(rows, under_way=True)
            some = open_slots.any(dim=1)
            rows, open_slots = rows[some], open_slots[some]
            if not len(rows):
                break
            may_end = torch.ones(len(rows), 1, dtype=torch.bool)
            picked = _pick(
                self.logits(rows, under_way=True),
                torch.cat([open_slots, may_end], dim=1),
                self.temperature,
            )
            self.acquire(rows, picked[:, :-1])
            rows = rows[picked.detach()[:, -1] < 0.5]
        self.closed[everybody] = self.clock[everybody]


def _pick(logits: Tensor, open_slots: Tensor, temperature: float | None) -> Tensor:
    """One open slot each, `(n, L * M)`: hard forwards, soft backwards."""
    logits = logits.masked_fill(~open_slots, -torch.inf)
    if temperature is None:
        return F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()
    return F.gumbel_softmax(logits, tau=temperature, hard=True)


def _finished(trail: list[Tensor], costs: list[Tensor], stops: list[Tensor]) -> Episode:
    """Stack the steps; whoever was given up stops at the last step."""
    stopping = torch.stack(stops)
    stopping = torch.cat([stopping[:-1], stopping[-1:] + (1 - stopping.sum(dim=0, keepdim=True))])
    requested = torch.stack(trail)
    n_steps = (requested.detach().diff(dim=0).sum(dim=(2, 3)) > 0.5).sum(dim=0)
    visited = (torch.arange(len(trail))[:, None] <= n_steps).float()
    return Episode(requested, torch.stack(costs), stopping, visited / visited.sum(dim=0))
