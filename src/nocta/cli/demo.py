"""`nocta demo`: from nothing to a report on the synthetic task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nocta.cli.running import JobsOption, QuietOption

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from nocta.runs.compare import Comparison

METHODS = ("nocta-amortized", "static", "random")
#: Rows of the paper that are shown beside ours.
PAPER_METHODS = ("nocta-contrastive", "nocta-amortized")


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the results; continued where it stopped.")
    ] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A rehearsal of a minute or two: worse numbers.")
    ] = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Train on the synthetic task, and set it beside the paper's rows and the exact optimum.

    A digit and a counter can be read at ten visits, each at a cost of one; the label is the sum
    of the digits shown whenever the counter ran out. About five minutes on two cores.
    """
    from rich.console import Console

    from nocta.report import write_comparison
    from nocta.runs.compare import compare, make_jobs
    from nocta.runs.setup import DataSource, Setup

    setup = Setup(source=DataSource("synthetic"))
    if quick:
        setup = setup.as_quick()
    errors = Console(stderr=True, highlight=False)
    errors.print(
        "Fitting a predictor, then NOCTA and two reference methods, on the paper's synthetic task."
    )
    try:
        comparison = compare(setup, make_jobs(METHODS, [0]), out, n_jobs=jobs, progress=not quiet)
        write_comparison(comparison)
    except KeyboardInterrupt:
        errors.print(f"\nStopped. What is finished is in '{out}'; the same command goes on.")
        raise typer.Exit(130) from None
    console = Console(highlight=False)
    if comparison.records:
        console.print(results_table(demo_rows(comparison)))
        if quick:
            console.print("A rehearsal: too little data and training for good numbers.")
        console.print(f"Report: {out / 'report.html'}", soft_wrap=True)
    from nocta.report.text import failure_lines

    for line in failure_lines(comparison):
        errors.print(line, style="red", markup=False)
    if comparison.failures:
        raise typer.Exit(1)


def demo_rows(comparison: Comparison) -> pd.DataFrame:
    """Our operating points and the paper's, each with the optimum at the same cost."""
    import pandas as pd

    from nocta.report.published import published_for
    from nocta.runs.summary import share_of_optimum

    assert comparison.optimum is not None
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
    return share_of_optimum(rows, comparison.optimum)


def results_table(rows: pd.DataFrame) -> Table:
    """Cost, accuracy, the best possible accuracy at that cost, and the share of it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title="Synthetic task: accuracy, and the best possible at the same cost",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for name in ("", "cost", "accuracy", "optimum", "share"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    previous = ""
    for row in rows.itertuples():
        method, mean = str(row.method), row.point == "mean"
        shown = "mean" if mean else method if method != previous else ""
        numbers = (f"{row.cost:.2f}", f"{row.accuracy:.3f}", f"{row.optimum:.3f}")
        table.add_row(
            shown,
            *(("", "", "") if mean else numbers),
            f"{row.ratio:.1%}",
            style="bold" if mean else None,
            end_section=mean,
        )
        previous = method
    return table
