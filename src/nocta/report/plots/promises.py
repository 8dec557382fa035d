"""Expected against realized loss and charge: on the diagonal, promises are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nocta.report.plots.style import COLUMN, GRAY, house_style, legend_order, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Kept:
    """One operating point: what was expected of a subject, and what happened on average."""

    method: str
    point: int
    expected_loss: float
    realized_loss: float
    expected_cost: float
    cost: float


def promise_figure(
    found: Sequence[Kept], currency: str = "", size: tuple[float, float] = (1.35 * COLUMN, 2.7)
) -> Figure:
    """Two panels, loss and charge; one marker per operating point."""
    from matplotlib.figure import Figure

    unit = f" ({currency})" if currency else ""
    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        loss, cost = figure.subplots(1, 2)
        methods = legend_order(list(dict.fromkeys(kept.method for kept in found)))
        for i, method in enumerate(methods):
            own = [kept for kept in found if kept.method == method]
            points = [(k.expected_loss, k.realized_loss) for k in own]
            _draw(loss, method, i, points)
            _draw(cost, method, i, [(k.expected_cost, k.cost) for k in own])
        for axes, what in ((loss, "loss per subject"), (cost, f"charge per subject{unit}")):
            low, high = _limits(axes)
            axes.plot([low, high], [low, high], color=GRAY, linewidth=0.8, linestyle=":", zorder=1)
            axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
            axes.set_xlabel(f"expected {what}")
            axes.set_ylabel("what happened")
        handles, labels = loss.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Axes, method: str, position: int, points: Sequence[tuple[float, float]]) -> None:
    style = method_style(method, position)
    x, y = np.asarray(points, dtype=float).T
    look: dict[str, Any] = {"color": style.color, "marker": style.marker, "linestyle": "none"}
    if style.marker not in "x+12":
        look |= {"markeredgecolor": "white", "markeredgewidth": 0.4}
    axes.plot(x, y, **look, label=style.label, zorder=3)


def _limits(axes: Axes) -> tuple[float, float]:
    """The same range on both axes, with zero."""
    ends = [*axes.get_xlim(), *axes.get_ylim()]
    return min(0.0, *ends), 1.03 * max(ends)
