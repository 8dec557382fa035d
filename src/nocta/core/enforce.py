"""Every policy is held to the constraints here, decision by decision.

What a policy may not acquire is closed to it (`Observation.open_slots`). What has to be acquired
anyway, and what must come along, is added to its decision. The budget for what is always acquired
is set aside beforehand, so that a policy cannot spend it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import BudgetTooSmall, PlanError
from nocta.core.policy import Decision, Observation

_TOLERANCE = 1e-9


def enforce(observation: Observation, decision: Decision) -> Decision:
    """The decision as the constraints allow and require it; unchanged if there are none.

    Nobody passes or stops before a visit at which something is always acquired: it comes first,
    and the policy decides again after it. Partners are added. If the budget does not allow all of
    it, what the policy wanted is left out, feature by feature in the order of the catalog, and
    groups as a whole.
    """
    rules = observation.catalog.rules
    if rules is None:
        return decision
    n_times = observation.catalog.n_times
    due = observation.due & observation.open_slots
    first = np.where(due.any(axis=(1, 2)), due.any(axis=2).argmax(axis=1), n_times)
    goes = np.where(decision.stop, n_times, decision.time)
    time = np.where(first < goes, first, decision.time)
    going = time >= 0
    wanted = decision.features & (going & (first >= goes))[:, None]
    rows = np.arange(len(time))
    must = due[rows, np.maximum(time, 0)] & going[:, None]
    features = rules.with_partners(wanted) | must
    short = np.flatnonzero(going & (_price(observation, time, features) > _left(observation, time)))
    if short.size:
        some = observation.subset(short)
        features[short] = _affordable(some, time[short], must[short], features[short])
    return Decision(time, features)


def check_obeyed(observation: Observation, decision: Decision) -> None:
    """Raise `PlanError` if a decision breaks a constraint of the catalog."""
    rules = observation.catalog.rules
    if rules is None:
        return
    names = observation.catalog.names
    rows = np.arange(len(observation))
    time = np.maximum(decision.time, 0)
    features = decision.features & ~decision.stop[:, None]
    closed = np.argwhere(features & ~observation.open_slots[rows, time])
    if len(closed):
        i, m = closed[0]
        raise PlanError(
            f"A decision requests '{names[m]}' at slot {time[i]}, which the constraints do not "
            f"allow there: {_about(observation, names[m])}"
        )
    torn = np.argwhere(rules.with_partners(features) & ~features)
    if len(torn):
        i, m = torn[0]
        raise PlanError(
            f"A decision at slot {time[i]} leaves out '{names[m]}': {_about(observation, names[m])}"
        )
    due = observation.due & observation.open_slots
    due[rows, time] &= ~features
    later = np.arange(due.shape[1]) > np.where(decision.stop, due.shape[1], time)[:, None]
    passed = np.argwhere(due & ~later[:, :, None])
    if len(passed):
        _, t, m = passed[0]
        raise PlanError(
            f"A decision leaves out '{names[m]}' at slot {t}: {_about(observation, names[m])}"
        )


def check_reserve(observation: Observation, decision: Decision) -> None:
    """Raise `BudgetTooSmall` if a decision leaves too little for what is always acquired."""
    over = _price(observation, decision.time, decision.features) > _left(observation, decision.time)
    over &= ~decision.stop
    if over.any():
        i = int(np.flatnonzero(over)[0])
        price = _price(observation, decision.time, decision.features)[i]
        left = _left(observation, decision.time)[i]
        raise BudgetTooSmall(f"A decision costs {price:g}, but only {left:g} is left.")


def _about(observation: Observation, name: str) -> str:
    """The constraints that name a feature, or that limit visits."""
    said = observation.catalog.constraints.sentences()
    own = [text for text in said if f"'{name}'" in text or "no more than" in text]
    return " ".join(own or said)


def _left(observation: Observation, time: NDArray[np.int64]) -> NDArray[np.float64]:
    """What a visit may cost, `(n,)`: what is not set aside, and what was set aside for it."""
    due = observation.due
    due &= np.arange(due.shape[1])[:, None] <= time[:, None, None]
    return np.asarray(observation.remaining + observation.catalog.cost_of(due) + _TOLERANCE)


def _price(
    observation: Observation, time: NDArray[np.int64], features: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """What these features, `(n, M)`, add to the bill; fees paid before are not due again."""
    catalog, paid = observation.catalog, observation.committed
    plan = paid.copy()
    plan[np.arange(len(time)), np.maximum(time, 0)] |= features
    return np.asarray(catalog.cost_of(plan) - catalog.cost_of(paid))


def _affordable(
    observation: Observation,
    time: NDArray[np.int64],
    must: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """What must be, and as much of what is wanted as the budget allows, `(n, M)`."""
    rules, left = observation.catalog.rules, _left(observation, time)
    assert rules is not None
    kept = must
    for alone in np.eye(wanted.shape[1], dtype=bool):
        trial = kept | (rules.with_partners(alone) & wanted)
        fits = _price(observation, time, trial) <= left
        kept = np.where(fits[:, None], trial, kept)
    return kept
