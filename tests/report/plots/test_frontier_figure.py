"""The frontier figure: every method is drawn and named, with bands, optimum and paper rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nocta.core.errors import ConfigError, DataError
from nocta.evaluation.frontier import Frontier
from nocta.methods.registry import METHODS
from nocta.report.plots.curve import mean_curve
from nocta.report.plots.frontier import Panel, frontier_figure, frontier_panels
from nocta.report.plots.style import METHOD_STYLES, legend_order, method_style, save_figure


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    rows = [
        {"method": m, "seed": s, "cost": c, "accuracy": 0.3 + 0.05 * c + 0.01 * rng.normal()}
        for m in ("static", "random", "mine")
        for s in range(3)
        for c in (1.0, 2.0, 4.0)
    ]
    rows += [{"method": "nothing", "seed": s, "cost": 0.0, "accuracy": 0.3} for s in range(3)]
    return pd.DataFrame(rows)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_thousands_are_separated() -> None:
    rows = pd.DataFrame({"method": "static", "seed": 0, "cost": [0.0, 4000.0], "ap": [0.2, 0.3]})
    axes = frontier_figure(Panel(rows, "ap", currency="$")).axes[0]
    assert "2,000" in [text.get_text() for text in axes.get_xticklabels()]


def test_every_method_of_the_registry_has_its_own_look():
    # Published methods have a look too, for their rows in the figure.
    assert set(METHODS) <= set(METHOD_STYLES)
    assert len({s.marker for s in METHOD_STYLES.values()}) == len(METHOD_STYLES)
    lines = [str(s.line) for name, s in METHOD_STYLES.items() if s.line != "none"]
    # Told apart in gray; the ensemble is black and as solid as the estimator it is made of.
    assert len(set(lines)) == len(lines) - 1


def test_unknown_methods_get_a_spare_look_after_the_known():
    assert method_style("mine", 3).label == "mine"
    assert legend_order(["mine", "random", "static"]) == ["static", "random", "mine"]


def test_seeds_are_averaged_at_equal_cost():
    curve = mean_curve([Frontier([1.0, 2.0], [0.2, 0.4]), Frontier([1.2, 2.2], [0.4, 0.8])])
    assert curve.costs == pytest.approx([1.1, 1.2, 2.0, 2.1])
    assert curve.qualities[1:3] == pytest.approx([(0.24 + 0.4) / 2, (0.4 + 0.72) / 2])
    assert curve.quality_errors[1:3] == pytest.approx([0.08, 0.16])
    # Beyond the costs both reach, their mean points have no error.
    assert curve.qualities[[0, 3]] == pytest.approx([0.3, 0.6])
    assert np.isnan(curve.quality_errors[[0, 3]]).all()


def test_a_seed_that_spends_more_along_the_same_curve_is_no_error():
    costs = np.array([0.0, 2.0, 5.0, 9.0])
    curve = mean_curve([Frontier(c, 0.1 * c) for c in (costs, costs * 1.2)])
    assert curve.quality_errors[curve.costs <= 9.0] == pytest.approx(0.0, abs=1e-12)


def test_single_points_keep_the_errors_of_both():
    curve = mean_curve([Frontier([1.0], [0.2]), Frontier([3.0], [0.4])])
    assert (curve.costs, curve.cost_errors) == (pytest.approx([2.0]), pytest.approx([1.0]))
    assert curve.quality_errors == pytest.approx([0.1])


def test_uneven_seeds_are_averaged_over_the_costs_they_share():
    curve = mean_curve([Frontier([0.0, 4.0], [0.0, 1.0]), Frontier([1.0, 2.0, 3.0], [0.5] * 3)])
    assert (curve.costs[0], curve.costs[-1]) == (1.0, 3.0)
    assert curve.qualities[0] == pytest.approx((0.25 + 0.5) / 2)


def test_one_seed_has_no_error():
    curve = mean_curve([Frontier([1.0, 2.0], [0.2, 0.4])])
    assert (curve.quality_errors == 0).all()


def test_the_legend_names_everything_that_is_drawn(results):
    paper = pd.DataFrame({"method": ["asac", "static"], "cost": [2.0, 2.5], "accuracy": [0.5, 0.4]})
    optimum = np.array([[0.0, 0.3], [3.0, 0.9]])
    figure = frontier_figure(Panel(results, optimum=optimum, paper=paper, title="t", currency="$"))
    names = ["optimum (exact)", "static subset", "random", "nothing", "mine"]
    assert legend_of(figure) == [*names, "ASAC (as published)", "hollow: as published"]
    axes = figure.axes[0]
    assert axes.get_xlabel() == "mean acquisition cost per subject ($)"
    assert axes.get_ylabel() == "accuracy"


def test_a_method_without_the_metric_is_left_out(results):
    results.loc[results["method"] == "mine", "accuracy"] = np.nan
    assert "mine" not in legend_of(frontier_figure(Panel(results)))


def test_figures_are_written_in_every_format(results, tmp_path):
    for ending in ("png", "svg", "pdf"):
        path = save_figure(frontier_figure(Panel(results)), tmp_path / "deep" / f"f.{ending}")
        assert path.stat().st_size > 1000


def test_the_same_data_give_the_same_file(results, tmp_path):
    first, again = (
        save_figure(frontier_figure(Panel(results)), tmp_path / f"{i}.svg") for i in (1, 2)
    )
    assert first.read_bytes() == again.read_bytes()


def test_wrong_tables_are_refused(results):
    with pytest.raises(DataError, match="no column 'seed', 'roc_auc'"):
        frontier_figure(Panel(results.drop(columns="seed"), "roc_auc"))
    with pytest.raises(ConfigError, match="no metric 'f1'"):
        frontier_figure(Panel(results, "f1"))


def test_where_there_are_many_only_ours_have_bands(results):
    def bands(table):
        (axes,) = frontier_figure(Panel(table)).axes
        return [type(c).__name__ for c in axes.collections].count("FillBetweenPolyCollection")

    assert bands(results) == 3  # `nothing` is a point
    names = ["nocta-amortized", "static", "random", "dime", "asac"]
    many = [results[results["method"] == "static"].assign(method=name) for name in names]
    assert bands(pd.concat(many)) == 1


def test_shares_of_the_optimum_have_a_panel_of_their_own(results):
    optimum = [[0.0, 0.5], [4.0, 1.0]]
    panel = Panel(results[results["method"] != "nothing"], optimum=optimum)
    first, second = frontier_panels([panel]).axes
    assert first.get_ylabel() == "accuracy"
    assert second.get_ylabel() == "accuracy, share of the optimum"
    drawn, shares = (
        [line for line in a.lines if len(line.get_xdata()) == 3] for a in (first, second)
    )
    for line, share in zip(drawn, shares, strict=True):
        best = 0.5 + 0.125 * line.get_xdata()
        assert share.get_ydata() == pytest.approx(line.get_ydata() / best)
