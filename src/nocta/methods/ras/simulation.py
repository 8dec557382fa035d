"""Simulated follow-ups of training subjects, and what they cost.

One follow-up costs what is acquired, plus the prediction weight times the *prediction deficiency*,
plus a penalty for every visit at which nothing is acquired. See `nocta.methods.ras.method`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, offered_slots
from nocta.methods.ras.networks import (
    Action,
    ActorCritic,
    Intervals,
    before_first_visit,
    landing_slots,
)
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.neural import NeuralPredictor

_TINY = 1e-7
_CHUNK = 4096


@dataclass(frozen=True)
class Prices:
    """What a follow-up is charged beside the acquisitions: `lambda`, and `nu` per empty visit."""

    prediction_weight: float
    empty_visit: float


@dataclass(frozen=True)
class Episodes:
    """Simulated follow-ups; decision `s` is made at slot `s - 1`, the first before any visit."""

    requested: Tensor  # (b, L, M) what was asked for
    visited: Tensor  # (b, L) at which slots there was a visit
    chosen: Tensor  # (b, L + 1, M) features drawn at each decision
    share: Tensor  # (b, L + 1) interval drawn at each decision
    mattered: Tensor  # (b, L + 1, M) which of `chosen` had an effect: open at a visit that came


class Simulator:
    """A cohort that can be followed up again and again: the training side of the environment.

    It holds true values and must never be handed to a policy.
    """

    def __init__(
        self, cohort: Cohort, predictor: NeuralPredictor, availability: Availability = "on-arrival"
    ) -> None:
        self.catalog = cohort.catalog
        self.predictor = predictor
        self.data = EncodedCohort(predictor.encoder_, cohort)
        self.open = torch.from_numpy(cohort.catalog.open_slots)
        offered = offered_slots(cohort, availability)
        #: What can be asked for, `(n, L + 1, M)`; nothing after the last slot.
        self.offered = torch.from_numpy(np.pad(offered, ((0, 0), (0, 1), (0, 0))))
        self.landing = torch.from_numpy(landing_slots(cohort.catalog.open_slots))
        slots = np.arange(cohort.n_times)
        last = np.where(cohort.visits, slots, -1).max(axis=1, initial=-1)
        self.followed = torch.from_numpy(slots <= last[:, None]).float()
        everything = np.broadcast_to(cohort.catalog.open_slots, cohort.recorded.shape)
        index = np.arange(len(cohort))
        self.full = self._predict(index, torch.from_numpy(everything.copy()))

    def __len__(self) -> int:
        return len(self.data)

    @torch.no_grad()
    def follow(
        self,
        net: ActorCritic,
        intervals: Intervals,
        index: NDArray[np.int64],
        generator: torch.Generator | None = None,
        floor: float = 0.0,
    ) -> Episodes:
        """Let the actor act on the subjects at `index`; without a generator, by its modes."""
        rows, n_times = torch.from_numpy(index), len(self.open)
        slots, frame = self.data.slots[rows], self.data.frame[rows]
        requested = torch.zeros(len(rows), *self.open.shape, dtype=torch.bool)
        visited = torch.zeros(len(rows), n_times, dtype=torch.bool)
        chosen = torch.zeros(len(rows), n_times + 1, self.open.shape[1], dtype=torch.bool)
        share = torch.full((len(rows), n_times + 1), 0.5)
        mattered = torch.zeros_like(chosen)
        offered, everybody = self.offered[rows], torch.arange(len(rows))
        target = self.landing[torch.zeros(len(rows), dtype=torch.int64)]
        padded = before_first_visit(torch.cat([slots, frame], dim=2)[:, :1], self._encoder)
        state, carry = net.encoder.advance(padded[:, 0], None)
        wanted, share[:, 0] = _draw(net.act(state, floor), generator)
        chosen[:, 0], mattered[:, 0] = wanted, offered[everybody, target]
        for k in range(n_times):
            here = target == k
            visited[:, k] = here
            requested[:, k] = here[:, None] & wanted & offered[:, k]
            row = slots[:, k] * requested[:, k, self.data.owner]
            state, carry = net.encoder.advance(torch.cat([row, frame[:, k]], dim=1), carry)
            drawn, wait = _draw(net.act(state, floor), generator)
            due = intervals.next_slot(np.full(len(rows), k), wait.numpy())
            target = torch.where(here, self.landing[torch.from_numpy(due)], target)
            wanted = torch.where(here[:, None], drawn, wanted)
            chosen[:, k + 1], share[:, k + 1] = drawn, wait
            mattered[:, k + 1] = here[:, None] & offered[everybody, target]
        return Episodes(requested, visited, chosen, share, mattered)

    def stage_costs(self, index: NDArray[np.int64], episodes: Episodes, prices: Prices) -> Tensor:
        """What each slot of each follow-up costs, `(b, L)`."""
        asked = episodes.requested.numpy()
        paid = self.catalog.cost_per_visit(asked & self.data.recorded[index])
        deficiency = jensen_shannon(self.full[index], self._predict(index, episodes.requested))
        empty = episodes.visited & ~episodes.requested.any(dim=2)
        share = prices.prediction_weight / len(self.open)
        extra = share * deficiency + prices.empty_visit * empty
        return torch.from_numpy(paid).float() + extra * self.followed[index]

    def inputs(self, index: NDArray[np.int64], episodes: Episodes) -> Tensor:
        """Inputs of the networks over whole follow-ups, `(b, L + 1, width)`."""
        return before_first_visit(
            self.data.inputs(index, episodes.requested.numpy()), self._encoder
        )

    def totals(
        self,
        index: NDArray[np.int64],
        net: ActorCritic,
        intervals: Intervals,
        prices: Prices,
        generator: torch.Generator | None = None,
        floor: float = 0.0,
    ) -> Tensor:
        """What the follow-up of each subject at `index` costs in all."""
        found = []
        for some in np.array_split(index, math.ceil(len(index) / _CHUNK)):
            episodes = self.follow(net, intervals, some, generator, floor)
            found.append(self.stage_costs(some, episodes, prices).sum(dim=1))
        return torch.cat(found)

    def deficiency_of_nothing(self) -> float:
        """Mean prediction deficiency of a follow-up without any acquisition."""
        index = np.arange(len(self))
        nothing = torch.zeros(len(self), *self.open.shape, dtype=torch.bool)
        found = jensen_shannon(self.full, self._predict(index, nothing)) * self.followed
        return float(found.mean()) + _TINY

    @property
    def _encoder(self) -> InputEncoder:
        return self.predictor.encoder_

    def _predict(self, index: NDArray[np.int64], requested: Tensor) -> Tensor:
        return self.predictor.log_proba(self.data.inputs(index, requested.numpy())).exp()


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """Divergence of two predictions, each class a Bernoulli variable, `(..., C)` to `(...)`."""
    m = (p + q) / 2
    return 0.5 * (_kullback_leibler(p, m) + _kullback_leibler(q, m))


def _kullback_leibler(p: Tensor, q: Tensor) -> Tensor:
    p, q = p.clamp(_TINY, 1 - _TINY), q.clamp(_TINY, 1 - _TINY)
    return (torch.xlogy(p, p / q) + torch.xlogy(1 - p, (1 - p) / (1 - q))).sum(dim=-1)


def _draw(action: Action, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    return action.modes() if generator is None else action.sample(generator)
