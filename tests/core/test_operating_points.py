"""Operating points lie where cost or quality changes, for any method with a knob."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocta.core.errors import ConfigError
from nocta.core.knob_search import n_roll_outs, search_knob
from nocta.core.operating_points import (
    CurveEnds,
    cost_of_everything,
    positions_on_curve,
    spread_points,
)
from nocta.testing import RunningMeanPredictor, tiny_cohort

#: Ten cheap features, and one that costs more than all of them and brings little.
PRICES = np.array([*range(1, 11), 1000.0])
GAINS = np.array([0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.01])
SHOP = CurveEnds(nothing=1.0, cost=float(PRICES.sum()), everything=1.0 - float(GAINS.sum()))


def shop(cost_weight: float) -> tuple[float, float]:
    """Acquire what is worth its price."""
    bought = GAINS > cost_weight * PRICES
    return float(PRICES[bought].sum()), 1.0 - float(GAINS[bought].sum())


def test_what_is_missing_is_not_part_of_everything():
    cohort = tiny_cohort(20)
    assert cost_of_everything(cohort) < cohort.catalog.price_of_everything


def test_one_expensive_feature_does_not_hide_the_cheap_ones():
    scale = float(GAINS.sum() / PRICES.sum())
    knobs = search_knob(shop, (scale * 0.01, scale * 4), SHOP, 10, stretch=0.25)
    costs = [shop(knob)[0] for knob in knobs]
    assert costs == sorted(set(costs))
    assert len([cost for cost in costs if cost < 56]) >= 6
    assert min(costs) <= 3


def test_the_number_of_roll_outs_is_kept():
    calls: list[float] = []

    def point_at(knob: float) -> tuple[float, float]:
        calls.append(knob)
        return float(np.log(knob)), 1.0 / knob

    search_knob(point_at, (1.0, 1e6), CurveEnds(1.0, 14.0, 0.0), 10)
    assert len(calls) <= n_roll_outs(10) == 20


@given(scale=st.floats(0.1, 10), power=st.floats(0.5, 3), falling=st.booleans())
def test_points_have_no_wide_gap_on_any_smooth_curve(scale, power, falling):
    def point_at(knob: float) -> tuple[float, float]:
        share = 1 / (1 + (knob / scale) ** power)
        cost = share if falling else 1 - share
        return 10 * cost, float(np.exp(-3 * cost))

    ends = CurveEnds(1.0, 10.0, float(np.exp(-3)))
    knobs = search_knob(point_at, (1e-3, 1e3), ends, 5, n_evaluations=40)
    points = [point_at(knob) for knob in knobs]
    found, length = positions_on_curve(*zip(*points, strict=True), ends)
    assert np.diff([0.0, *found, length]).max() <= 2 * length / 6


def test_a_cost_that_jumps_gives_fewer_points():
    def jump(knob: float) -> tuple[float, float]:
        return (10.0, 0.1) if knob > 1 else (2.0, 0.8)

    knobs = search_knob(jump, (0.01, 100), CurveEnds(1.0, 20.0, 0.05), 5)
    assert [jump(knob)[0] for knob in knobs] == [2.0, 10.0]


@pytest.mark.parametrize(("low", "high"), [(1e-4, 1e-3), (1e3, 1e4)])
def test_the_range_is_left_while_the_curve_goes_on(low, high):
    def point_at(knob: float) -> tuple[float, float]:
        share = float(np.clip(1 - np.log10(knob) / 8 - 0.5, 0, 1))
        return 10 * share, 1 - share

    ends = CurveEnds(1.0, 10.0, 0.0)
    inside, beyond = (
        [
            point_at(k)[0]
            for k in search_knob(point_at, (low, high), ends, 8, stretch=factor, n_evaluations=30)
        ]
        for factor in (None, 0.25)
    )
    assert max(inside) - min(inside) < 2
    assert max(beyond) - min(beyond) > 5


def test_an_impossible_knob_range_is_refused():
    with pytest.raises(ConfigError, match="two positive numbers, low first"):
        search_knob(lambda k: (k, k), (0.0, 1.0), SHOP, 3)


def test_points_are_taken_once_cheapest_first_without_the_ends():
    ends = CurveEnds(1.0, 10.0, 0.5)
    costs, losses = [10.0, 0.0, 2.0, 2.0, 5.0], [0.5, 1.0, 0.7, 0.7, 0.55]
    assert spread_points(costs, losses, ends, 4).tolist() == [2, 4]
    assert spread_points([0.0, 0.0], [1.0, 1.0], ends, 3).tolist() == [0]
    with pytest.raises(ConfigError, match="use a whole number of at least 1"):
        spread_points(costs, losses, ends, 0)


def test_noise_on_a_plateau_adds_no_length():
    ends = CurveEnds(1.0, 10.0, 0.5)
    _, smooth = positions_on_curve([1, 4, 6, 8], [0.5, 0.5, 0.5, 0.5], ends)
    _, noisy = positions_on_curve([1, 4, 6, 8], [0.5, 0.6, 0.55, 0.7], ends)
    assert noisy == pytest.approx(smooth)


def test_a_predictor_that_is_bad_on_nothing_does_not_stretch_the_curve():
    cohort = tiny_cohort(40)
    found = CurveEnds.of(RunningMeanPredictor(2), cohort)
    shares = np.bincount(cohort.labels[cohort.labeled]) / cohort.labeled.sum()
    assert found.nothing <= -(shares * np.log(shares)).sum() + 1e-9
    assert found.cost == pytest.approx(cost_of_everything(cohort))
