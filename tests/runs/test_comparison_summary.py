"""Means over common costs, paired differences and shares of the optimum, worked by hand."""

from __future__ import annotations

import math
from typing import get_args

import pandas as pd
import pytest

from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.graph import Loss
from nocta.exact.yardstick import Yardstick
from nocta.runs.shares import gain_over_costs, share_of_optimum
from nocta.runs.summary import (
    cost_range,
    mean_and_error,
    summarize_results,
    wide_methods,
)


def table(points: dict[tuple[str, int], list[tuple[float, float]]]) -> pd.DataFrame:
    rows = [
        {"method": m, "seed": s, "cost": cost, "accuracy": q, "ap": q, "roc_auc": q}
        for (m, s), curve in points.items()
        for cost, q in curve
    ]
    return pd.DataFrame(rows).assign(cross_entropy=lambda t: -t["accuracy"])


#: The optimum gains .6 in accuracy and 2 nats over costs up to 10.
LINES = Yardstick(
    tuple(
        ExactCurve.of([CurvePoint(1, 0, 0.4, 2.0), CurvePoint(0, 10, 1, 0)], loss, "optimum")
        for loss in get_args(Loss)
    )
)

CURVES = {
    ("a", 0): [(0.0, 0.2), (10.0, 0.8)],
    ("a", 1): [(0.0, 0.3), (10.0, 0.9)],
    ("b", 0): [(2.0, 0.2), (12.0, 0.2)],
    ("b", 1): [(2.0, 0.4), (12.0, 0.4)],
    ("dot", 0): [(5.0, 0.6)],
    ("dot", 1): [(5.0, 0.6)],
    ("far", 0): [(50.0, 1.0)],
    ("far", 1): [(50.0, 1.0)],
}


def one(summary: pd.DataFrame, method: str, versus: str, quality: str = "accuracy") -> pd.Series:
    rows = summary.query("method == @method and versus == @versus and quality == @quality")
    assert len(rows) == 1
    return rows.iloc[0]


def test_the_common_range_is_what_every_seed_reaches() -> None:
    results = table(CURVES)
    assert cost_range(results, ["a", "b"]) == (2.0, 10.0)
    assert cost_range(results, ["a", "dot"]) == (5.0, 5.0)
    assert cost_range(results, ["a", "far"]) is None


def test_methods_of_one_point_do_not_shrink_the_range() -> None:
    assert wide_methods(table(CURVES), ["a", "b", "dot", "far"]) == ["a", "b"]


def test_the_mean_over_common_costs() -> None:
    found = one(summarize_results(table(CURVES), ["a", "b", "dot", "far"]), "a", "")
    # From cost 2 to 10 the line runs from .32 to .80 at seed 0, and .1 above it at seed 1.
    assert found["mean"] == pytest.approx(0.61)
    assert found["standard_error"] == pytest.approx(0.05)
    assert (found["n_seeds"], found["cost_low"], found["cost_high"]) == (2, 2.0, 10.0)


def test_differences_are_paired_by_seed() -> None:
    found = one(summarize_results(table(CURVES), ["a", "b"]), "a", "b")
    # .56 - .2 and .66 - .4: the error is that of the difference, not of the two means.
    assert found["mean"] == pytest.approx(0.31)
    assert found["standard_error"] == pytest.approx(0.05)


def test_a_method_of_one_point_is_compared_at_its_cost() -> None:
    found = one(summarize_results(table(CURVES), ["a", "dot"]), "dot", "a")
    assert found["mean"] == pytest.approx(0.6 - 0.55)
    assert (found["cost_low"], found["cost_high"]) == (5.0, 5.0)


def test_methods_without_common_costs_are_not_compared() -> None:
    summary = summarize_results(table(CURVES), ["a", "far"])
    assert summary.query("versus != ''").empty


def test_differences_are_opposite_both_ways() -> None:
    summary = summarize_results(table(CURVES), ["a", "b"])
    assert one(summary, "a", "b", "ap")["mean"] == -one(summary, "b", "a", "ap")["mean"]


def test_a_single_seed_has_no_standard_error() -> None:
    mean, error = mean_and_error([0.3])
    assert mean == 0.3
    assert math.isnan(error)


def test_seeds_that_only_one_method_has_are_left_out_of_pairs() -> None:
    points = {key: curve for key, curve in CURVES.items() if key != ("b", 1)}
    assert one(summarize_results(table(points), ["a", "b"]), "a", "b")["n_seeds"] == 1


def test_the_share_of_the_optimum_is_taken_at_the_same_cost() -> None:
    results = table({("a", 0): [(5.0, 0.35), (20.0, 0.9)]})
    found = share_of_optimum(results, LINES)
    assert found["point"].tolist() == [0, 1, "mean", "costs", "lowest"]
    assert found["optimum"].tolist()[:2] == pytest.approx([0.7, 1.0])
    assert found["ratio"].tolist()[:3] == pytest.approx([0.5, 0.9, 0.7])


def test_shares_of_the_attainable_gain_begin_at_nothing_for_both_measures() -> None:
    results = table({("a", 0): [(5.0, 0.55), (10.0, 1.0)]}).assign(cross_entropy=[1.4, 0.6])
    found = share_of_optimum(results, LINES)
    assert found["gain_accuracy"].tolist()[:3] == pytest.approx([0.5, 1.0, 0.75])
    assert found["gain_cross_entropy"].tolist()[:3] == pytest.approx([0.6, 0.7, 0.65])
    assert found["optimum_cross_entropy"].tolist()[:2] == pytest.approx([1.0, 0.0])


def test_shares_over_costs_are_averaged_over_seeds_and_the_lowest_is_kept() -> None:
    curves = {("a", 0): [(10.0, 1.0)], ("a", 1): [(0.0, 0.4), (10.0, 0.7)]}
    results = table(curves).drop(columns="cross_entropy")
    over = gain_over_costs(results, LINES)
    assert over["mean"].tolist() == pytest.approx([1.0, 0.5])
    assert set(over["measure"]) == {"accuracy"}
    found = share_of_optimum(results, LINES).set_index("point")
    assert found.loc["costs", "gain_accuracy"] == pytest.approx(0.75)
    assert found.loc["lowest", "gain_accuracy"] == pytest.approx(0.5)
