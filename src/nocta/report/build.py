"""Write the report: figures, tables and settings of a comparison in one HTML file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from nocta.methods.registry import method_class
from nocta.report import tables
from nocta.report.figures import report_figures, save_figures
from nocta.report.paired import paired_tests
from nocta.report.plots.frontier import METRIC_LABELS, with_bands
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.files import write_atomically


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


def render(comparison: Comparison) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nocta.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(**_content(comparison))


def _content(comparison: Comparison) -> dict[str, Any]:
    view = ReportView(comparison)
    style = resources.files("nocta.report").joinpath("templates/report.css").read_text("utf-8")
    return {
        "style": style,
        "comparison": comparison,
        "setup": comparison.setup,
        "view": view,
        "quality": METRIC_LABELS[comparison.quality],
        "far": [
            f"{tables.label(method)} ({view.price(cost)})"
            for method, cost in view.far_from_reference().items()
        ],
        "few_bands": with_bands(view.methods) != view.methods,
        "headline": headline(view),
        "figures": report_figures(view),
        "label": tables.label,
        "summary": tables.quality_table(view),
        "differences": tables.difference_table(view),
        "tests": paired_tests(view),
        "points": tables.points_table(view),
        "ledger": tables.ledger_table(view),
        "audit": tables.audit_table(view),
        "settings": tables.settings_table(view),
        "tuning": tables.tuning_table(view),
        "times": tables.times_table(view),
        "versions": tables.versions_table(view),
        "impatient": impatient_methods(view),
    }


def impatient_methods(view: ReportView) -> str:
    """Names of the methods that saw one result of a visit before requesting the next."""
    if view.comparison.setup.results != "at-once":
        return ""
    jobs = {record.job.label: record.job.method for record in view.comparison.records}
    found = [name for name in view.methods if method_class(jobs[name]).acts_within_visit]
    return " and ".join(tables.label(name) for name in found)


def headline(view: ReportView) -> str:
    """The comparison in one or two sentences."""
    found = tables.quality_table(view)
    quality = METRIC_LABELS[view.comparison.quality]
    if found is None or not found.rows:
        return f"{len(view.methods)} method(s) without a common range of costs."
    best = found.rows[0]
    column = found.head.index(quality)
    costs = f"{found.notes['low']} to {found.notes['high']}"
    text = f"Over costs from {costs}, {best[0]} has the best mean {quality}: {best[column]}."
    if len(found.rows) > 1:
        second = found.rows[1]
        text += f" Second is {second[0]} with {second[column]}."
    absent = _absent(view, {row[0] for row in found.rows})
    if absent:
        text += (
            f" Not ranked because of a narrow range of costs: {absent}; see the paired differences."
        )
    return text


def _absent(view: ReportView, ranked: set[str]) -> str:
    """Names of the methods with several operating points that are not ranked."""
    points = view.comparison.results.groupby("method")["cost"].nunique()
    curves = [method for method in view.methods if points[method] > len(view.comparison.seeds)]
    names = [tables.label(method) for method in curves]
    return ", ".join(name for name in names if name not in ranked)
