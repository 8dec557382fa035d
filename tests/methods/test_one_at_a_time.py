"""Prices and openings for policies that acquire one slot at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots, slot_prices
from nocta.testing import tiny_cohort


def observation(cohort: Cohort, requested: np.ndarray, time: int, left: float) -> Observation:
    n = len(cohort)
    return Observation(
        history=History.of(cohort, requested),
        time=np.full(n, time),
        remaining=np.full(n, left),
        catalog=cohort.catalog,
        rows=np.arange(n),
        visiting=np.full(n, time >= 0),
    )


def test_a_price_is_what_a_slot_adds_to_the_bill() -> None:
    catalog = replace(tiny_cohort(1).catalog, visit_fee=0.25)
    acquired = np.random.default_rng(0).random((40, 4, 2)) < 0.4
    prices = slot_prices(catalog, acquired)
    for t, m in np.ndindex(4, 2):
        more = acquired.copy()
        more[:, t, m] = True
        added = catalog.cost_of(more) - catalog.cost_of(acquired)
        still = ~acquired[:, t, m]
        np.testing.assert_allclose(prices[still, t, m], added[still])


def test_the_current_visit_stays_open_and_earlier_ones_are_closed() -> None:
    cohort = tiny_cohort(6)
    requested = np.zeros(cohort.recorded.shape, dtype=bool)
    requested[:, 1, 0] = True
    found = affordable_slots(observation(cohort, requested, time=1, left=np.inf))
    assert not found[:, 0].any()
    assert not found[:, 1, 0].any()
    assert found[:, 1, 1].all()
    assert found[:, 2:].all()


def test_a_visit_that_is_over_is_closed() -> None:
    cohort = tiny_cohort(6)
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)
    over = replace(observation(cohort, nothing, 1, np.inf), visiting=np.zeros(6, dtype=bool))
    found = affordable_slots(over)
    assert not found[:, :2].any()
    assert found[:, 2:].all()


def test_pending_orders_are_closed_and_their_fees_are_due() -> None:
    cohort = tiny_cohort(6)
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)
    pending = nothing.copy()
    pending[:, 1, 0] = True  # blood, with the fee of the draw
    seen = replace(observation(cohort, nothing, time=1, left=3.0), pending=pending)
    assert seen.requested[:, 1, 0].all()
    assert not affordable_slots(seen)[:, 1, 0].any()
    assert affordable_slots(seen)[:, 1, 1].all()
    assert not slot_prices(cohort.catalog, seen.committed)[:, 1, 0].max() > 1.0


def test_what_is_too_dear_is_not_offered() -> None:
    cohort = tiny_cohort(6)
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)
    found = affordable_slots(observation(cohort, nothing, time=-1, left=1.5))
    assert found[..., 0].all()
    assert not found[..., 1].any()


def test_known_gaps_are_not_offered() -> None:
    cohort = tiny_cohort(6)
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)
    plain = observation(cohort, nothing, time=-1, left=np.inf)
    found = affordable_slots(replace(plain, available=cohort.recorded))
    assert np.array_equal(found, cohort.recorded)


def test_a_position_becomes_a_decision_and_a_negative_one_stops() -> None:
    cohort = tiny_cohort(2)
    start = observation(cohort, np.zeros(cohort.recorded.shape, dtype=bool), -1, np.inf)
    decision = acquire_slot(np.array([5, -1]), start)
    assert decision.time.tolist() == [2, -1]
    assert decision.features.tolist() == [[False, True], [False, False]]


def test_nobody_leaves_or_stops_before_pending_results_are_seen() -> None:
    cohort = tiny_cohort(3)
    nothing = np.zeros(cohort.recorded.shape, dtype=bool)
    pending = nothing.copy()
    pending[:, 1, 0] = True
    waiting = replace(observation(cohort, nothing, time=1, left=9.0), pending=pending)
    decision = acquire_slot(np.array([3, 4, -1]), waiting)
    assert decision.time.tolist() == [1, 1, 1]
    assert decision.features.tolist() == [[False, True], [False, False], [False, False]]
