"""The figure of `nocta describe`: class balance, subjects per visit, missing values, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nocta.report.plots.style import GRAY, INK, PAGE, house_style
from nocta.tables.summary import CohortSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TICKS = 12
_BLUE = "#0072B2"


def cohort_figure(summary: CohortSummary) -> Figure:
    """Draw a cohort in four panels; its height grows with the number of features."""
    from matplotlib.figure import Figure

    catalog = summary.cohort.catalog
    height = 2.2 + max(1.6, 0.16 * catalog.n_features + 0.8)
    with house_style():
        figure = Figure(figsize=(PAGE, height), layout="constrained")
        axes = figure.subplots(2, 2, height_ratios=[2.2, height - 2.2], width_ratios=[3, 2])
        _draw_classes(axes[0, 0], summary)
        _draw_subjects(axes[0, 1], summary)
        _draw_missing(axes[1, 0], summary)
        _draw_costs(axes[1, 1], summary)
        cohort = summary.cohort
        figure.suptitle(f"{cohort.name}: {len(cohort):,} subjects", x=0.01, ha="left")
    return figure


def _label_slots(axes: Axes, summary: CohortSummary) -> None:
    names = summary.slot_names
    step = -(-len(names) // _MOST_TICKS)
    axes.set_xticks(range(0, len(names), step), names[::step])
    axes.set_xlabel(summary.cohort.time_unit)


def _legend_above(axes: Axes, n_columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=n_columns,
        borderaxespad=0.2,
        handlelength=1.2,
        columnspacing=1.2,
    )


def _draw_classes(axes: Axes, summary: CohortSummary) -> None:
    """Share of each class among the labels of each visit, stacked with the first class lowest."""
    from matplotlib import colormaps

    classes, counts = summary.cohort.classes, summary.class_counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    seen = np.flatnonzero(counts.sum(axis=0) > 0)
    colors = colormaps["cividis"](np.linspace(0.05, 0.95, max(2, seen.size)))
    below = np.zeros(len(shares))
    for color, c in zip(colors, seen, strict=False):
        axes.bar(range(len(shares)), shares[:, c], bottom=below, color=color, label=classes[c])
        below += shares[:, c]
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of labels")
    _label_slots(axes, summary)
    if seen.size <= 4:
        _legend_above(axes, seen.size)
    elif seen.size:
        first, last = classes[seen[0]], classes[seen[-1]]
        axes.set_title(f"classes {first} (dark) to {last} (bright)", loc="left")


def _draw_subjects(axes: Axes, summary: CohortSummary) -> None:
    slots = np.arange(len(summary.subjects))
    axes.bar(slots, summary.subjects, color=GRAY, alpha=0.45, label="came")
    axes.plot(slots, summary.class_counts.sum(axis=1), color=_BLUE, marker="o", label="labeled")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("subjects")
    _legend_above(axes, 2)
    _label_slots(axes, summary)


def _draw_missing(axes: Axes, summary: CohortSummary) -> None:
    """Share missing at the visits that took place; hatched slots cannot be acquired."""
    names, missing = summary.cohort.catalog.names, 1 - summary.recorded
    axes.patch.set(hatch="////", edgecolor="#bbbbbb")
    picture = axes.imshow(missing.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    axes.set_title(
        "missing" + (" (hatched: not open)" if np.isnan(missing).any() else ""), loc="left"
    )
    _label_slots(axes, summary)
    if len(missing) > _MOST_TICKS:
        axes.figure.colorbar(picture, ax=axes, label="share of visits")
        return
    for (t, m), share in np.ndenumerate(missing):
        if np.isfinite(share):
            ink = "white" if share > 0.6 else INK
            axes.text(t, m, f"{share:.0%}", ha="center", va="center", color=ink, fontsize=6)


def _draw_costs(axes: Axes, summary: CohortSummary) -> None:
    catalog = summary.cohort.catalog
    rows = np.arange(catalog.n_features)
    low, high = catalog.costs.min(axis=0), catalog.costs.max(axis=0)
    axes.barh(rows, catalog.costs.mean(axis=0), color=_BLUE, height=0.7)
    varies = high > low
    if varies.any():
        axes.hlines(rows[varies], low[varies], high[varies], color="black", linewidth=1)
    axes.set_yticks(rows, [""] * len(rows))  # the panel to the left has the names
    axes.set_ylim(catalog.n_features - 0.5, -0.5)
    axes.set_xlabel(f"cost ({catalog.currency})" if catalog.currency else "cost")
    axes.set_title("one acquisition", loc="left")
