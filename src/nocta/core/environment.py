"""The environment: it alone holds the true values, reveals what is acquired, and charges for it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.enforce import check_obeyed, check_reserve
from nocta.core.errors import BudgetTooSmall, ConfigError, PlanError
from nocta.core.history import History
from nocta.core.options import check_value
from nocta.core.policy import Decision, Observation

Availability = Literal["on-arrival", "known"]
Mask = NDArray[np.bool_]
Results = Literal["after-visit", "at-once"]
_TOLERANCE = 1e-9


class Environment:
    """Holds the true values of a cohort; reveals requested slots and charges for them.

    Args:
        cohort: The truth. Policies never see it.
        budget: Hard limit on the charge of each subject, one number or `(n,)`.
        availability: `"on-arrival"`: the policy learns at the visit which requested features are
            unavailable. `"known"`: the paper's rule, missing slots are excluded beforehand.
        charge_missing: Also charge for requests that turn out to be unavailable.
        results: When a visit's results are shown. `"after-visit"`: when the visit is over, so
            every visit is ordered as a whole. `"at-once"`: a policy that acts within visits sees
            one result before its next request. Other policies see no difference.
    """

    def __init__(
        self,
        cohort: Cohort,
        budget: float | NDArray[np.float64] | None = None,
        availability: Availability = "on-arrival",
        charge_missing: bool = False,
        results: Results = "after-visit",
    ) -> None:
        check_value("availability", availability, Availability)
        check_value("results", results, Results)
        limit = np.asarray(np.inf if budget is None else budget, dtype=float)
        if np.isnan(limit).any() or (limit < 0).any():
            raise ConfigError(f"budget is {budget}; use a number of at least 0.")
        n = len(cohort)
        if n and limit.size:
            cohort.catalog.check_budget(float(limit.min()))
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
        """What has been revealed so far, for all subjects or for some."""
        shown = self._requested & ~self._pending
        if rows is None:
            return History.of(self._cohort, shown)
        return History.of(self._cohort.subset(rows), shown[rows])

    def charged(self) -> NDArray[np.float64]:
        """Charge of each visit so far, `(n, L)`; pending results count as available."""
        paid = self._requested
        if not self._charge_missing:
            paid = paid & (self._cohort.recorded | self._pending)
        return self.catalog.cost_per_visit(paid)

    @property
    def _pending(self) -> Mask:
        """Ordered at a visit that is not over, `(n, L, M)`."""
        under_way = self.active & self.visiting & (not self._at_once)
        now = np.arange(self.catalog.n_times) == self.time[:, None]
        return np.asarray(self._requested & (now & under_way[:, None])[:, :, None])

    def observe(self) -> Observation:
        """What the policy may see of every subject that is still active.

        The budget for what the constraints always acquire is set aside.
        """
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
        ).reserving()

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
        check_obeyed(observation, decision)
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
        if self.catalog.rules is not None:
            check_reserve(observation, decision)
        else:
            self._check_budget(observation, plan, go)

    def _check_open(self, observation: Observation, plan: Mask, go: Mask) -> None:
        closed = ~self.catalog.open_slots | observation.requested[go]
        if observation.available is not None:
            closed = closed | ~observation.available[go]
        wrong = np.argwhere(plan & closed)
        if len(wrong):
            _, t, m = wrong[0]
            raise PlanError(
                f"A decision requests '{self.catalog.names[m]}' at slot {t}, which is not open "
                f"there or was requested before."
            )

    def _check_budget(self, observation: Observation, plan: Mask, go: Mask) -> None:
        # Fees already paid at a visit are not paid again, so the price is a difference.
        due = (observation.requested if self._charge_missing else observation.committed)[go]
        price = self.catalog.cost_of(due | plan) - self.catalog.cost_of(due)
        over = price > observation.remaining[go] + _TOLERANCE
        if over.any():
            i = int(np.flatnonzero(over)[0])
            raise BudgetTooSmall(
                f"A decision costs {price[i]:g}, but only {observation.remaining[go][i]:g} is left."
            )


def offered_slots(cohort: Cohort, availability: Availability) -> Mask:
    """What can be requested, `(n, L, M)`; without missing slots if availability is `"known"`."""
    offered = np.broadcast_to(cohort.catalog.open_slots, cohort.recorded.shape)
    return offered & cohort.recorded if availability == "known" else offered
