"""The audit: checks, for one policy on one cohort, that nothing is used before it is acquired.

The policy is rolled out once in the real world. Then everything the policy has not acquired by
some slot `cut` is changed, and the same acquisitions are replayed. Up to the cut every decision and
every prediction must be the same to the bit. One pass changes everything at once; if something
differs, each kind of change is tried alone, to name the cause.

Policies run in processes that hold no hidden value (`nocta.evaluation.isolation`): one process for
the real world, others for the changed worlds, so that nothing is carried from one to the other.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.enforce import check_obeyed
from nocta.core.environment import Availability, Results
from nocta.core.errors import LeakageError, PlanError
from nocta.core.history import History
from nocta.core.policy import Observation, Policy
from nocta.evaluation.custody import holding
from nocta.evaluation.isolation import IsolatedPolicy, name_of, pack_policy
from nocta.evaluation.perturb import CHANGES, KINDS, Kind, perturb
from nocta.evaluation.replay import Recording, Terms, record, replay, same_rows

MakePolicy = Callable[[Cohort], Policy]
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class AuditReport:
    """What was verified; if anything is wrong, `audit` raises an error instead."""

    policy: str  # its class
    availability: str
    results: str  # when a visit's results were shown
    n_subjects: int
    n_decisions: int  # decisions repeated in changed worlds, all identical
    n_predictions: int  # (subject, time) predictions repeated, all identical
    kinds: tuple[str, ...]  # what was changed in those worlds
    cuts: tuple[int, ...]  # slots after which the future was changed; -1 is before the first visit
    seconds: float

    def __str__(self) -> str:
        return (
            f"No leak found in {self.policy}: {self.n_decisions} decisions and "
            f"{self.n_predictions} predictions of {self.n_subjects} subjects did not change with "
            f"{', '.join(self.kinds)} ({self.availability}, {self.results})."
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(
    policy: Policy | bytes,
    cohort: Cohort,
    n_subjects: int = 64,
    seed: int = 0,
    *,
    budget: float | NDArray[np.float64] | None = None,
    availability: Availability = "on-arrival",
    charge_missing: bool = False,
    results: Results = "after-visit",
    n_cuts: int = 64,
) -> AuditReport:
    """Verify on a sample of `cohort` that `policy` neither peeks nor breaks a rule.

    Budget and rules are those of the roll-out to be published (see `nocta.core.environment`). The
    seed decides the sample, the changes, and the policy's own randomness. The future is changed
    after at most `n_cuts` slots.

    Args:
        policy: The policy, which must also act here as it does in a process without the hidden
            values. Or what `nocta.evaluation.isolation.pack` makes of a function that returns
            the policy; then nothing of it runs in this process.

    Raises:
        LeakageError: A decision or prediction changed, or the policy holds the cohort itself.
        PlanError: Time ran backward, a slot was acquired twice, or a budget was exceeded.

    Example:
        >>> from nocta.methods.fixed import FixedPlanPolicy
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> cohort = tiny_cohort()
        >>> policy = FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2))
        >>> audit(policy, cohort).n_subjects
        24
    """
    if isinstance(policy, Policy):
        policy.begin(len(cohort), seed)  # forget what an earlier roll-out revealed
        holding(policy, cohort)
    size = min(n_subjects, len(cohort))
    rows = np.sort(np.random.default_rng(seed).choice(len(cohort), size, replace=False))
    limit = budget if budget is None or np.ndim(budget) == 0 else np.asarray(budget)[rows]
    terms = Terms(limit, availability, charge_missing, results)
    sample = cohort.subset(rows)
    if not isinstance(policy, Policy):
        return _audit(_Cells(lambda _: policy), sample, terms, seed, n_cuts)
    packed = pack_policy(policy, cohort)
    return audit_factory(lambda _: policy, sample, terms, seed=seed, n_cuts=n_cuts, packed=packed)


def audit_factory(
    make_policy: MakePolicy,
    cohort: Cohort,
    terms: Terms,
    *,
    seed: int = 0,
    n_cuts: int = 64,
    packed: bytes | None = None,
) -> AuditReport:
    """The same for a policy that is built for each world it is rolled out in.

    An honest policy ignores the cohort that `make_policy` is given; a policy that looks things up
    in it is detected. So is one that holds the cohort of the first call ever after. `packed` is
    the policy, if it was packed before and is the same in every world.
    """

    truths = [None, cohort]  # in the first changed world everything is changed

    def pack_for(world: Cohort) -> bytes:
        if packed is not None:
            return packed
        return pack_policy(make_policy(world), truths.pop(0) if truths else None)

    cells = _Cells(pack_for)
    policy = make_policy(cohort)
    check_isolated(policy, packed or pack_policy(policy), cohort, terms, seed)
    return _audit(cells, cohort, terms, seed, n_cuts)


def check_isolated(
    policy: Policy, packed: bytes, cohort: Cohort, terms: Terms, seed: int
) -> Recording:
    """Require that a policy acts here as it does in a process without the hidden values."""
    cause: Exception | None = None
    why = "Its decisions or predictions here differ from those there."
    try:
        with IsolatedPolicy(packed, type(policy).__module__) as isolated:
            alone = record(isolated, cohort, terms, seed)
    except Exception as error:
        why, cause = f"There it fails: {type(error).__name__}: {error}", error
        here = record(policy, cohort, terms, seed)  # a mistake of its own fails here too
    else:
        here = record(policy, cohort, terms, seed)
        if same_recording(here, alone):
            return here
    raise LeakageError(
        f"{name_of(policy)} acts differently in a process that never held the hidden values. "
        f"{why} A decision may use nothing but its Observation, the fitted policy, and a random "
        f"stream that follows the seed."
    ) from cause


def same_recording(a: Recording, b: Recording) -> bool:
    """Whether two roll-outs acquired and predicted the same, to the bit."""
    if len(a.rounds) != len(b.rounds):
        return False
    predicted = same_rows(a.rollout.probabilities, b.rollout.probabilities).all()
    return bool(predicted and same_rows(a.requested, b.requested).all())


@dataclass
class _Cells:
    """The processes of an audit: one for the real world, and one for each other policy.

    Changed worlds share a process if their policies are the same to the byte. The real world
    shares with none, so a policy cannot remember there what it acquired here.
    """

    pack: Callable[[Cohort], bytes]
    stack: ExitStack = field(default_factory=ExitStack)
    shared: dict[bytes, IsolatedPolicy] = field(default_factory=dict)

    def first(self, cohort: Cohort) -> IsolatedPolicy:
        """The policy of the real world."""
        return self.stack.enter_context(IsolatedPolicy(self.pack(cohort)))

    def of(self, world: Cohort) -> IsolatedPolicy:
        """The policy of a changed world."""
        packed = self.pack(world)
        if packed not in self.shared:
            for other in self.shared.values():
                other.close()
            self.shared = {packed: self.stack.enter_context(IsolatedPolicy(packed))}
        return self.shared[packed]


def _audit(cells: _Cells, cohort: Cohort, terms: Terms, seed: int, n_cuts: int) -> AuditReport:
    started = clock.perf_counter()
    kinds = KINDS if terms.availability == "on-arrival" else KINDS[:3]
    n_decisions = n_predictions = 0
    cuts = _cuts(cohort.n_times, n_cuts)
    with cells.stack:
        policy = cells.first(cohort)
        recording = record(policy, cohort, terms, seed)
        check_rules(recording, cohort)
        for cut in cuts:
            world = _World(cells.of, cohort, recording, cut, seed)
            leak, compared = world.visit(kinds)
            if leak:
                raise LeakageError(
                    f"{name_of(policy)} leaks: {leak} depends on {world.cause(leak, kinds)}. A "
                    f"decision may use nothing but its Observation, and a prediction nothing "
                    f"acquired after its time."
                )
            n_decisions += compared
            n_predictions += len(cohort) * (cut + 1)
            _check_causal(policy, recording, cut)
    waited = any(observation.waiting.any() for observation, _ in recording.rounds)
    return AuditReport(
        policy=name_of(policy),
        availability=terms.availability,
        results=terms.results,
        n_subjects=len(cohort),
        n_decisions=n_decisions,
        n_predictions=n_predictions,
        kinds=(*kinds, "result") if waited else kinds,
        cuts=tuple(cuts),
        seconds=clock.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Leak:
    """What differed in a changed world, for whom, when, and whether results were pending."""

    what: str
    subject: str
    time: int
    waiting: bool = False

    def __str__(self) -> str:
        return f"{self.what} for subject '{self.subject}' at time {self.time}"


@dataclass(frozen=True)
class _World:
    make_policy: MakePolicy
    cohort: Cohort
    recording: Recording
    cut: int
    seed: int

    def cause(self, leak: _Leak, kinds: Collection[Kind]) -> str:
        """A change that reveals the leak by itself, in words."""
        tried: list[Kind] = ["result", *kinds] if leak.waiting else list(kinds)
        alone = next((kind for kind in tried if self.visit([kind])[0]), None)
        return CHANGES[alone] if alone else "a combination of things it cannot know"

    def visit(self, kinds: Collection[Kind]) -> tuple[_Leak | None, int]:
        """The first thing that differs in a changed world, if any, and decisions compared."""
        rng = np.random.default_rng([self.seed, self.cut + 1])
        world = perturb(self.cohort, kinds, self.recording.requested, self.cut, rng)
        policy = self.make_policy(world)
        n_compared = 0
        for step in replay(policy, world, self.recording, self.cut):
            shown, decided = step.changed_view(), step.changed_decision()
            for what, changed in (
                ("what the environment showed", shown),
                ("its decision", decided),
            ):
                if changed.any():
                    i, seen = int(changed.argmax()), step.observation
                    subject = str(self.cohort.subjects[seen.rows[i]])
                    leak = _Leak(what, subject, int(seen.time[i]), bool(seen.waiting[i]))
                    return leak, n_compared
            n_compared += int(step.early.sum())
        return self._prediction(policy, world), n_compared

    def _prediction(self, policy: Policy, world: Cohort) -> _Leak | None:
        before = self.recording.rollout.probabilities
        now = policy.predict_proba(History.of(world, self.recording.requested))
        for t in range(self.cut + 1):
            same = same_rows(before[:, t], now[:, t])
            if not same.all():
                return _Leak("its prediction", str(self.cohort.subjects[same.argmin()]), t)
        return None


def _check_causal(policy: Policy, recording: Recording, cut: int) -> None:
    """Predictions up to `cut` must not change if later acquisitions are removed."""
    if cut < 0:
        return
    now = policy.predict_proba(recording.rollout.history.up_to(cut))
    same = same_rows(recording.rollout.probabilities[:, : cut + 1], now[:, : cut + 1])
    if not same.all():
        raise LeakageError(
            f"{name_of(policy)} leaks: its prediction for subject "
            f"'{recording.rollout.subjects[int(same.argmin())]}' at or before time {cut} changed "
            f"with what was acquired later. A prediction at time k may use acquisitions at times "
            f"up to k only."
        )


def check_rules(recording: Recording, cohort: Cohort) -> None:
    """Check the rules of the environment from the recording alone.

    Time moves forward; nothing is acquired twice, closed or over budget; no constraint is broken;
    no result is shown before its visit is over.
    """
    time = np.full(len(cohort), -1)
    visiting = np.zeros(len(cohort), dtype=bool)
    asked = np.zeros(cohort.recorded.shape, dtype=bool)
    for observation, decision in recording.rounds:
        check_obeyed(observation, decision)
        if recording.terms.results == "after-visit":
            _check_hidden(observation, time, visiting)
        go = ~decision.stop
        rows, target = observation.rows[go], decision.time[go]
        if (target < time[rows] + ~visiting[rows]).any():
            raise PlanError("A decision went back in time and was not stopped.")
        wanted = decision.features[go]
        if (wanted & (asked[rows, target] | ~cohort.catalog.open_slots[target])).any():
            raise PlanError("A closed slot, or one acquired before, was acquired.")
        asked[rows, target] |= wanted
        visiting[rows] = recording.within_visit & (wanted.any(axis=1) | (target > time[rows]))
        time[rows] = target
    paid = asked if recording.terms.charge_missing else asked & cohort.recorded
    due = cohort.catalog.cost_of(paid)
    if not np.allclose(due, recording.rollout.costs, atol=_TOLERANCE):
        raise PlanError("The charges differ from the prices of the acquired slots.")
    limit = np.inf if recording.terms.budget is None else recording.terms.budget
    if (due > np.asarray(limit) + _TOLERANCE).any():
        raise PlanError(f"A budget of {limit} was exceeded: {due.max():g} was charged.")


def _check_hidden(
    observation: Observation, time: NDArray[np.int64], visiting: NDArray[np.bool_]
) -> None:
    """No result of a visit is shown before the visit is over."""
    there = np.flatnonzero(visiting[observation.rows])
    now, history = time[observation.rows[there]], observation.history
    if history.requested[there, now].any() or not np.isnan(history.values[there, now]).all():
        raise PlanError("A result was shown before its visit was over.")


def _cuts(n_times: int, n_cuts: int) -> list[int]:
    """Slots after which the future is changed; the first (-1) and the last are always included."""
    count = min(max(n_cuts, 2), n_times + 1)
    return [int(cut) for cut in np.unique(np.linspace(-1, n_times - 1, count).round())]
