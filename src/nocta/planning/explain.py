"""Why this test, now: expected loss with and without it, its cost, and the runner-up plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.planning.algorithm import PlanningPolicy

StopReason = Literal["last visit", "nothing left", "budget", "not worth its cost"]


@dataclass(frozen=True)
class PlanSummary:
    """One plan in plain words.

    Losses are at least 0, and so are their estimates here, where an estimator's lies below.

    Args:
        visits: For each slot of the plan, what is acquired there.
        cost: List price of the whole plan, fees included.
        expected_charge: What it is expected to cost in the end: what turns out not to be
            available is not charged.
        expected_loss: Expected loss over the remaining times if it is carried out.
        objective: Expected loss plus weighted expected charge, by which plans are ranked.
    """

    visits: dict[int, list[str]]
    cost: float
    expected_charge: float
    expected_loss: float
    objective: float


@dataclass(frozen=True)
class Recommendation:
    """The next acquisition of one subject, and what speaks for it.

    Args:
        stop: Whether to acquire nothing more.
        time: The slot to go to next; `None` when stopping.
        features: What to acquire there.
        cost: What that acquisition costs, fees included.
        plan: The plan whose first part this is.
        stopping: The same numbers for acquiring nothing more.
        runner_up: The next best plan, where there is one.
        prediction: Class probabilities at the current slot (the first one before any visit).
        cost_weight: The cost weight used.
        stop_reason: Why nothing more is acquired: it was the last visit, nothing is left that
            could be, all that is left is over the budget, or no plan is worth its cost.
        cheapest: What the cheapest acquisition that is left costs, fees included.
    """

    stop: bool
    time: int | None
    features: list[str]
    cost: float
    plan: PlanSummary
    stopping: PlanSummary
    runner_up: PlanSummary | None
    prediction: list[float]
    cost_weight: float
    stop_reason: StopReason | None = None
    cheapest: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def recommend(
    policy: PlanningPolicy,
    history: History,
    catalog: Catalog,
    *,
    time: int | None = None,
    remaining: float | None = None,
) -> Recommendation:
    """Plan for one subject and say why.

    Args:
        policy: Algorithm 1 at a cost weight.
        history: What is known of the subject.
        catalog: What can be acquired and what it costs.
        time: The slot the subject is at; the last one with anything asked for by default.
        remaining: What may still be spent.
    """
    if len(history) != 1:
        raise ConfigError(f"`decide` is for one subject; the history has {len(history)}.")
    now = _latest(history) if time is None else time
    if not -1 <= now < catalog.n_times:
        raise ConfigError(f"time is {now}; slots run from 0 to {catalog.n_times - 1}, -1 before.")
    observation = Observation(
        history=history.up_to(now),
        time=np.array([now]),
        remaining=np.array([np.inf if remaining is None else remaining], dtype=float),
        catalog=catalog,
        rows=np.zeros(1, dtype=np.int64),
    )
    weight = float(policy.cost_weight)
    proba = policy.predict_proba(observation.history)[0, max(now, 0)]
    if now == catalog.n_times - 1:
        over = PlanSummary({}, 0.0, 0.0, 0.0, 0.0)
        return Recommendation(
            True, None, [], 0.0, over, over, None, proba.tolist(), weight, "last visit"
        )
    found = policy.best_plans(observation)
    summaries = [
        summarize_plan(plan, float(loss), float(score), catalog, weight)
        for plan, loss, score in zip(found.plans[0], found.losses[0], found.scores[0], strict=True)
    ]
    alone = np.zeros_like(found.plans[0, 0])
    if_stopping = float(found.stopping[0])
    stopping = summarize_plan(alone, if_stopping, if_stopping, catalog, weight)
    best = summaries[0]
    first = min(best.visits, default=None)
    if first is not None:
        alone[first] = found.plans[0, 0, first]
    cheapest = _cheapest(observation)
    return Recommendation(
        stop=first is None,
        time=first,
        features=best.visits.get(first, []) if first is not None else [],
        cost=float(catalog.cost_of(alone)),
        plan=best,
        stopping=stopping,
        runner_up=next((s for s in summaries[1:] if s.visits != best.visits), None),
        prediction=proba.tolist(),
        cost_weight=weight,
        stop_reason=_stop_reason(cheapest, remaining) if first is None else None,
        cheapest=cheapest,
    )


def _cheapest(observation: Observation) -> float | None:
    """What the cheapest of the single acquisitions that are left costs, fees included."""
    open_slots = observation.open_slots[0]
    single = open_slots & np.eye(open_slots.shape[1], dtype=bool)[:, None]  # (M, L, M)
    prices = observation.catalog.cost_per_visit(single)[open_slots.T]
    return float(prices.min()) if prices.size else None


def _stop_reason(cheapest: float | None, remaining: float | None) -> StopReason:
    if cheapest is None:
        return "nothing left"
    if remaining is not None and cheapest > remaining + 1e-9:  # as plans are judged
        return "budget"
    return "not worth its cost"


def summarize_plan(
    plan: NDArray[np.bool_],
    expected_loss: float,
    objective: float,
    catalog: Catalog,
    cost_weight: float,
) -> PlanSummary:
    """A plan `(L, M)` with names instead of positions."""
    cost = float(catalog.cost_of(plan))
    charge = float(expected_charge(cost, expected_loss, objective, cost_weight))
    visits = {
        int(t): [catalog.names[m] for m in np.flatnonzero(plan[t])]
        for t in np.flatnonzero(plan.any(axis=1))
    }
    loss = float(at_least_zero(expected_loss))
    return PlanSummary(visits, cost, charge, loss, loss + cost_weight * charge)


def at_least_zero(estimate: ArrayLike) -> NDArray[np.float64]:
    """Estimates of what cannot be negative, as they are shown; plans are ranked without it."""
    return np.asarray(np.maximum(estimate, 0.0), dtype=float)


def expected_charge(
    price: ArrayLike, expected_loss: ArrayLike, objective: ArrayLike, cost_weight: float
) -> NDArray[np.float64]:
    """What plans are expected to be charged: the part of the objective that is no loss.

    It is never negative nor above the price, whatever rounding makes of it at tiny cost weights.
    """
    prices = np.asarray(price, dtype=float)
    if cost_weight == 0:
        return prices
    charge = (np.asarray(objective) - np.asarray(expected_loss)) / cost_weight
    return np.asarray(np.clip(charge, 0.0, prices))


def _latest(history: History) -> int:
    asked = np.flatnonzero(history.requested[0].any(axis=1))
    return int(asked[-1]) if asked.size else -1
