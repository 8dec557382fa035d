"""Policies with a plan of their own: budgets, fees, opening times, availability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.rollout import rollout
from nocta.methods.fixed import FirstVisitPolicy, FixedPlanPolicy, RandomPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort

PREDICTOR = RunningMeanPredictor(2)


def shop(costs, n_times=2, **options) -> Cohort:
    """One subject, everything recorded, features `a`, `b`, ... at these prices."""
    names = "abcdef"[: len(costs)]
    features = tuple(Feature(n, (n,), c, group="g") for n, c in zip(names, costs, strict=True))
    return Cohort(
        values=np.ones((1, n_times, len(costs)), dtype=np.float32),
        labels=np.zeros((1, n_times), dtype=np.int64),
        visits=np.ones((1, n_times), dtype=bool),
        context=np.zeros((1, 0), dtype=np.float32),
        subjects=np.array(["s"]),
        catalog=Catalog(features=features, n_times=n_times, **options),
        classes=("no", "yes"),
    )


@pytest.mark.parametrize(
    ("costs", "budget", "expected"),
    [
        ([1, 1], 0, [[0, 0], [0, 0]]),
        ([1, 1], 1, [[1, 0], [0, 0]]),
        ([1, 1], 3, [[1, 1], [1, 0]]),
        ([9, 1], 1, [[0, 1], [0, 0]]),
        ([9, 1], 2, [[0, 1], [0, 1]]),
        ([0, 1], 0, [[1, 0], [1, 0]]),
        ([2, 2], 100, [[1, 1], [1, 1]]),
    ],
)
def test_the_budget_buys_visit_by_visit(costs, budget, expected):
    cohort = shop(costs)
    policy = FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR)
    done = rollout(policy, cohort, budget=budget)
    assert done.history.acquired[0].astype(int).tolist() == expected


def test_fees_are_part_of_the_price():
    cohort = shop([1, 1], group_fees={"g": 2.0}, visit_fee=0.5)
    policy = FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR)
    assert rollout(policy, cohort, budget=3.4).cost == 0.0
    assert rollout(policy, cohort, budget=3.5).cost == 3.5
    assert rollout(policy, cohort, budget=4.5).cost == 4.5


def test_priority_decides_what_a_short_budget_buys():
    cohort = shop([1, 1])
    priority = np.array([[5.0, 1.0], [5.0, 1.0]])
    policy = FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR, priority)
    acquired = rollout(policy, cohort, budget=1).history.acquired[0]
    assert acquired.tolist() == [[False, True], [False, False]]


def test_a_visit_that_is_too_dear_is_passed_over():
    cohort = shop([1, 1])
    dear_first = replace(
        cohort.catalog,
        features=(Feature("a", ("a",), (5.0, 1.0)), Feature("b", ("b",), (5.0, 1.0))),
    )
    cohort = cohort.with_catalog(dear_first)
    done = rollout(FixedPlanPolicy(dear_first.open_slots, PREDICTOR), cohort, budget=2)
    assert done.history.acquired[0].tolist() == [[False, False], [True, True]]


def test_closed_slots_are_never_asked_for():
    cohort = shop([1, 1])
    catalog = replace(
        cohort.catalog, features=(Feature("a", ("a",), 1.0, at=(1,)), cohort.catalog.features[1])
    )
    done = rollout(FixedPlanPolicy(np.ones((2, 2), bool), PREDICTOR), cohort.with_catalog(catalog))
    assert done.history.requested[0].tolist() == [[False, True], [True, True]]


def test_missing_slots_are_asked_for_unless_known():
    cohort = tiny_cohort(30)
    policy = FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR)
    arrival, known = (
        rollout(policy, cohort, availability=rule) for rule in ("on-arrival", "known")
    )
    assert arrival.history.unavailable.any()
    assert not known.history.unavailable.any()
    assert np.array_equal(arrival.history.acquired, known.history.acquired)
    assert arrival.cost == known.cost


def test_first_visit_waits_for_a_visit_that_takes_place():
    cohort = tiny_cohort(6)
    cohort.visits[0] = [False, True, True, True]
    cohort.values[0, 1:] = 1.0
    done = rollout(FirstVisitPolicy(np.ones(2, bool), PREDICTOR), cohort)
    assert done.history.acquired[0].tolist() == [[False] * 2, [True] * 2, [False] * 2, [False] * 2]
    assert (done.history.acquired.any(axis=2).sum(axis=1) <= 1).all()


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_random_acquires_at_its_rate(probability):
    cohort = tiny_cohort(200)
    requested = rollout(RandomPolicy(probability, PREDICTOR), cohort).history.requested
    assert requested.mean() == pytest.approx(probability, abs=0.05)


def test_random_draws_follow_the_row_not_the_batch():
    many, few = tiny_cohort(50), tiny_cohort(50).subset(slice(0, 7))
    policy = RandomPolicy(0.5, PREDICTOR)
    requested = rollout(policy, many, seed=4).history.requested
    assert np.array_equal(requested[:7], rollout(policy, few, seed=4).history.requested)
    assert not np.array_equal(requested, rollout(policy, many, seed=5).history.requested)


@settings(max_examples=30, deadline=None)
@given(
    costs=st.lists(st.floats(0, 5), min_size=1, max_size=4),
    fee=st.floats(0, 3),
    budget=st.floats(0, 30),
    probability=st.floats(0, 1),
)
def test_no_budget_is_ever_exceeded(costs, fee, budget, probability):
    cohort = shop(costs, n_times=3, group_fees={"g": fee}, visit_fee=fee / 2)
    for policy in (
        FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR),
        RandomPolicy(probability, PREDICTOR),
        FirstVisitPolicy(np.ones(len(costs), bool), PREDICTOR),
    ):
        assert rollout(policy, cohort, budget=budget).costs.max() <= budget + 1e-9
