"""`nocta optimum`: the exact cost-accuracy frontier of a finite task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nocta.cli.running import QuietOption

if TYPE_CHECKING:
    from nocta.exact.optimum import OptimalFrontier

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def optimum(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="A data set drawn from a finite task: `synthetic`."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="CSV to write, with columns cost and accuracy.")
    ],
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Also draw the frontier (.png, .svg or .pdf)."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Compute the best accuracy any policy can have at each mean cost.

    Dynamic programming over every reachable belief: a minute or two, up to 6 GiB of memory.
    """
    from nocta.runs.optimum import compute_optimum, finite_task, write_optimum
    from nocta.runs.setup import DataSource

    source = DataSource(task)
    finite_task(source)  # a wrong name is reported before anything is computed
    _check_targets(out, figure)
    frontier = compute_optimum(source, progress=not quiet)
    write_optimum(frontier, out)
    typer.echo(
        f"Wrote {len(frontier)} vertices to {out}: from accuracy {frontier.accuracy[0]:.4f} at "
        f"no cost to {frontier.accuracy[-1]:.4f} at cost {frontier.cost[-1]:.3f}."
    )
    if figure is not None:
        _draw(frontier, task, figure)
        typer.echo(f"Drew {figure}.")


def _draw(frontier: OptimalFrontier, task: str, path: Path) -> None:
    import numpy as np
    import pandas as pd

    from nocta.report.plots.frontier import Panel, frontier_figure
    from nocta.report.plots.style import COLUMN, save_figure

    nobody = pd.DataFrame(columns=["method", "seed", "cost", "accuracy"])
    points = np.stack([frontier.cost, frontier.accuracy], axis=1)
    panel = Panel(nobody, optimum=points, title=f"The best any policy can do: {task}")
    save_figure(frontier_figure(panel, (1.4 * COLUMN, COLUMN)), path)


def _check_targets(out: Path, figure: Path | None) -> None:
    """A place that cannot be written to is reported before two minutes of work, not after."""
    from nocta.core.errors import ConfigError

    for path in (out, figure):
        if path is not None and path.is_dir():
            raise ConfigError(f"'{path}' is a folder; name a file in it.")
    if figure is not None and figure.suffix.lower() not in FIGURE_SUFFIXES:
        raise ConfigError(
            f"'{figure}' has no ending of a picture; use one of {', '.join(FIGURE_SUFFIXES)}."
        )
