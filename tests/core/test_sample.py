"""Random requests and random plans keep to what is open, and cover it."""

from __future__ import annotations

import numpy as np

from nocta.core.random_plans import guided_plans, random_requests, uniform_plans

OPEN = np.array([[True, True], [True, False], [True, True]])


def test_requests_keep_to_open_slots() -> None:
    asked = random_requests(500, OPEN, np.random.default_rng(0))
    assert asked.shape == (500, 3, 2)
    assert not (asked & ~OPEN).any()


def test_requests_have_every_density() -> None:
    share = random_requests(2000, OPEN, np.random.default_rng(0)).sum(axis=(1, 2)) / OPEN.sum()
    assert (share == 0).any()
    assert (share == 1).any()
    assert 0.2 < share.mean() < 0.6


def test_same_seed_gives_the_same_requests() -> None:
    first, again = (random_requests(20, OPEN, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_every_plan_is_returned_where_that_is_few() -> None:
    plans = uniform_plans(100, OPEN, np.random.default_rng(0))
    assert len(plans) == 2**5
    assert len(np.unique(plans.reshape(len(plans), -1), axis=0)) == 2**5
    assert not plans[0].any()


def test_sampled_plans_are_distinct_and_begin_with_the_empty_one() -> None:
    wide = np.ones((6, 5), dtype=bool)
    plans = uniform_plans(300, wide, np.random.default_rng(0))
    assert not plans[0].any()
    assert plans[1:].any(axis=(1, 2)).all()
    assert len(np.unique(plans.reshape(len(plans), -1), axis=0)) == len(plans)


def test_guided_plans_favor_what_is_important() -> None:
    wide = np.ones((4, 4), dtype=bool)
    importance = np.full((4, 4), 0.01)
    importance[2, 3] = 10.0
    plans = guided_plans(400, wide, importance, np.random.default_rng(0))
    assert not plans[0].any()
    rate = plans.mean(axis=0)
    assert rate[2, 3] > 0.9
    assert rate[2, 3] > 1.5 * np.delete(rate.reshape(-1), 11).mean()


def test_nothing_open_leaves_the_empty_plan() -> None:
    closed = np.zeros((2, 2), dtype=bool)
    assert guided_plans(10, closed, np.ones((2, 2)), np.random.default_rng(0)).shape == (1, 2, 2)
