"""Why this acquisition: what each feature adds, ties, what a result would change, similar subjects.

`explain` works for any `PlanningPolicy`. What plans are worth comes from `PlanValues`; without
them, an explanation holds only what the policy itself compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.explain import PlanSummary, Recommendation, observe, recommend_for
from nocta.planning.plan_values import PlanValues, Voters
from nocta.planning.scoring import Scores, score_subjects

#: Likely values of a column, for example its 10th, 50th and 90th percentile.
LikelyValues = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class FeatureEffect:
    """What one feature adds to the next visit."""

    feature: str
    cost: float  # what the visit costs more with it, fees included
    saves: float  # expected loss that it saves over all later visits
    #: `saves` in units of cost: up to this price it is worth it. `None` if cost weighs nothing.
    worth: float | None


@dataclass(frozen=True)
class Tie:
    """The best plan against the runner-up."""

    difference: float  # objective of the runner-up less that of the best plan; at least 0
    standard_error: float  # of that difference
    tied: bool  # whether the difference is within its standard error
    switched: bool  # whether the runner-up is recommended, because it is tied and cheaper
    same_next_visit: bool  # whether both acquire the same at the next visit


@dataclass(frozen=True)
class ResultEffect:
    """How far one result may move the prediction at its visit."""

    column: str
    values: list[float]  # likely values
    predictions: list[list[float]]  # class probabilities after each


@dataclass(frozen=True)
class Evidence:
    """Similar training subjects, without identities."""

    n_subjects: int
    effective_number: float  # as many subjects with equal votes would count as much
    #: Weighted share of each class at the last visit with a label.
    classes: list[float]


@dataclass(frozen=True)
class Explanation:
    """A recommendation and the reasons for it."""

    recommendation: Recommendation  # the cheaper one of two tied plans
    saves: float  # expected loss without it, less expected loss with it
    adds: list[FeatureEffect]  # what each recommended feature adds
    passed_over: list[FeatureEffect]  # what the others would add to the same visit
    tie: Tie | None  # `None` if there is no runner-up, or no standard error is known
    results: list[ResultEffect]
    evidence: Evidence | None
    predictions: list[list[float]]  # class probabilities at every slot, as far as is known now

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def explain(
    policy: PlanningPolicy,
    history: History,
    catalog: Catalog,
    values: PlanValues | None = None,
    *,
    time: int | None = None,
    remaining: float | None = None,
    likely: LikelyValues | None = None,
) -> Explanation:
    """Plan for one subject and say why; arguments as for `recommend`.

    Args:
        policy: Any policy that plans.
        history: What is known of the subject.
        catalog: What can be acquired, and prices.
        values: What other plans than the policy's own are worth.
        time: The slot the subject is at.
        remaining: What may still be spent.
        likely: Likely values of columns, to show what a result would change.
    """
    observation = observe(history, catalog, time, remaining)
    scores = score_subjects(policy, observation)
    found = recommend_for(policy, observation, scores)
    tie = None if values is None else _compare(values, observation, scores, found)
    if tie is not None and tie.switched:
        scores = _runner_up_first(scores, observation)
        found = recommend_for(policy, observation, scores)
    adds, passed_over = _effects(values, observation, scores, found.cost_weight)
    voters = None if values is None or found.stop else values.voters(observation)
    return Explanation(
        recommendation=found,
        saves=found.stopping.expected_loss - found.plan.expected_loss,
        adds=adds,
        passed_over=passed_over,
        tie=tie,
        results=_result_effects(policy, observation, found, likely or {}),
        evidence=None if voters is None else _evidence(voters),
        predictions=policy.predict_proba(observation.history)[0].tolist(),
    )


def _compare(
    values: PlanValues, observation: Observation, scores: Scores, found: Recommendation
) -> Tie | None:
    """The best plan against the runner-up; a tie goes to the one that is expected to cost less."""
    second = _runner_up(scores)
    if second is None or found.runner_up is None:
        return None
    pair = scores.found.plans[0, [0, second]]
    error = values.standard_error(observation, pair)
    if error is None:
        return None
    difference = found.runner_up.objective - found.plan.objective
    tied = bool(difference <= error)
    cheaper = found.runner_up.expected_charge < found.plan.expected_charge
    return Tie(
        difference=difference,
        standard_error=error,
        tied=tied,
        switched=tied and cheaper,
        same_next_visit=_first_visit(found.plan) == _first_visit(found.runner_up),
    )


def _first_visit(plan: PlanSummary) -> tuple[int, list[str]] | None:
    return min(plan.visits.items()) if plan.visits else None


def _runner_up(scores: Scores) -> int | None:
    """Rank of the best plan that is not the first."""
    plans = scores.found.plans[0]
    other = np.flatnonzero((plans != plans[0]).any(axis=(1, 2)))
    return int(other[0]) if other.size else None


def _runner_up_first(scores: Scores, observation: Observation) -> Scores:
    order, second = np.arange(scores.prices.shape[1]), _runner_up(scores)
    if second is not None:
        order[0], order[second] = second, 0
    return Scores.of(scores.found.ranked(order), observation, scores.probabilities)


def _effects(
    values: PlanValues | None, observation: Observation, scores: Scores, cost_weight: float
) -> tuple[list[FeatureEffect], list[FeatureEffect]]:
    """What the features of the next visit add, and what the others would add to it."""
    now = int(scores.decision.time[0])
    if values is None or now < 0:
        return [], []
    plan, catalog = scores.found.plans[0, 0], observation.catalog
    candidates = np.flatnonzero(observation.open_slots[0, now])
    others = np.repeat(plan[None], len(candidates), axis=0)
    others[np.arange(len(candidates)), now, candidates] ^= True
    plans = np.concatenate([plan[None], others])
    losses = values.losses(observation, plans)
    visits = np.zeros_like(plans)
    visits[:, now] = plans[:, now]
    prices = catalog.cost_of(visits)
    effects: dict[bool, list[FeatureEffect]] = {True: [], False: []}
    for i, m in enumerate(candidates.tolist(), start=1):
        chosen = bool(plan[now, m])
        sign = 1.0 if chosen else -1.0
        saves = sign * float(losses[i] - losses[0])
        cost = sign * float(prices[0] - prices[i])
        worth = saves / cost_weight if cost_weight > 0 else None
        effects[chosen].append(FeatureEffect(catalog.names[m], cost, saves, worth))
    for kind in effects.values():
        kind.sort(key=lambda effect: -effect.saves)
    return effects[True], effects[False]


def _result_effects(
    policy: PlanningPolicy, observation: Observation, found: Recommendation, likely: LikelyValues
) -> list[ResultEffect]:
    """Predictions at the next visit after each likely value of each column, one at a time."""
    if found.stop or found.time is None:
        return []
    catalog, history = observation.catalog, observation.history
    cells = [
        (column, m, value)
        for m in map(catalog.feature_index, found.features)
        for column in catalog.features[m].columns
        for value in likely.get(column, ())
    ]
    if not cells:
        return []
    many = history.subset(np.zeros(len(cells), dtype=np.int64))
    values, acquired = many.values.copy(), many.acquired.copy()
    for row, (column, m, value) in enumerate(cells):
        values[row, found.time, catalog.columns.index(column)] = value
        acquired[row, found.time, m] = True
    after = policy.predict_proba(replace(many, values=values, acquired=acquired))[:, found.time]
    effects: dict[str, ResultEffect] = {}
    for (column, _, value), proba in zip(cells, after, strict=True):
        effect = effects.setdefault(column, ResultEffect(column, [], []))
        effect.values.append(float(value))
        effect.predictions.append(proba.tolist())
    return list(effects.values())


def _evidence(voters: Voters) -> Evidence:
    weight = voters.neighbors.weight[0].double().numpy()
    labels = voters.train.labels[voters.neighbors.subjects[0].numpy()]
    last = _last_labels(labels)
    shares = np.array([weight[last == c].sum() for c in range(voters.train.n_classes)])
    return Evidence(
        n_subjects=int((weight > 0).sum()),
        effective_number=float(1 / (weight**2).sum()),
        classes=(shares / max(shares.sum(), 1e-12)).tolist(),
    )


def _last_labels(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last label of each subject, -1 without one, `(n, L)` to `(n,)`."""
    labeled = labels >= 0
    last = labels.shape[1] - 1 - labeled[:, ::-1].argmax(axis=1)
    return np.where(labeled.any(axis=1), labels[np.arange(len(labels)), last], -1)
