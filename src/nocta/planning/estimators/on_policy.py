"""Refresh on own plans: train the estimator on plans that the planner itself makes.

Random requests rarely look like a good plan. So after a first fit the planner runs on the training
subjects under many cost weights. Its plan at every decision is kept as made, not as revised later:
a plan that depended on values seen after it was made would teach the estimator hindsight.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nocta.core.policy import Observation
from nocta.core.random_plans import random_requests
from nocta.planning.search import FoundPlans


@dataclass
class PlanMemory:
    """Every decision of a planner: subject, time, earlier requests, and plan."""

    subjects: list[NDArray[np.int64]] = field(default_factory=list)
    times: list[NDArray[np.int64]] = field(default_factory=list)
    requests: list[NDArray[np.bool_]] = field(default_factory=list)

    def __call__(self, observation: Observation, found: FoundPlans) -> None:
        """Remember the best plans of one batch (the `on_plans` hook of a planner)."""
        asked = observation.history.requested[:, None] | found.plans  # (n, r, L, M)
        n_plans = found.plans.shape[1]
        self.subjects.append(np.repeat(observation.rows, n_plans))
        self.times.append(np.repeat(observation.time, n_plans))
        self.requests.append(asked.reshape(-1, *asked.shape[2:]))

    def __len__(self) -> int:
        return sum(map(len, self.subjects))


class RememberedPlans:
    """Draws training requests: part random, part remembered with a few slots flipped.

    `share` is the part of the draws taken from memory, for subjects that are remembered; `flips`
    the expected number of slots flipped in the planned part.
    """

    def __init__(
        self,
        memory: PlanMemory,
        n_subjects: int,
        open_slots: NDArray[np.bool_],
        share: float = 0.6,
        flips: float = 1.5,
    ) -> None:
        subjects = np.concatenate(memory.subjects)
        order = np.argsort(subjects, kind="stable")
        counts = np.bincount(subjects, minlength=n_subjects)
        self._times = np.concatenate(memory.times)[order]
        self._requests = np.concatenate(memory.requests)[order]
        self._counts, self._first = counts, np.cumsum(counts) - counts
        self.open_slots, self.share, self.flips = open_slots, share, flips

    def __call__(
        self, index: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        asked = random_requests(len(index), self.open_slots, rng)
        earliest = np.full(len(index), -1)
        known = self._counts[index] > 0
        remembered = np.flatnonzero((rng.uniform(size=len(index)) < self.share) & known)
        who = index[remembered]
        pick = self._first[who] + rng.integers(0, self._counts[who])
        time, plan = self._times[pick], self._requests[pick]
        later = np.arange(plan.shape[1])[None, :, None] > time[:, None, None]
        rate = self.flips / np.maximum((later & self.open_slots).sum(axis=(1, 2), keepdims=True), 1)
        flip = (
            rng.uniform(size=plan.shape) < rate * rng.integers(0, 2, size=rate.shape) * 2
        ) & later
        asked[remembered] = (plan ^ flip) & self.open_slots
        earliest[remembered] = time
        return asked, earliest
