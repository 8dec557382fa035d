"""Quality at each time point, and whether stated probabilities come true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.report.plots.dynamics import TimeAxis
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import COLUMN, GREY, house_style, legend_order, method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


def quality_over_time_figure(
    qualities: Series, axis: TimeAxis, metric: str, *, size: tuple[float, float] = (COLUMN, 3.2)
) -> Figure:
    """A metric at every slot, one line per method with one standard error.

    Args:
        qualities: By method, `(L,)` means and `(L,)` standard errors (NaN where not known).
        axis: How to write slots.
        metric: Its name.
        size: In inches.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        slots = np.arange(len(axis.times))
        for i, name in enumerate(legend_order(list(qualities))):
            mean, error = qualities[name]
            style = method_style(name, i)
            axes.plot(slots, mean, **_look(style), label=style.label)
            spread = np.nan_to_num(error)
            axes.fill_between(
                slots, mean - spread, mean + spread, color=style.color, alpha=0.15, linewidth=0
            )
        step = -(-len(slots) // 12)
        axes.set_xticks(slots[::step], axis.labels[::step])
        axes.set_xlabel(axis.unit)
        axes.set_ylabel(METRIC_LABELS[metric])
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def calibration_figure(
    curves: Series, *, binary: bool, size: tuple[float, float] = (COLUMN, 3.6)
) -> Figure:
    """Stated against observed frequency, one line per method; the diagonal is perfect.

    Args:
        curves: By method, `(b,)` stated and `(b,)` observed frequencies.
        binary: Whether the probability is that of the positive class, or the confidence in the
            predicted one.
        size: In inches.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
        for i, name in enumerate(legend_order(list(curves))):
            stated, observed = curves[name]
            style = method_style(name, i)
            axes.plot(stated, observed, **_look(style), label=style.label)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_aspect("equal")
        axes.set_xlabel("stated probability" if binary else "confidence in the predicted class")
        axes.set_ylabel("observed frequency" if binary else "accuracy")
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _look(style: Any) -> dict[str, Any]:
    return {
        "color": style.color,
        "marker": style.marker,
        "linestyle": ":" if style.line == "none" else style.line,
        "markersize": 3.5,
    }
