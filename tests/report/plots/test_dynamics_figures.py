"""Figures of dynamics, quality over time and calibration draw what they are given."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.errors import DataError
from nocta.report.plots.dynamics import MAX_FEATURES, Dynamics, TimeAxis, dynamics_figure
from nocta.report.plots.quality import calibration_figure, quality_over_time_figure

AXIS = TimeAxis((0.0, 0.5, 1.0), "years", "$")


def entry(method: str, n_features: int = 2, cost: float = 1.0) -> Dynamics:
    return Dynamics(
        method=method,
        cost_per_time=np.array([cost, 0.0, cost / 2]),
        stop_share=np.array([0.25, 0.25, 0.0, 0.5]),
        acquired=np.linspace(0, 1, 3 * n_features).reshape(3, n_features),
        features=tuple(f"f{m}" for m in range(n_features)),
    )


def test_bars_have_the_heights_given() -> None:
    figure = dynamics_figure([entry("static"), entry("random", cost=4.0)], AXIS)
    top, stops = figure.axes[0], figure.axes[2]
    assert [bar.get_height() for bar in top.patches] == [1.0, 0.0, 0.5]
    assert [bar.get_height() for bar in stops.patches] == [0.25, 0.25, 0.0, 0.5]
    assert "mean cost $1.5" in top.get_title(loc="left")


def test_methods_share_their_scales() -> None:
    one, other = entry("static"), entry("random", cost=4.0)
    together = dynamics_figure([one, other], AXIS).axes
    alone = dynamics_figure([one], AXIS, beside=[other]).axes[0]
    assert together[0].get_ylim() == together[1].get_ylim() == alone.get_ylim()


def test_slots_are_written_with_their_times() -> None:
    axes = dynamics_figure([entry("static")], AXIS).axes[2]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["–", "0", "0.5", "1"]
    assert axes.get_xlabel() == "years (–: no request)"


def test_many_features_are_reduced_to_those_most_acquired() -> None:
    axes = dynamics_figure([entry("static", n_features=40)], AXIS).axes[2]
    names = [t.get_text() for t in axes.get_yticklabels()]
    assert names == [f"f{m}" for m in range(40 - MAX_FEATURES, 40)]


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(DataError, match="no dynamics"):
        dynamics_figure([], AXIS)


def test_a_line_per_method_over_time() -> None:
    mean, unknown = np.array([0.9, 0.8, 0.7]), np.full(3, np.nan)
    figure = quality_over_time_figure({"static": (mean, unknown)}, AXIS, "ap")
    (axes,) = figure.axes
    assert axes.lines[0].get_ydata().tolist() == mean.tolist()
    assert axes.get_ylabel() == "average precision"


@pytest.mark.parametrize(("binary", "label"), [(True, "observed frequency"), (False, "accuracy")])
def test_calibration_says_what_is_on_its_axes(binary: bool, label: str) -> None:
    curve = (np.array([0.1, 0.9]), np.array([0.2, 0.8]))
    (axes,) = calibration_figure({"static": curve}, binary=binary).axes
    assert axes.get_ylabel() == label
    assert axes.lines[1].get_ydata().tolist() == [0.2, 0.8]
