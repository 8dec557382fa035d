"""A comparison in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nocta.report.tables import points_table
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.summary import side_by_side

if TYPE_CHECKING:
    from rich.table import Table


def summary_table(comparison: Comparison) -> Table:
    """Every operating point, averaged over seeds."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    content = points_table(ReportView(comparison), side_by_side(comparison.quality))
    seeds = len(comparison.seeds)
    out = Table(
        title=f"{comparison.dataset}: mean ± standard error over {seeds} seed(s)",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    counts = {row[-1] for row in content.rows}
    hidden = ("point",) if len(counts) > 1 else ("point", "seeds")  # the title has the seeds
    wanted = [i for i, name in enumerate(content.head) if name not in hidden]
    for i in wanted:
        out.add_column(content.head[i], justify="right" if i else "left", no_wrap=i == 0)
    previous = ""
    for row in content.rows:
        if previous and row[0] != previous:
            out.add_section()
        out.add_row(*("" if i == 0 and row[0] == previous else row[i] for i in wanted))
        previous = row[0]
    return out


def failure_lines(comparison: Comparison) -> list[str]:
    """The failed jobs, and where to find their tracebacks."""
    failures = comparison.failures
    if not failures:
        return []
    where = comparison.directory / "jobs"
    head = f"{len(failures)} job(s) failed; run the same command to try them again."
    # A killed process leaves no traceback.
    traced = [f"Tracebacks are in {where}/*.error"] if any(where.glob("*.error")) else []
    return [head, *(f"  {f}" for f in failures), *traced]
