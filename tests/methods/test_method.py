"""What every method shares: cost targets, the search for knob values, names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocta.core.errors import ConfigError
from nocta.core.operating_points import (
    cost_of_everything,
    cost_targets,
    nearest_to_targets,
    spread_knob,
)
from nocta.methods.registry import METHODS, method_class, parse_methods
from nocta.testing import tiny_cohort


def test_targets_run_from_five_to_ninety_per_cent():
    cohort = tiny_cohort(20)
    total = cost_of_everything(cohort)
    assert cost_targets(cohort, 3) == pytest.approx([0.05 * total, 0.475 * total, 0.9 * total])
    with pytest.raises(ConfigError, match="use a whole number of at least 1"):
        cost_targets(cohort, 0)


def test_what_is_missing_is_not_part_of_everything():
    cohort = tiny_cohort(20)
    assert cost_of_everything(cohort) < cohort.catalog.price_of_everything


def test_nearest_costs_are_taken_once_each():
    costs = np.array([5.0, 0.0, 2.0])
    assert nearest_to_targets(costs, np.array([0.1, 0.2, 1.9, 9.0])).tolist() == [1, 2, 0]


@given(
    scale=st.floats(0.1, 10),
    power=st.floats(0.5, 3),
    falling=st.booleans(),
)
def test_knobs_are_found_for_any_monotone_cost(scale, power, falling):
    def cost_at(knob: float) -> float:
        share = 1 / (1 + (knob / scale) ** power)
        return 10 * (share if falling else 1 - share)

    targets = np.linspace(1, 9, 5)
    knobs = spread_knob(cost_at, (1e-3, 1e3), targets, n_evaluations=60)
    found = [cost_at(k) for k in knobs]
    assert found == pytest.approx(targets, abs=0.02 * 9 + 1e-6)


def test_the_number_of_evaluations_is_kept():
    calls = []

    def cost_at(knob: float) -> float:
        calls.append(knob)
        return float(np.log(knob))

    spread_knob(cost_at, (1.0, 1e6), np.linspace(1, 12, 30), n_evaluations=12)
    assert len(calls) <= 12


def test_a_cost_that_jumps_gives_fewer_knobs():
    knobs = spread_knob(lambda k: 10.0 * (k > 1), (0.01, 100), np.array([2.0, 5.5, 9.0]))
    assert [10.0 * (k > 1) for k in knobs] == [0.0, 10.0]


def test_an_impossible_knob_range_is_refused():
    with pytest.raises(ConfigError, match="two positive numbers, low first"):
        spread_knob(lambda k: k, (0.0, 1.0), np.array([1.0]))


def test_a_misspelt_method_is_met_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"no method 'statik'\. Did you mean 'static'\?"):
        method_class("statik")
    with pytest.raises(ConfigError, match=r"'randon'.*'random'.*'nocta'"):
        parse_methods("randon,static,nocta")


def test_all_means_every_method_once():
    assert parse_methods("all") == list(METHODS)
    assert parse_methods("static,random,static") == ["static", "random"]
    with pytest.raises(ConfigError, match="No method was named"):
        parse_methods(" , ")


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_has_its_name(name):
    assert method_class(name).name == name
