"""Quality against cost of several methods, with the optimum and the paper's rows if known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.core.errors import DataError
from nocta.core.metrics import check_metric
from nocta.evaluation.frontier import Frontier
from nocta.report.plots.curve import Curve, mean_curve
from nocta.report.plots.style import (
    GRAY,
    METHOD_STYLES,
    PAGE,
    house_style,
    legend_order,
    method_style,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OPTIMUM = "optimum (exact)"
#: Shares of the optimum below this are left out of their panel.
LEAST_SHARE = 0.85
#: With more curves than this, only NOCTA's have bands, to keep curves distinguishable.
MAX_BANDS = 4
METRIC_LABELS = {
    "accuracy": "accuracy",
    "ap": "average precision",
    "roc_auc": "ROC AUC",
    "cross_entropy": "cross-entropy (nats)",
    "brier": "Brier score",
    "calibration_error": "calibration error",
    "tail_loss": "loss of the worst tenth (nats)",
}


@dataclass(frozen=True)
class Panel:
    """The trade-off on one data set, ready to be drawn.

    Args:
        results: Rows with columns `method`, `seed`, `cost` and the metric; for a single seed, `low`
            and `high` give the band. `None` draws only the published rows.
        optimum: `(k, 2)` cost and quality of the exact optimum, if known.
        paper: Published rows with columns `method`, `cost` and the metric; hollow markers.
    """

    results: pd.DataFrame | None
    metric: str = "accuracy"
    optimum: ArrayLike | None = None
    paper: pd.DataFrame | None = None
    title: str | None = None
    currency: str = ""

    @property
    def methods(self) -> list[str]:
        return [] if self.results is None else list(dict.fromkeys(self.results["method"]))

    def check(self) -> None:
        """Refuse an unknown metric or a missing column."""
        check_metric(self.metric)
        columns = ("method", "seed", "cost", self.metric)
        missing = [c for c in columns if self.results is not None and c not in self.results]
        if missing:
            raise DataError(f"The results have no column {', '.join(map(repr, missing))}.")

    def draw(self, axes: Axes, known: Collection[str]) -> None:
        """Draw everything but the legend, which has an entry for each of the `known` methods."""
        if self.optimum is not None and self.results is not None:
            reach = float(self.results["cost"].max())
            _draw_optimum(axes, np.asarray(self.optimum, dtype=float), reach)
        methods = legend_order(self.methods)
        for i, name in enumerate(methods):
            assert self.results is not None
            rows = self.results[self.results["method"] == name]
            _draw_method(axes, name, i, rows, self.metric, band=name in with_bands(methods))
        if self.paper is not None and len(self.paper):
            _draw_paper(axes, self.paper, self.metric, known)
        unit = f" ({self.currency})" if self.currency else ""
        axes.set_xlabel(f"mean acquisition cost per subject{unit}")
        axes.set_ylabel(METRIC_LABELS[self.metric])
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        if axes.get_xlim()[1] >= 1000:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        if self.title:
            axes.set_title(self.title, loc="left")

    def draw_shares(self, axes: Axes, known: Collection[str]) -> None:
        """Draw quality as a share of the optimum at the same cost."""
        best = np.asarray(self.optimum, dtype=float)
        ours, paper = (
            None if table is None else _as_shares(table, self.metric, best)
            for table in (self.results, self.paper)
        )
        Panel(ours, self.metric, paper=paper, currency=self.currency).draw(axes, known)
        axes.axhline(1.0, color="black", linewidth=1.6, zorder=2)
        axes.set_ylim(LEAST_SHARE, 1.0 + 0.04 * (1 - LEAST_SHARE))
        axes.set_ylabel(f"{METRIC_LABELS[self.metric]}, share of the optimum")


def _as_shares(table: pd.DataFrame, metric: str, best: NDArray[np.float64]) -> pd.DataFrame:
    cost, quality = best[np.argsort(best[:, 0])].T
    return table.assign(**{metric: table[metric] / np.interp(table["cost"], cost, quality)})


def frontier_figure(panel: Panel, size: tuple[float, float] = (PAGE, 3.4)) -> Figure:
    """Draw one data set with its legend; `size` is in inches."""
    from matplotlib.figure import Figure

    panel.check()
    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        panel.draw(figure.subplots(), panel.methods)
        if size[0] < PAGE * 0.75:
            figure.legend(loc="outside lower center", ncols=2)
        else:
            figure.legend(loc="outside right upper")
    return figure


def frontier_panels(panels: Sequence[Panel]) -> Figure:
    """Draw several data sets, two per row, with one legend; shares of a known optimum follow it."""
    from matplotlib.figure import Figure

    if not panels:
        raise DataError("No data set to draw; name at least one.")
    for panel in panels:
        panel.check()
    known = {name for panel in panels for name in panel.methods}
    draws = []
    for panel in panels:
        draws.append(panel.draw)
        if panel.optimum is not None and panel.results is not None:
            draws.append(panel.draw_shares)
    n_columns = min(2, len(draws))
    n_rows = -(-len(draws) // n_columns)
    with house_style():
        figure = Figure(figsize=(PAGE, 2.7 * n_rows + 0.9), layout="constrained")
        figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)  # type: ignore[union-attr, call-arg]
        places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, draw in zip(places, draws, strict=False):
            draw(axes, known)
        for axes in places[len(draws) :]:
            axes.set_visible(False)
        entries: dict[str, Any] = {}
        for axes in places[: len(draws)]:
            handles, labels = axes.get_legend_handles_labels()
            entries |= {k: v for k, v in zip(labels, handles, strict=True) if k not in entries}
        names = sorted(entries, key=_place_in_legend)
        figure.legend([entries[n] for n in names], names, loc="outside lower center", ncols=4)
    return figure


def _place_in_legend(label: str) -> int:
    """The optimum first, then our curves in their fixed order, then published points."""
    known = [style.label for style in METHOD_STYLES.values()]
    if label == _OPTIMUM:
        return -1
    return known.index(label) if label in known else len(known) + ("published" in label)


def with_bands(methods: Sequence[str]) -> list[str]:
    """The methods whose standard errors are drawn: all, or only NOCTA's if there are many."""
    ours = [name for name in methods if name.startswith("nocta-")]
    return ours if ours and len(methods) > MAX_BANDS else list(methods)


def _draw_method(
    axes: Axes, name: str, position: int, rows: pd.DataFrame, metric: str, *, band: bool
) -> None:
    style = method_style(name, position)
    seeds = [
        Frontier(group["cost"].to_numpy(), group[metric].to_numpy(), metric)
        for _, group in rows.groupby("seed")
    ]
    if not any(len(f) for f in seeds):
        return
    curve = mean_curve(seeds)
    look: dict[str, Any] = {
        "color": style.color,
        "marker": style.marker,
        "linestyle": style.line,
        # Skip markers nearer to each other than this share of the figure.
        "markevery": 0.03 if len(curve.costs) > 2 else None,
        "markeredgewidth": 1.0 if style.marker in "x+12" else 0.4,
        "zorder": 3,
    }
    if style.marker not in "x+12":
        look["markeredgecolor"] = "white"
    axes.plot(curve.costs, curve.qualities, label=style.label, **look)
    if len(curve.costs) == 1:
        _draw_cross(axes, curve, style.color)
        return
    if not band:
        return
    low, high = (curve.qualities + s * curve.quality_errors for s in (-1, 1))
    if len(seeds) == 1 and {"low", "high"} <= set(rows):
        drawn = rows.dropna(subset=[metric]).sort_values(["cost", metric])
        low, high = drawn[["low", "high"]].to_numpy(float).T
    axes.fill_between(curve.costs, low, high, color=style.color, alpha=0.15, linewidth=0)


def _draw_cross(axes: Axes, curve: Curve, color: str) -> None:
    """Error bars of a single point, which has no band."""
    axes.errorbar(
        curve.costs,
        curve.qualities,
        xerr=curve.cost_errors,
        yerr=curve.quality_errors,
        fmt="none",
        ecolor=color,
        elinewidth=0.7,
        zorder=2,
    )


def _draw_optimum(axes: Axes, points: NDArray[np.float64], reach: float) -> None:
    """The curve, flat after its last point, with the area no policy can reach above it."""
    cost, quality = points[np.argsort(points[:, 0])].T
    if reach > cost[-1]:
        cost, quality = np.append(cost, reach), np.append(quality, quality[-1])
    axes.plot(cost, quality, color="black", linewidth=1.6, label=_OPTIMUM, zorder=2)
    axes.fill_between(cost, quality, quality.max(), color=GRAY, alpha=0.10, linewidth=0, zorder=0)
    axes.annotate(
        "out of reach",
        (cost[0], quality.max()),
        xytext=(4, -4),
        textcoords="offset points",
        va="top",
        color=GRAY,
        fontsize=7,
        fontstyle="italic",
    )


def _draw_paper(axes: Axes, paper: pd.DataFrame, metric: str, known: Collection[str]) -> None:
    """Hollow markers, explained once for the `known` methods and by name for others."""
    for i, (name, rows) in enumerate(paper.groupby("method", sort=False)):
        style = method_style(str(name), i)
        axes.plot(
            rows["cost"],
            rows[metric],
            **_hollow(style.marker, style.color),
            label=None if name in known else f"{style.label} (as published)",
            zorder=4,
        )
    if any(name in known for name in paper["method"]):
        axes.plot([], [], **_hollow("o", GRAY), label="hollow: as published")


def _hollow(marker: str, color: str) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": "o" if marker in "x+" else marker,
        "markerfacecolor": "white",
        "markeredgecolor": color,
        "markeredgewidth": 0.9,
    }
