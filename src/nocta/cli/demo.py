"""`nocta demo`: from nothing to a report on the synthetic task."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from nocta.cli.outputs import check_folder, exit_on_failures, make_table, say, stoppable
from nocta.cli.running import JobsOption, OutFolder, QuickOption, QuietOption

if TYPE_CHECKING:
    import pandas as pd

    from nocta.runs.compare import Comparison

METHODS = ("nocta-amortized", "static", "random")
#: Rows of the paper to show beside ours.
PAPER_METHODS = ("nocta-contrastive", "nocta-amortized")


def demo(
    out: OutFolder = Path("demo"),
    quick: QuickOption = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Train on the synthetic task, and compare with the paper's rows and the exact optimum.

    Ten visits each offer a digit and a counter, at a cost of one each. The label is the sum of
    the digits shown whenever the counter ran out. Takes about five minutes on two cores.
    """
    from nocta.report import write_comparison
    from nocta.report.text import failure_lines
    from nocta.runs.compare import compare, make_jobs
    from nocta.runs.setup import DataSource, Setup

    check_folder(out)
    setup = Setup(source=DataSource("synthetic"))
    if quick:
        setup = setup.as_quick()
    say("Fitting a predictor, NOCTA and two reference methods on the paper's synthetic task.")
    with stoppable(f"Finished jobs are in '{out}'; run the same command again to continue."):
        comparison = compare(setup, make_jobs(METHODS, [0]), out, n_jobs=jobs, progress=not quiet)
        write_comparison(comparison)
    console = Console(highlight=False)
    if comparison.records:
        console.print(results_table(demo_rows(comparison)))
        if quick:
            console.print("This was a quick run: too little data and training for good numbers.")
        console.print(f"Report: {out / 'report.html'}", soft_wrap=True)
        console.print(
            "With your own table: nocta init, nocta fit, then nocta serve MODEL plans in a browser."
        )
    exit_on_failures(failure_lines(comparison))


def demo_rows(comparison: Comparison) -> pd.DataFrame:
    """Our operating points and the paper's, each with the optimum at the same cost."""
    import pandas as pd

    from nocta.report.published import published_for
    from nocta.runs.shares import share_of_optimum

    assert comparison.yardstick is not None
    paper = published_for(comparison.setup.source)
    assert paper is not None
    printed = [
        {
            "method": f"paper's {row.method}",
            "seed": 0,
            "cost": row.cost,
            "accuracy": row.metrics["accuracy"],
        }
        for row in paper.rows
        if row.method in PAPER_METHODS
    ]
    rows = pd.concat([comparison.results, pd.DataFrame(printed)], ignore_index=True)
    shares = share_of_optimum(rows, comparison.yardstick)
    return shares[~shares["point"].isin(["costs", "lowest"])]  # the paper's few rows have no curve


def results_table(rows: pd.DataFrame) -> Table:
    """Cost, accuracy, the best possible accuracy at that cost, and the shares of it."""
    title = "Synthetic task: accuracy, and the best possible at the same cost"
    table = make_table("", "cost", "accuracy", "optimum", "share", "of gain", n_text=1, title=title)
    previous = ""
    for row in rows.itertuples():
        method, mean = str(row.method), row.point == "mean"
        shown = "mean" if mean else method if method != previous else ""
        numbers = (f"{row.cost:.2f}", f"{row.accuracy:.3f}", f"{row.optimum:.3f}")
        table.add_row(
            shown,
            *(("", "", "") if mean else numbers),
            f"{row.ratio:.1%}",
            "–" if isnan(row.gain_accuracy) else f"{row.gain_accuracy:.1%}",
            style="bold" if mean else None,
            end_section=mean,
        )
        previous = method
    return table
