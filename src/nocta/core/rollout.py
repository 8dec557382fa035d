"""The environment: it alone holds true values, reveals what is acquired, and charges for it.

`rollout` lets a policy meet a whole cohort at once (Algorithm 1's outer loop); a single
subject is a cohort of one and takes the same code.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import BudgetTooSmall, ConfigError, PlanError
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.progress import progress_bar

Availability = Literal["on-arrival", "known"]
Results = Literal["after-visit", "at-once"]
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Rollout:
    """What happened when a policy met a cohort.

    Args:
        history: Everything acquired, and everything asked for in vain.
        probabilities: `(n, L, C)` the prediction made at every time.
        labels: `(n, L)` the truth, -1 where there is none.
        cost_per_visit: `(n, L)` what was charged at each visit.
        stop_time: `(n,)` slot of the last decision: -1 when nothing was ever acquired.
        n_decisions: `(n,)` how often the policy was asked.
        classes: Class names.
        subjects: `(n,)` identifiers.
        availability: The rule under which the policy planned.
        seconds: Wall time of the roll-out.
        results: When a visit's results were shown.
        groups: `(n,)` identifiers of what belongs together (two knees of one patient), where
            the cohort has them.
    """

    history: History
    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    cost_per_visit: NDArray[np.float64]
    stop_time: NDArray[np.int64]
    n_decisions: NDArray[np.int64]
    classes: tuple[str, ...]
    subjects: NDArray[Any]
    availability: str
    seconds: float
    results: str = "after-visit"
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def units(self) -> NDArray[np.int64]:
        """Which independent unit each subject belongs to, `(n,)`: its group, or only itself."""
        if self.groups is None:
            return np.arange(len(self))
        return np.unique(self.groups, return_inverse=True)[1].reshape(-1)

    @property
    def costs(self) -> NDArray[np.float64]:
        """What each subject was charged in all, `(n,)`."""
        return np.asarray(self.cost_per_visit.sum(axis=1))

    @property
    def cost(self) -> float:
        """Mean cost per subject."""
        return float(self.costs.mean())

    @classmethod
    def concatenate(cls, pieces: Sequence[Rollout]) -> Rollout:
        """Roll-outs of several groups of subjects, in this order, as one."""
        history = History(
            *(
                np.concatenate([getattr(piece.history, name) for piece in pieces])
                for name in ("values", "acquired", "unavailable", "context")
            )
        )
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in (
                "probabilities",
                "labels",
                "cost_per_visit",
                "stop_time",
                "n_decisions",
                "subjects",
                *(() if pieces[0].groups is None else ("groups",)),
            )
        }
        return replace(pieces[0], history=history, seconds=sum(p.seconds for p in pieces), **arrays)

    def summary(self) -> dict[str, Any]:
        """Cost, accuracy, AP, ROC AUC, cross-entropy and more, overall and per time point."""
        from nocta.core.metrics import summarize

        return summarize(self)


class Environment:
    """A cohort behind a counter: ask for slots, receive values, pay.

    Args:
        cohort: The truth. Policies never see it.
        budget: Hard limit on what each subject may be charged, one number or `(n,)`.
        availability: `"on-arrival"`: what was never recorded is learned at the visit.
            `"known"`: the paper's rule, missing slots are excluded beforehand.
        charge_missing: Charge for what was asked for but had never been recorded.
        results: When a visit's results are shown. `"after-visit"`: when the visit is over, so a
            visit is ordered as a whole by everybody. `"at-once"`: a policy that acts within
            visits sees one result before it asks for the next. The same for all other policies.
    """

    def __init__(
        self,
        cohort: Cohort,
        budget: float | NDArray[np.float64] | None = None,
        availability: Availability = "on-arrival",
        charge_missing: bool = False,
        results: Results = "after-visit",
    ) -> None:
        if availability not in ("on-arrival", "known"):
            raise ConfigError(f"availability is '{availability}'; use 'on-arrival' or 'known'.")
        if results not in ("after-visit", "at-once"):
            raise ConfigError(f"results is '{results}'; use 'after-visit' or 'at-once'.")
        limit = np.asarray(np.inf if budget is None else budget, dtype=float)
        if np.isnan(limit).any() or (limit < 0).any():
            raise ConfigError(f"budget is {budget}; use a number of at least 0.")
        n = len(cohort)
        self._cohort = cohort
        self._known = availability == "known"
        self._charge_missing = charge_missing
        self._at_once = results == "at-once"
        self._requested = np.zeros(cohort.recorded.shape, dtype=bool)
        self._budget = np.broadcast_to(limit, (n,)).astype(float)
        self.time = np.full(n, -1, dtype=np.int64)
        self.visiting = np.zeros(n, dtype=bool)
        self.active = np.full(n, cohort.n_times > 0)
        self.n_decisions = np.zeros(n, dtype=np.int64)

    @property
    def catalog(self) -> Catalog:
        return self._cohort.catalog

    def history(self, rows: NDArray[np.int64] | None = None) -> History:
        """What has been revealed so far, of everybody or of some."""
        shown = self._requested & ~self._pending
        if rows is None:
            return History.of(self._cohort, shown)
        return History.of(self._cohort.subset(rows), shown[rows])

    def charged(self) -> NDArray[np.float64]:
        """What was charged at each visit so far, `(n, L)`; what is pending counts as there."""
        paid = self._requested
        if not self._charge_missing:
            paid = paid & (self._cohort.recorded | self._pending)
        return self.catalog.cost_per_visit(paid)

    @property
    def _pending(self) -> NDArray[np.bool_]:
        """Ordered at a visit that is not over, `(n, L, M)`."""
        under_way = self.active & self.visiting & (not self._at_once)
        now = np.arange(self.catalog.n_times) == self.time[:, None]
        return np.asarray(self._requested & (now & under_way[:, None])[:, :, None])

    def observe(self) -> Observation:
        """What the policy may see of everybody who is still active."""
        rows = np.flatnonzero(self.active)
        spent = self.charged()[rows].sum(axis=1)
        return Observation(
            history=self.history(rows),
            time=self.time[rows],
            remaining=self._budget[rows] - spent,
            catalog=self.catalog,
            rows=rows,
            available=self._cohort.recorded[rows] if self._known else None,
            visiting=self.visiting[rows],
            pending=self._pending[rows],
        )

    def step(self, observation: Observation, decision: Decision, within_visit: bool) -> None:
        """Execute one decision of every active subject."""
        rows, stop = observation.rows, decision.stop
        self._check(observation, decision)
        self.n_decisions[rows] += 1
        self.active[rows[stop]] = False
        going, time = rows[~stop], decision.time[~stop]
        self._requested[going, time] |= decision.features[~stop]
        ends = (time == self.time[going]) & ~decision.features[~stop].any(axis=1)
        self.time[going] = time
        self.visiting[going] = within_visit & ~ends
        self.active[going[(time == self.catalog.n_times - 1) & ~self.visiting[going]]] = False

    def _check(self, observation: Observation, decision: Decision) -> None:
        catalog = self.catalog
        n, shape = len(observation), (len(observation), catalog.n_features)
        if decision.time.shape != (n,) or decision.features.shape != shape:
            raise PlanError(
                f"The decision has shapes {decision.time.shape} and {decision.features.shape}; "
                f"expected {(n,)} and {shape}."
            )
        go = ~decision.stop
        if not go.any():
            return
        target, now = decision.time[go], observation.time[go]
        if (target >= catalog.n_times).any() or (target < 0).any():
            raise PlanError(f"A decision goes to a slot outside 0..{catalog.n_times - 1}.")
        too_early = target <= now - self.visiting[observation.rows[go]]
        if too_early.any():
            i = int(np.flatnonzero(too_early)[0])
            raise PlanError(
                f"A decision at slot {now[i]} goes back to slot {target[i]}; time runs forward."
            )
        plan = np.zeros((int(go.sum()), catalog.n_times, catalog.n_features), dtype=bool)
        plan[np.arange(len(plan)), target] = decision.features[go]
        self._check_open(observation, plan, go)
        self._check_budget(observation, plan, go)

    def _check_open(
        self, observation: Observation, plan: NDArray[np.bool_], go: NDArray[np.bool_]
    ) -> None:
        closed = ~self.catalog.open_slots | observation.requested[go]
        if observation.available is not None:
            closed = closed | ~observation.available[go]
        wrong = np.argwhere(plan & closed)
        if len(wrong):
            _, t, m = wrong[0]
            raise PlanError(
                f"A decision asks for '{self.catalog.names[m]}' at slot {t}, which is not open "
                f"there or was asked for already."
            )

    def _check_budget(
        self, observation: Observation, plan: NDArray[np.bool_], go: NDArray[np.bool_]
    ) -> None:
        # Fees already paid at a visit are not paid again, so the price is a difference.
        due = (observation.requested if self._charge_missing else observation.committed)[go]
        price = self.catalog.cost_of(due | plan) - self.catalog.cost_of(due)
        over = price > observation.remaining[go] + _TOLERANCE
        if over.any():
            i = int(np.flatnonzero(over)[0])
            raise BudgetTooSmall(
                f"A decision costs {price[i]:g} where {observation.remaining[go][i]:g} is left."
            )


def rollout(
    policy: Policy,
    cohort: Cohort,
    *,
    budget: float | NDArray[np.float64] | None = None,
    availability: Availability = "on-arrival",
    charge_missing: bool = False,
    results: Results = "after-visit",
    seed: int = 0,
    progress: bool = False,
) -> Rollout:
    """Let `policy` acquire for every subject of `cohort`, and record what it predicts.

    Args:
        policy: Decides and predicts; it sees observations only.
        cohort: The truth, kept inside the environment.
        budget: Hard limit per subject; a decision over it is an error of the policy.
        availability: See `Environment`.
        charge_missing: See `Environment`.
        results: See `Environment`.
        seed: Reaches the policy through `Policy.begin`.
        progress: Show a bar over decision rounds.
    """
    started = clock.perf_counter()
    env = Environment(cohort, budget, availability, charge_missing, results)
    policy.begin(len(cohort), seed)
    # Below another bar, this one goes when it is full.
    with progress_bar(
        total=len(cohort), desc="subjects finished", leave=None, show=progress
    ) as bar:
        while env.active.any():
            observation = env.observe()
            env.step(observation, policy.decide(observation), policy.acts_within_visit)
            bar.update(int((~env.active).sum()) - bar.n)
    history = env.history()
    probabilities = policy.predict_proba(history)
    _check_probabilities(probabilities, (len(cohort), cohort.n_times, cohort.n_classes))
    return Rollout(
        history=history,
        probabilities=probabilities,
        labels=cohort.labels,
        cost_per_visit=env.charged(),
        stop_time=env.time.copy(),
        n_decisions=env.n_decisions,
        classes=cohort.classes,
        subjects=cohort.subjects,
        availability=availability,
        seconds=clock.perf_counter() - started,
        results=results,
        groups=cohort.groups,
    )


def _check_probabilities(probabilities: NDArray[np.float32], shape: tuple[int, ...]) -> None:
    if probabilities.shape != shape:
        raise PlanError(f"Predictions have shape {probabilities.shape}; expected {shape}.")
    sums = probabilities.sum(axis=2)
    if not np.isfinite(probabilities).all() or (np.abs(sums - 1) > 1e-3).any():
        raise PlanError("Predictions must be finite probabilities that sum to one over classes.")


def offered_slots(cohort: Cohort, availability: Availability) -> NDArray[np.bool_]:
    """What can be asked for, `(n, L, M)`: where it is known what will be missing, not that."""
    offered = np.broadcast_to(cohort.catalog.open_slots, cohort.recorded.shape)
    return offered & cohort.recorded if availability == "known" else offered
