"""One page: mean cost against each thing that may be asked of an operating point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nocta.core.rollout import Rollout
from nocta.evaluation.detection import Positive
from nocta.methods.saving import SavedMethod
from nocta.model.choice.choose import Choice
from nocta.model.choice.goals import CostPerCase, Goal, Measured, Sensitivity, Within
from nocta.model.choice.guarantee import Promise
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import GRAY, INK, PAGE, house_style, method_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_choice(
    choice: Choice,
    rollouts: Sequence[Rollout],
    path: Path,
    *,
    metric: str,
    positive: str | None,
    model: SavedMethod,
) -> None:
    """Write the page; the chosen point is ringed in every panel."""
    names = None if positive is None else [name.strip() for name in positive.split(",")]
    panels = _panels(metric, names, model)
    save_figure(choice_figure(choice, [(title, g.measure(rollouts)) for title, g in panels]), path)


def _panels(metric: str, positive: list[str] | None, model: SavedMethod) -> list[tuple[str, Goal]]:
    label = METRIC_LABELS.get(metric, metric)
    shown: list[tuple[str, Goal]] = [(label, Within(share=0.01, metric=metric))]
    if positive is None and len(model.classes_) > 2:  # nobody said what a case is
        return [*shown, ("share of visits predicted wrongly", Promise(risk="error", limit=0.1))]
    called = Positive.named(positive, model.classes_)
    return [
        *shown,
        ("sensitivity at 80 % specificity", Sensitivity(at_least=0.9, positive=called)),
        ("cost of one more case found", CostPerCase(limit=0.0, positive=called)),
        ("miss rate", Promise(risk="miss-rate", limit=0.1, positive=called)),
    ]


def choice_figure(choice: Choice, panels: Sequence[tuple[str, Measured]]) -> Figure:
    """The figure; every panel has the mean cost per subject on its horizontal axis."""
    import matplotlib.pyplot as plt

    rows = -(-len(panels) // 2)
    with house_style():
        figure, axes = plt.subplots(
            rows, 2, figsize=(PAGE, 2.6 * rows), squeeze=False, layout="constrained"
        )
        for ax, (title, measured) in zip(axes.flat, panels, strict=False):
            _draw(ax, choice, title, measured)
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_visible(False)
    return figure


def _draw(ax: Axes, choice: Choice, title: str, measured: Measured) -> None:
    costs, values = choice.cost.values, measured.values
    known = np.isfinite(values)
    low, high = (np.where(np.isfinite(x), x, values) for x in (measured.low, measured.high))
    errors: Any = np.abs(np.stack([values - low, high - values]))[:, known]
    color = method_style("nocta-amortized").color
    ax.errorbar(
        costs[known],
        values[known],
        yerr=errors,
        color=color,
        marker="o",
        elinewidth=0.8,
        ecolor=GRAY,
    )
    i = choice.index
    if i is not None and known[i]:
        ax.plot(costs[i], values[i], "o", markersize=10, markerfacecolor="none", color=INK)
        ax.annotate("chosen", (costs[i], values[i]), (6, -12), textcoords="offset points")
    unit = f" ({choice.currency})" if choice.currency else ""
    ax.set_xlabel(f"mean cost per subject{unit}")
    ax.set_title(f"{title}, 95 %")
