"""The figure of growth: time and memory of a decision against every size that is doubled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nocta.report.plots.style import COLUMN, PAGE, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKS = {"contrastive": ("#D55E00", "o"), "amortized": ("#0072B2", "s")}
_DEFAULT_MARK = ("#009E73", "^")


def growth_figure(curves: Sequence[dict[str, Any]]) -> Figure:
    """Time above, memory below; one column per size that grows, both axes logarithmic."""
    from matplotlib.figure import Figure

    letters = list(dict.fromkeys(curve["what"] for curve in curves))
    with house_style():
        figure = Figure(figsize=(PAGE, 1.05 * COLUMN), layout="constrained")
        grid = figure.subplots(2, len(letters), sharey="row", squeeze=False)
        for column, letter in enumerate(letters):
            for curve in (c for c in curves if c["what"] == letter):
                _draw(grid[:, column], curve)
            grid[0, column].set_title(f"${letter}$" if letter != "|O|" else r"$|\mathcal{O}|$")
        grid[0, 0].set_ylabel("ms per decision")
        grid[1, 0].set_ylabel("MiB above rest")
        handles = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Any, curve: dict[str, Any]) -> None:
    color, marker = _MARKS.get(curve["estimator"], _DEFAULT_MARK)
    sizes = [point["size"] for point in curve["points"]]
    label = curve["estimator"]
    label = label if label.startswith("default") else f"paper {label}"
    times = [1e3 * point["cpu_seconds"] for point in curve["points"]]
    memory = [point["peak_mb"] or np.nan for point in curve["points"]]
    for place, values in zip(axes, (times, memory), strict=True):
        place.plot(sizes, values, color=color, marker=marker, label=label)
        place.set_xscale("log", base=2)
        place.set_yscale("log")
        place.set_xticks(sizes, [str(s) for s in sizes], rotation=45)
        place.minorticks_off()
