"""Record what a policy saw and did, and replay it in a changed world."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.enforce import enforce
from nocta.core.environment import Availability, Environment, Results
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.rollout import Rollout, rollout


@dataclass(frozen=True)
class Terms:
    """The rules of a roll-out; see `nocta.core.environment`."""

    budget: float | NDArray[np.float64] | None = None
    availability: Availability = "on-arrival"
    charge_missing: bool = False
    results: Results = "after-visit"


class RecordingPolicy(Policy):
    """Wraps `policy` and keeps each observation with the decision that was carried out."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.acts_within_visit = policy.acts_within_visit
        self.rounds: list[tuple[Observation, Decision]] = []

    def begin(self, n_subjects: int, seed: int) -> None:
        self.rounds = []
        self.policy.begin(n_subjects, seed)

    def decide(self, observation: Observation) -> Decision:
        kept = _copy(observation)
        decision = enforce(kept, self.policy.decide(observation))
        self.rounds.append((kept, decision))
        return decision

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        return self.policy.predict_proba(history)


@dataclass(frozen=True)
class Recording:
    """One roll-out, decision by decision."""

    rollout: Rollout
    rounds: list[tuple[Observation, Decision]]
    terms: Terms
    seed: int
    within_visit: bool

    @property
    def requested(self) -> NDArray[np.bool_]:
        """Everything that was requested, `(n, L, M)`."""
        return self.rollout.history.requested


def record(policy: Policy, cohort: Cohort, terms: Terms, seed: int) -> Recording:
    """Roll out `policy` as usual, recording every round."""
    recorder = RecordingPolicy(policy)
    done = rollout(recorder, cohort, **vars(terms), seed=seed)
    return Recording(done, recorder.rounds, terms, seed, policy.acts_within_visit)


class _ForcedEnvironment(Environment):
    """Executes the recorded decisions, even if this world would not allow them."""

    def observe(self) -> Observation:
        seen = super().observe()
        return replace(seen, remaining=np.maximum(seen.remaining, 0.0))

    def _check(self, observation: Observation, decision: Decision) -> None:
        pass


@dataclass(frozen=True)
class Round:
    """One round of a replay: what was seen and decided in the recording, and in the replay.

    `early` marks the subjects that know nothing beyond the cut; nothing may differ for them.
    """

    observation: Observation
    decision: Decision
    seen: Observation
    found: Decision
    early: NDArray[np.bool_] = field(repr=False)

    def changed_view(self) -> NDArray[np.bool_]:
        """Who sees something else than in the recording, `(n,)`."""
        differs = np.zeros(len(self.observation), dtype=bool)
        for a, b in zip(_views(self.observation), _views(self.seen), strict=True):
            differs |= ~same_rows(a, b)
        return differs & self.early

    def changed_decision(self) -> NDArray[np.bool_]:
        """Whose decision differs from the recording, `(n,)`."""
        go = ~self.decision.stop[:, None]
        features = ~same_rows(self.decision.features & go, self.found.features & go)
        return np.asarray(((self.decision.time != self.found.time) | features) & self.early)


def replay(policy: Policy, world: Cohort, recording: Recording, cut: int) -> Iterator[Round]:
    """Let `policy` decide again in `world`, round by round, along the recorded acquisitions.

    The recorded decisions are executed, whatever the policy decides now. So each round has the
    same subjects in the same batch, and results can be compared to the bit. The replay ends when
    every subject has passed slot `cut`; a subject with pending results has not passed it.
    """
    env = _ForcedEnvironment(world, **vars(recording.terms))
    policy.begin(len(world), recording.seed)
    for observation, decision in recording.rounds:
        early = observation.time - observation.waiting <= cut
        if not early.any():
            return
        seen = env.observe()
        found = enforce(seen, policy.decide(_copy(seen)))
        yield Round(observation, decision, seen, found, early)
        env.step(seen, decision, recording.within_visit)


def _views(observation: Observation) -> list[NDArray[Any]]:
    """All that an observation shows, one row per subject."""
    known, o = observation.history, observation
    seen = [known.values, known.acquired, known.unavailable, known.context]
    return [*seen, o.requested, o.open_slots, o.remaining, o.time]


def _copy(observation: Observation) -> Observation:
    """A copy, in case the policy writes into its input."""
    return replace(observation, history=deepcopy(observation.history))


def same_rows(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are identical to the bit, NaN equal to NaN, `(n,)`."""
    equal = a == b
    if np.issubdtype(a.dtype, np.floating):
        equal |= np.isnan(a) & np.isnan(b)
    return np.asarray(equal.reshape(len(a), -1).all(axis=1))
