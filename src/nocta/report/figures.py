"""The figures of a comparison: as files, and inside the report."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.report.plots.dynamics import Bottom, dynamics_figure
from nocta.report.plots.frontier import Panel, frontier_figure
from nocta.report.plots.quality import calibration_figure, quality_over_time_figure
from nocta.report.plots.style import PAGE, house_style, save_figure
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Methods side by side in the dynamics figure of a paper.
MAX_COLUMNS = 6
#: Width in inches of figures for a phone: small, so their text is large.
PHONE = 3.0


def frontier(view: ReportView, metric: str, *, narrow: bool = False) -> Figure:
    """Quality against cost, with the optimum and the paper's rows if there are any."""
    panel = Panel(
        view.frontier_rows() if metric == view.comparison.quality else view.comparison.results,
        metric,
        optimum=view.optimum_points(metric),
        paper=view.paper_rows(metric),
        currency=view.currency,
    )
    return frontier_figure(panel, (PHONE, 4.2) if narrow else (PAGE, 3.9))


def save_figures(comparison: Comparison, directory: Path) -> list[Path]:
    """Write the figures of a comparison with at least one finished job, as PNG and SVG."""
    view = ReportView(comparison)
    figures = {"frontier": frontier(view, comparison.quality)}
    dynamics = view.dynamics()
    if dynamics:
        figures["dynamics"] = dynamics_figure(dynamics[:MAX_COLUMNS], view.axis)
    return [
        save_figure(figure, directory / f"{name}{suffix}")
        for name, figure in figures.items()
        for suffix in (".png", ".svg")
    ]


def report_figures(view: ReportView) -> dict[str, Any]:
    """The report's figures as data URLs, by their place in the page."""
    quality = view.comparison.quality
    calibration, dynamics = view.calibration(), view.dynamics()
    # Job files of earlier versions do not say what is acquired together.
    is_graph = any(entry.together for entry in dynamics)
    bottom: Bottom = "graph" if is_graph else "map"
    return {
        "frontier": data_url(frontier(view, quality)),
        "frontier_narrow": data_url(frontier(view, quality, narrow=True)),
        "over_time": data_url(
            quality_over_time_figure(view.over_time(quality), view.axis, quality, size=(PHONE, 3.3))
        ),
        "calibration": data_url(
            calibration_figure(calibration, binary=view.is_binary, size=(PHONE, 3.6))
        )
        if calibration
        else "",
        "dynamics": [
            (
                entry.method,
                data_url(dynamics_figure([entry], view.axis, beside=dynamics, bottom=bottom)),
            )
            for entry in dynamics
        ],
        "is_graph": is_graph,
    }


def data_url(figure: Figure) -> str:
    """A figure as an SVG data URL, so the page contains it."""
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
