"""`nocta optimum`: the exact cost-accuracy frontier of a finite task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from nocta.cli.outputs import check_outputs
from nocta.cli.running import QuietOption

if TYPE_CHECKING:
    from nocta.exact.optimum import OptimalFrontier


def optimum(
    task: Annotated[str, Argument(metavar="TASK", help="A finite task; `synthetic` is built in.")],
    out: Annotated[
        Path, Option("--out", help="CSV file to write, with columns cost and accuracy.")
    ],
    figure: Annotated[
        Path | None, Option("--figure", help="Draw the frontier: a .png, .svg or .pdf file.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Compute the best accuracy that any policy can reach at each mean cost.

    Dynamic programming over every reachable belief takes a minute or two and up to 6 GiB of
    memory.
    """
    from nocta.runs.optimum import compute_optimum, finite_task, write_optimum
    from nocta.runs.setup import DataSource

    source = DataSource(task)
    check_outputs(out, figure)
    finite_task(source)  # a wrong name is reported before anything is computed
    frontier = compute_optimum(source, progress=not quiet)
    write_optimum(frontier, out)
    typer.echo(
        f"Wrote {len(frontier)} vertices to {out}: from accuracy {frontier.accuracy[0]:.4f} at "
        f"no cost to {frontier.accuracy[-1]:.4f} at cost {frontier.cost[-1]:.3f}."
    )
    if figure is not None:
        _draw(frontier, task, figure)
        typer.echo(f"Wrote {figure}.")


def _draw(frontier: OptimalFrontier, task: str, path: Path) -> None:
    import numpy as np
    import pandas as pd

    from nocta.report.plots.frontier import Panel, frontier_figure
    from nocta.report.plots.style import COLUMN, save_figure

    nobody = pd.DataFrame(columns=["method", "seed", "cost", "accuracy"])
    points = np.stack([frontier.cost, frontier.accuracy], axis=1)
    panel = Panel(nobody, optimum=points, title=f"The best any policy can do: {task}")
    save_figure(frontier_figure(panel, (1.4 * COLUMN, COLUMN)), path)
