"""A comparison in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nocta.experiments.compare import Comparison
from nocta.report.tables import points_table
from nocta.report.view import ReportView

if TYPE_CHECKING:
    from rich.table import Table


def summary_table(comparison: Comparison) -> Table:
    """Every operating point, averaged over seeds."""
    from rich.table import Table

    shown = dict.fromkeys([comparison.quality, "cross_entropy"])
    content = points_table(ReportView(comparison), list(shown))
    seeds = len(comparison.seeds)
    out = Table(
        title=f"{comparison.dataset}: mean ± standard error over {seeds} seed(s)",
        title_justify="left",
    )
    for i, name in enumerate(content["head"]):
        out.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0)
    previous = None
    for row in content["rows"]:
        if previous is not None and row[0] != previous:
            out.add_section()
        out.add_row(*row)
        previous = row[0]
    return out


def failure_lines(comparison: Comparison) -> list[str]:
    """What failed, and where to look."""
    failures = comparison.failures
    if not failures:
        return []
    where = comparison.directory / "jobs"
    head = f"{len(failures)} job(s) failed; run the same command to try them again."
    return [head, *(f"  {f}" for f in failures), f"Tracebacks are in {where}/*.error"]
