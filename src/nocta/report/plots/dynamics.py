"""Acquisition dynamics: cost, last request and acquired features over time (paper, section 4.6).

The bottom panel shows how often each feature is acquired at each time point: as a map, or as the
paper's graph, which also shows what the same subjects acquire later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.currency import with_currency
from nocta.core.errors import DataError
from nocta.report.plots.style import COLUMN, PAGE, house_style, method_style
from nocta.runs.record import Together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: With more features than this, only those acquired most often are shown.
MAX_FEATURES = 12
_MAX_TICKS = 12
#: A graph shows pairs that at least this share of subjects acquire, and at most this many arrows
#: from a node, to stay readable.
MIN_PAIR_SHARE = 0.1
MAX_ARROWS = 2
#: Diameter in points of a node that all subjects acquire.
_NODE = 7.0

#: How to draw features over time.
Bottom = Literal["map", "graph"]


@dataclass(frozen=True)
class Dynamics:
    """Acquisition over time of one method at one operating point, averaged over subjects.

    Args:
        cost_per_time: `(L,)` mean charge per subject at each slot.
        stop_share: `(L + 1,)` share of subjects without any request, with the last request at slot
            0, 1, ..., available or not.
        acquired: `(L, M)` share of subjects who acquired each feature at each slot.
        together: What the same subjects acquire earlier and later, most often first.
    """

    method: str
    cost_per_time: NDArray[np.float64]
    stop_share: NDArray[np.float64]
    acquired: NDArray[np.float64]
    features: tuple[str, ...]
    together: tuple[Together, ...] = ()

    @property
    def cost(self) -> float:
        return float(self.cost_per_time.sum())


@dataclass(frozen=True)
class TimeAxis:
    """Time of each slot (or its number), and the units of time and costs."""

    times: tuple[float, ...]
    unit: str = "visit"
    currency: str = ""

    def price(self, cost: float) -> str:
        amount = f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"
        return with_currency(amount, self.currency)

    @property
    def labels(self) -> list[str]:
        return [f"{t:g}" for t in self.times]


def dynamics_figure(
    dynamics: Sequence[Dynamics],
    axis: TimeAxis,
    *,
    beside: Sequence[Dynamics] = (),
    bottom: Bottom = "map",
    size: tuple[float, float] | None = None,
) -> Figure:
    """Methods side by side on equal scales: cost per time, stopping times, features over time.

    Scales and features are shared with the figures of `beside`. The size (inches) grows with the
    number of methods by default.
    """
    from matplotlib.figure import Figure

    if not dynamics:
        raise DataError("No method acquires anything, so there are no dynamics to draw.")
    n, n_rows = len(dynamics), min(len(dynamics[0].features), MAX_FEATURES)
    # Arrows need room even for few features.
    heights = [1.0, 1.0, 0.25 + (0.16 * n_rows if bottom == "map" else max(0.32 * n_rows, 1.1))]
    width = COLUMN if n == 1 else max(PAGE, 1.75 * n)
    with house_style():
        figure = Figure(figsize=size or (width, 1.2 * sum(heights) + 0.5), layout="constrained")
        panels = figure.subplots(
            3, n, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights}
        )
        everybody = [*dynamics, *beside]
        top = max(float(d.cost_per_time.max(initial=0.0)) for d in everybody) * 1.08 or 1.0
        stop = max(float(d.stop_share.max(initial=0.0)) for d in everybody) * 1.08 or 1.0
        shown = _most_acquired(everybody)
        for i, (column, entry) in enumerate(zip(panels.T, dynamics, strict=True)):
            _draw_bars(column, entry, axis, i, (top, stop))
            image = (_draw_map if bottom == "map" else _draw_graph)(column[2], entry, shown)
            _label_slots(column[2], entry, axis, shown)
        for row in panels[:, 1:]:
            for axes in row:
                axes.tick_params(labelleft=False, left=False)
        unit = f" ({axis.currency})" if axis.currency else ""
        panels[0, 0].set_ylabel(f"cost per\nsubject{unit}")
        panels[1, 0].set_ylabel("last request\n(share)")
        if n > 1:
            figure.supxlabel(f"{axis.unit} (–: no request)", fontsize=8)
        else:
            panels[2, 0].set_xlabel(f"{axis.unit} (–: no request)")
        if image is not None:
            figure.colorbar(
                image, ax=panels[2, -1], label="share", ticks=[0, 1], pad=0.02, fraction=0.08
            )
    return figure


def _draw_bars(
    column: NDArray[Any],
    entry: Dynamics,
    axis: TimeAxis,
    position: int,
    limits: tuple[float, float],
) -> None:
    """Cost per time and stopping times of one method."""
    style = method_style(entry.method, position)
    slots = np.arange(len(entry.cost_per_time))
    column[0].set_title(f"{style.label}\nmean cost {axis.price(entry.cost)}", loc="left")
    column[0].bar(slots, entry.cost_per_time, color=style.color, width=0.8)
    column[0].set_ylim(0, limits[0])
    column[1].bar(np.arange(-1, len(slots)), entry.stop_share, color=style.color, width=0.8)
    column[1].set_ylim(0, min(1.0, limits[1]))


def _draw_map(axes: Axes, entry: Dynamics, shown: list[int]) -> Any:
    """Shares as shades of gray; returns the image for the color bar."""
    axes.grid(False)
    return axes.imshow(entry.acquired.T[shown], aspect="auto", cmap="Greys", vmin=0.0, vmax=1.0)


def _draw_graph(axes: Axes, entry: Dynamics, shown: list[int]) -> None:
    """Nodes sized by share of subjects; arrows to what the same subjects acquire later."""
    from matplotlib.patches import FancyArrowPatch

    row = {m: i for i, m in enumerate(shown)}
    drawn = [pair for pair in entry.together if pair[1] in row and pair[3] in row]
    for t, m, later, other, share in _arrows(drawn):
        axes.add_patch(
            FancyArrowPatch(
                (t, row[m]),
                (later, row[other]),
                arrowstyle="-|>",
                mutation_scale=3.5 + 1.5 * share,
                connectionstyle=f"arc3,rad={_bend(later - t, m == other)}",
                shrinkA=0,
                shrinkB=1 + _NODE / 2 * float(np.sqrt(entry.acquired[later, other])),
                linewidth=0.4 + 0.5 * share,
                color=str(round(0.75 - 0.6 * share, 3)),
                zorder=2,
            )
        )
    times, rows = np.nonzero(entry.acquired[:, shown] > 0)
    shares = entry.acquired[times, np.array(shown)[rows]]
    look: dict[str, Any] = {"color": "black", "edgecolor": "white", "linewidth": 0.4}
    axes.scatter(times, rows, s=_NODE**2 * shares, zorder=3, **look)
    axes.set_ylim(len(shown) - 0.4, -0.6)


def _bend(n_slots: int, within_row: bool) -> float:
    """Curvature of an arrow; within a row it goes around the nodes between its ends."""
    if not within_row:
        return 0.12
    return -0.6 if n_slots == 1 else -0.35


def _arrows(pairs: Sequence[Together]) -> list[Together]:
    """From every node the most frequent pairs; ties go to the nearest in time."""
    often = [p for p in pairs if p[4] >= MIN_PAIR_SHARE]
    kept: dict[tuple[int, int], list[Together]] = {}
    for pair in sorted(often, key=lambda p: (-round(p[4], 2), p[2] - p[0])):
        kept.setdefault(pair[:2], []).append(pair)
    return [pair for node in kept.values() for pair in node[:MAX_ARROWS]]


def _label_slots(axes: Axes, entry: Dynamics, axis: TimeAxis, shown: list[int]) -> None:
    slots = np.arange(len(entry.cost_per_time))
    axes.set_yticks(range(len(shown)), [entry.features[m] for m in shown])
    step = -(-len(slots) // _MAX_TICKS)
    axes.set_xticks([-1, *slots[::step].tolist()], ["–", *axis.labels[::step]])
    axes.set_xlim(-1.6, len(slots) - 0.4)


def _most_acquired(dynamics: Sequence[Dynamics]) -> list[int]:
    """The features acquired most often, in catalog order."""
    total = np.sum([d.acquired.sum(axis=0) for d in dynamics], axis=0)
    best = np.argsort(-total, kind="stable")[:MAX_FEATURES]
    return sorted(int(m) for m in best)
