"""Quality at each time point, and calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.report.plots.dynamics import TimeAxis
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import (
    COLUMN,
    GRAY,
    MethodStyle,
    house_style,
    legend_order,
    method_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = NDArray[Any]
Series = Mapping[str, tuple[Values, Values]]


def quality_over_time_figure(
    qualities: Series, axis: TimeAxis, metric: str, *, size: tuple[float, float] = (COLUMN, 3.2)
) -> Figure:
    """A metric at every slot, one line per method with one standard error (NaN if not known)."""
    with _lines(size) as (figure, axes):
        slots = np.arange(len(axis.times))
        for i, name in enumerate(legend_order(list(qualities))):
            mean, error = qualities[name]
            color = _plot(axes, method_style(name, i), slots, mean)
            low, high = mean - np.nan_to_num(error), mean + np.nan_to_num(error)
            axes.fill_between(slots, low, high, color=color, alpha=0.15, linewidth=0)
        step = -(-len(slots) // 12)
        axes.set_xticks(slots[::step], axis.labels[::step])
        axes.set_xlabel(axis.unit)
        axes.set_ylabel(METRIC_LABELS[metric])
    return figure


def calibration_figure(
    curves: Series, *, binary: bool, size: tuple[float, float] = (COLUMN, 3.6)
) -> Figure:
    """Stated against observed frequency, one line per method; the diagonal is perfect.

    The probability is that of the positive class if `binary`, else of the predicted class.
    """
    with _lines(size) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8, linestyle=":")
        for i, name in enumerate(legend_order(list(curves))):
            _plot(axes, method_style(name, i), *curves[name])
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set_xlabel("stated probability" if binary else "confidence in the predicted class")
        axes.set_ylabel("observed frequency" if binary else "accuracy")
    return figure


@contextmanager
def _lines(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one panel, and the legend below it when done."""
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots()
        figure.legend(loc="outside lower center", ncols=2)


def _plot(axes: Axes, style: MethodStyle, x: Values, y: Values) -> str:
    line = ":" if style.line == "none" else style.line
    look: dict[str, Any] = {"color": style.color, "marker": style.marker, "linestyle": line}
    axes.plot(x, y, **look, markersize=3.5, label=style.label)
    return style.color
