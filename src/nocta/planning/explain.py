"""One subject's next acquisition in words: what it costs, what it saves, and the runner-up plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.scoring import Scores, score_subjects

StopReason = Literal["last visit", "nothing left", "budget", "not worth its cost"]


@dataclass(frozen=True)
class PlanSummary:
    """One plan, by names; losses are shown as at least 0, the objective as it was estimated."""

    visits: dict[int, list[str]]  # the features acquired at each slot
    cost: float  # list price of the whole plan, fees included
    expected_charge: float  # features that turn out to be unavailable are not charged
    expected_loss: float  # over the remaining times, if the plan is carried out
    objective: float  # expected loss plus weighted expected charge, by which plans are ranked


@dataclass(frozen=True)
class Recommendation:
    """The next acquisition of one subject, and why."""

    stop: bool  # whether to acquire nothing more
    time: int | None  # the slot to go to next; `None` when stopping
    features: list[str]  # what to acquire there
    cost: float  # price of that acquisition, fees included
    plan: PlanSummary  # the plan that begins with it
    stopping: PlanSummary  # the same numbers for acquiring nothing more
    runner_up: PlanSummary | None  # the next best plan, if there is one
    #: Class probabilities at the current slot (the first one before any visit).
    prediction: list[float]
    cost_weight: float  # the cost weight used
    #: Why nothing more is acquired: this is the last visit, nothing is left to acquire, everything
    #: left is over the budget, or no plan is worth its cost.
    stop_reason: StopReason | None = None
    cheapest: float | None = None  # price of the cheapest acquisition that is left, fees included

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

    By default the subject is at the last slot with a request, and spending has no limit.
    """
    observation = observe(history, catalog, time, remaining)
    return recommend_for(policy, observation, score_subjects(policy, observation))


def observe(
    history: History, catalog: Catalog, time: int | None = None, remaining: float | None = None
) -> Observation:
    """What is known of one subject at a slot, by default the last one with a request."""
    if len(history) != 1:
        raise ConfigError(f"`decide` is for one subject; the history has {len(history)}.")
    asked = np.flatnonzero(history.requested[0].any(axis=1))
    now = int(asked.max(initial=-1)) if time is None else time
    if not -1 <= now < catalog.n_times:
        raise ConfigError(
            f"time is {now}; use 0 to {catalog.n_times - 1}, or -1 before the first visit."
        )
    observation = Observation(
        history=history.up_to(now),
        time=np.array([now]),
        remaining=np.array([np.inf if remaining is None else remaining], dtype=float),
        catalog=catalog,
        rows=np.zeros(1, dtype=np.int64),
    ).reserving()
    observation.check_reserve()
    return observation


def recommend_for(
    policy: PlanningPolicy, observation: Observation, scores: Scores
) -> Recommendation:
    """The recommendation for one subject whose plans are scored."""
    catalog = observation.catalog
    plans = [_summarize(scores, rank, catalog) for rank in range(scores.prices.shape[1])]
    best, if_stopping = plans[0], float(scores.found.stopping[0])
    stop, cheapest = bool(scores.decision.stop[0]), _cheapest(observation)
    return Recommendation(
        stop=stop,
        time=None if stop else int(scores.decision.time[0]),
        features=_names(catalog, scores.decision.features[0]),
        cost=float(scores.cost[0]),
        plan=best,
        stopping=_nothing_more(observation, scores, if_stopping),
        runner_up=next((plan for plan in plans[1:] if plan.visits != best.visits), None),
        prediction=scores.probabilities[0].tolist(),
        cost_weight=float(policy.cost_weight),
        stop_reason=_stop_reason(observation, cheapest) if stop else None,
        cheapest=cheapest,
    )


def _summarize(scores: Scores, rank: int, catalog: Catalog) -> PlanSummary:
    found = scores.found
    plan = found.plans[0, rank]
    numbers = (scores.prices, found.charges, np.maximum(found.losses, 0.0), found.scores)
    visits = {int(t): _names(catalog, plan[t]) for t in np.flatnonzero(plan.any(axis=1))}
    return PlanSummary(visits, *(float(array[0, rank]) for array in numbers))


def _nothing_more(observation: Observation, scores: Scores, loss: float) -> PlanSummary:
    """The plan of acquiring nothing but what the constraints always acquire."""
    catalog, due, found = observation.catalog, observation.due[0], scores.found
    same = np.flatnonzero((found.plans[0] == due).all(axis=(1, 2)))
    if same.size:
        return _summarize(scores, int(same[0]), catalog)
    visits = {int(t): _names(catalog, due[t]) for t in np.flatnonzero(due.any(axis=1))}
    cost = float(catalog.cost_of(due))
    objective = loss + float(found.cost_weight[0]) * cost
    return PlanSummary(visits, cost, cost, max(loss, 0.0), objective)


def _names(catalog: Catalog, features: NDArray[np.bool_]) -> list[str]:
    return [catalog.names[m] for m in np.flatnonzero(features)]


def _cheapest(observation: Observation) -> float | None:
    open_slots = observation.open_slots[0]
    single = open_slots & np.eye(open_slots.shape[1], dtype=bool)[:, None]  # (M, L, M)
    prices = observation.catalog.cost_per_visit(single)[open_slots.T]
    return float(prices.min()) if prices.size else None


def _stop_reason(observation: Observation, cheapest: float | None) -> StopReason:
    if observation.time[0] == observation.catalog.n_times - 1:
        return "last visit"
    if cheapest is None:
        return "nothing left"
    if cheapest > observation.remaining[0] + 1e-9:  # the tolerance of the search
        return "budget"
    return "not worth its cost"
