"""Frontier: envelope, area and paired differences, worked by hand and as properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocta.core.errors import ConfigError
from nocta.core.rollout import rollout
from nocta.evaluation.frontier import Frontier, area, paired_difference, upper_envelope
from nocta.methods.fixed import RandomPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort

point_lists = st.lists(
    st.tuples(st.floats(0, 10, width=16), st.floats(0, 1, width=16)), min_size=1, max_size=12
)


def test_points_are_sorted_and_undefined_ones_dropped():
    frontier = Frontier(np.array([3.0, 1.0, 2.0]), np.array([0.9, np.nan, 0.5]))
    assert frontier.points.tolist() == [[2.0, 0.5], [3.0, 0.9]]


def test_pareto_keeps_what_nothing_cheaper_beats():
    points = [(0, 0.5), (1, 0.4), (1, 0.7), (2, 0.7), (3, 0.8)]
    assert upper_envelope(points, "pareto").tolist() == [[0, 0.5], [1, 0.7], [3, 0.8]]


def test_hull_drops_what_mixing_beats():
    points = [(0, 0.0), (1, 0.2), (2, 1.0), (3, 1.0)]
    assert upper_envelope(points, "hull").tolist() == [[0, 0.0], [2, 1.0]]


@given(point_lists)
def test_envelopes_lie_above_every_point(points):
    table = np.array(points)
    for kind in ("hull", "pareto"):
        best = upper_envelope(points, kind)
        assert (np.diff(best[:, 0]) > 0).all()
        assert (np.diff(best[:, 1]) > 0).all()
        for cost, quality in table:
            cheaper = best[best[:, 0] <= cost]
            assert len(cheaper)
            assert cheaper[-1, 1] >= quality or kind == "hull"
            assert np.interp(cost, best[:, 0], best[:, 1]) >= quality - 1e-9


@given(point_lists)
def test_hull_is_concave(points):
    best = upper_envelope(points, "hull")
    slopes = np.diff(best[:, 1]) / np.diff(best[:, 0])
    assert (np.diff(slopes) <= 1e-9).all()


def test_lower_is_better_metrics_have_a_lower_envelope():
    frontier = Frontier(np.array([0.0, 1.0, 2.0]), np.array([0.7, 0.9, 0.2]), "cross_entropy")
    assert frontier.envelope("pareto").qualities.tolist() == [0.7, 0.2]


def test_area_is_linear_between_and_flat_after_points():
    points = [(1, 0.0), (3, 1.0)]
    assert area(points, 1, 3) == pytest.approx(0.5)
    assert area(points, 1, 5) == pytest.approx((1.0 + 2.0) / 4)
    assert area(points, 2, 2) == pytest.approx(0.5)


def test_area_starts_from_doing_nothing():
    assert area([(2, 1.0)], 0, 2, start=(0, 0.0)) == pytest.approx(0.5)
    with pytest.raises(ConfigError, match="begins at cost 0, but the first point costs 2"):
        area([(2, 1.0)], 0, 2)


def test_area_averages_points_of_equal_cost():
    assert area([(0, 0.2), (0, 0.4), (1, 0.3)], 0, 1) == pytest.approx(0.3)


def test_area_refuses_a_range_that_runs_backwards():
    with pytest.raises(ConfigError, match="low comes first"):
        area([(0, 1.0)], 2, 1)


@given(point_lists, st.floats(0, 4), st.floats(5, 9))
def test_area_of_the_envelope_is_never_smaller(points, low, high):
    points = [(0.0, 0.0), *points]
    assert area(upper_envelope(points), low, high) >= area(points, low, high) - 1e-9


def test_quality_at_a_cost_is_interpolated():
    frontier = Frontier(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    found = frontier.at([0.5, 1.5, 9.0])
    assert math.isnan(found[0])
    assert found[1:].tolist() == [0.5, 1.0]
    assert frontier.at([0.5], start=(0.0, 0.0)).tolist() == [0.0]


def test_paired_difference_has_the_standard_error_of_the_mean():
    found = paired_difference([3.0, 5.0, 4.0, np.nan], [1.0, 1.0, 4.0, 2.0])
    gaps = np.array([2.0, 4.0, 0.0])
    assert found.mean == pytest.approx(2.0)
    assert found.standard_error == pytest.approx(gaps.std(ddof=1) / np.sqrt(3))
    assert (found.n, found.wins) == (3, 2)
    assert math.isnan(paired_difference([1.0], [0.0]).standard_error)
    with pytest.raises(ConfigError, match="same seeds"):
        paired_difference([1.0], [1.0, 2.0])


def test_frontier_of_rollouts_reads_cost_and_metric():
    cohort = tiny_cohort(20)
    done = [rollout(RandomPolicy(p, RunningMeanPredictor(2)), cohort) for p in (0.9, 0.1)]
    frontier = Frontier.of(done, "ap", "random")
    assert frontier.costs.tolist() == sorted(r.cost for r in done)
    assert frontier.qualities[0] == pytest.approx(done[1].summary()["ap"])
    with pytest.raises(ConfigError, match="no metric"):
        Frontier.of(done, "quality")
