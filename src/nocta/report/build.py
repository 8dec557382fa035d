"""Write the report: figures, tables and settings of a comparison in one HTML file."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.methods.registry import method_class
from nocta.model.files import write_atomically
from nocta.report import tables
from nocta.report.acquisition import HeatTable, heat_table
from nocta.report.classes import class_table
from nocta.report.differences import difference_tables, paired_tests
from nocta.report.headline import manager_sentences, ranking
from nocta.report.page import render_page
from nocta.report.plots.dynamics import dynamics_figure
from nocta.report.plots.frontier import METRIC_LABELS, Panel, frontier_figure, with_bands
from nocta.report.plots.promises import promise_figure
from nocta.report.plots.quality import calibration_figure, quality_over_time_figure
from nocta.report.plots.style import PAGE, house_style, save_figure
from nocta.report.promises import kept_promises, promise_table
from nocta.report.published import published_points
from nocta.report.settings import settings_table, versions_table
from nocta.report.subgroups import subgroup_table
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.protocol_text import is_protocol_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Methods side by side in the dynamics figure of a paper.
MAX_COLUMNS = 6
#: Width in inches of figures for a phone: small, so their text is large.
PHONE = 3.0


def write_comparison(comparison: Comparison) -> None:
    """Write figures and report.html beside the results of a comparison, if any job finished."""
    if comparison.records:
        save_figures(comparison, comparison.directory)
        write_report(comparison, comparison.directory / "report.html")


def write_report(comparison: Comparison, path: Path) -> None:
    """Write the report of a comparison with at least one finished job.

    The file contains its figures and styles and loads nothing, so it can be mailed, printed, and
    read on a phone or behind a hospital's firewall.
    """
    write_atomically(path, render(comparison))


def render(
    comparison: Comparison, *, drift: tables.Table | None = None, warnings: Sequence[str] = ()
) -> str:
    """The page; `drift` says how the subjects differ from those a model was fitted to."""
    return render_page("report.html.j2", **_content(comparison), drift=drift, warnings=warnings)


def _content(comparison: Comparison) -> dict[str, Any]:
    view = ReportView(comparison)
    return {
        "comparison": comparison,
        "setup": comparison.setup,
        "view": view,
        "quality": METRIC_LABELS[comparison.quality],
        "far": [
            f"{tables.label(method)} ({view.price(cost)})"
            for method, cost in view.far_from_reference().items()
        ],
        "few_bands": with_bands(view.methods) != view.methods,
        "title": title(comparison),
        "lead": manager_sentences(view),
        "ranking": ranking(view),
        "figures": report_figures(view),
        "label": tables.label,
        "key": tables.key_table(view),
        "heat": heat_tables(view),
        "classes": class_table(view),
        "promises": promise_table(view),
        "subgroups": subgroup_table(view),
        "summary": tables.quality_table(view),
        "differences": difference_tables(view),
        "tests": paired_tests(view),
        "points": tables.points_table(view),
        "efforts": tables.effort_table(view),
        "threshold": tables.thresholds(comparison),
        "ledger": tables.ledger_table(view),
        "audit": tables.audit_table(view),
        "settings": settings_table(view),
        "tuning": tables.tuning_table(view),
        "times": tables.times_table(view),
        "versions": versions_table(view),
        "impatient": impatient_methods(view),
    }


def title(comparison: Comparison) -> str:
    if comparison.judged:
        return f"{tables.label(comparison.methods[0])} on {comparison.dataset}"
    return f"Comparison on {comparison.dataset}"


def heat_tables(view: ReportView) -> list[HeatTable]:
    """What the leading method and the user's own protocols acquire."""
    shown = [d for d in view.dynamics() if d.method == view.lead or is_protocol_name(d.method)]
    return [heat_table(d, view.axis) for d in sorted(shown, key=lambda d: d.method != view.lead)]


def impatient_methods(view: ReportView) -> str:
    """Names of the methods that saw one result of a visit before requesting the next."""
    if view.comparison.setup.results != "at-once":
        return ""
    jobs = {record.job.label: record.job.method for record in view.comparison.records}
    found = [name for name in view.methods if method_class(jobs[name]).acts_within_visit]
    return " and ".join(tables.label(name) for name in found)


def frontier(view: ReportView, *, narrow: bool = False) -> Figure:
    """Quality against cost, with the optimum and the paper's rows if there are any."""
    metric = view.comparison.quality
    optimum = view.comparison.optimum if metric == "accuracy" else None
    # The paper's rows of the methods compared here, and of NOCTA in any case.
    wanted = {*view.methods, "nocta-contrastive", "nocta-amortized"}
    panel = Panel(
        view.frontier_rows(),
        metric,
        optimum=None if optimum is None else optimum.points,
        paper=published_points(view.paper, metric, wanted),
        currency=view.currency,
    )
    return frontier_figure(panel, (PHONE, 4.2) if narrow else (PAGE, 3.9))


def save_figures(comparison: Comparison, directory: Path) -> list[Path]:
    """Write the figures of a comparison with at least one finished job, as PNG and SVG."""
    view = ReportView(comparison)
    figures = {"frontier": frontier(view)}
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
    calibration, dynamics, promises = view.calibration(), view.dynamics(), kept_promises(view)
    over_time = view.over_time(quality)
    figures: dict[str, Any] = {
        "frontier": data_url(frontier(view)),
        "frontier_narrow": data_url(frontier(view, narrow=True)),
        "over_time": data_url(
            quality_over_time_figure(over_time, view.axis, quality, size=(PHONE, 3.3))
        ),
        "calibration": "",
        "promises": data_url(promise_figure(promises, view.currency)) if promises else "",
    }
    if calibration:
        drawn = calibration_figure(
            calibration, binary=len(view.cohort.classes) == 2, size=(PHONE, 3.6)
        )
        figures["calibration"] = data_url(drawn)
    drawings = [dynamics_figure([d], view.axis, beside=dynamics) for d in dynamics]
    figures["dynamics"] = [(d.method, data_url(f)) for d, f in zip(dynamics, drawings, strict=True)]
    return figures


def data_url(figure: Figure) -> str:
    """A figure as an SVG data URL, so the page contains it."""
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
