"""`nocta optimum`: the exact cost-accuracy frontier of a finite task, and exact NOCT."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from typer import Argument, Option

from nocta.cli.data import DataOptions, parse_data_options
from nocta.cli.outputs import check_outputs
from nocta.cli.running import QuietOption

if TYPE_CHECKING:
    from nocta.exact.yardstick import Yardstick


def optimum(
    task: Annotated[
        str,
        Argument(
            metavar="TASK",
            help="A data set drawn from a finite task: `synthetic` or `synthetic-family`.",
        ),
    ],
    out: Annotated[
        Path,
        Option(
            "--out",
            help="CSV file to write, with columns cost and accuracy; see --noct for more.",
        ),
    ],
    data_option: DataOptions = None,
    noct: Annotated[
        bool,
        Option(
            "--noct",
            help="Also solve for cross-entropy, and evaluate the policy that plans by exact NOCT "
            "and replans. The file then has one row per policy found, with columns policy "
            "(optimum or noct), loss (what the policy minimizes: error or cross-entropy), "
            "cost_weight, cost, accuracy, and cross_entropy (mean per time, in nats).",
        ),
    ] = False,
    figure: Annotated[
        Path | None, Option("--figure", help="Draw the frontier: a .png, .svg or .pdf file.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Compute the best accuracy that any policy can reach at each mean cost.

    Dynamic programming over every reachable belief takes a minute or two and up to 6 GiB of
    memory for `synthetic` (with --noct several minutes), and seconds for `synthetic-family`.
    """
    from nocta.exact.graph import Loss
    from nocta.runs.optimum import compute_yardstick, finite_task, write_curves, write_optimum
    from nocta.runs.setup import DataSource

    source = DataSource(task)
    check_outputs(out, figure)
    finite_task(source)  # a wrong name is reported before anything is computed
    source = DataSource(task, data_options=parse_data_options(task, data_option))
    finite_task(source)
    yardstick = compute_yardstick(
        source, get_args(Loss) if noct else ["error"], noct=noct, progress=not quiet
    )
    frontier = yardstick.optimum
    if noct:
        write_curves(yardstick, out)
    else:
        write_optimum(frontier, out)
    typer.echo(
        f"Wrote {len(frontier)} vertices to {out}: from accuracy {frontier.accuracy[0]:.4f} at "
        f"no cost to {frontier.accuracy[-1]:.4f} at cost {frontier.cost[-1]:.3f}."
    )
    if noct:
        typer.echo(_about_noct(yardstick))
    if figure is not None:
        _draw(yardstick, " ".join([task, *(data_option or [])]), figure)
        typer.echo(f"Wrote {figure}.")


def _about_noct(yardstick: Yardstick) -> str:
    """Where exact NOCT is farthest from the optimum."""
    from nocta.evaluation.attainable import noct_frontier, optimum_frontier, share_over_costs

    lines = []
    for measure in ("accuracy", "cross_entropy"):
        best, noct = optimum_frontier(yardstick, measure), noct_frontier(yardstick, measure)
        assert best is not None
        assert noct is not None
        share = share_over_costs(best, noct)
        lines.append(
            f"Exact NOCT has {share.mean:.3f} of the attainable gain in {measure.replace('_', '-')}"
            f" on average over costs; least, {share.lowest:.3f}, at cost {share.lowest_at:.2f}."
        )
    return "\n".join(lines)


def _draw(yardstick: Yardstick, task: str, path: Path) -> None:
    import pandas as pd

    from nocta.report.plots.frontier import Panel, frontier_figure
    from nocta.report.plots.style import COLUMN, save_figure

    points = pd.DataFrame(
        [
            {"method": "exact NOCT", "seed": 0, "cost": p.cost, "accuracy": p.accuracy}
            for curve in yardstick.curves
            if (curve.policy, curve.loss) == ("noct", "error")
            for p in curve
        ],
        columns=["method", "seed", "cost", "accuracy"],
    )
    panel = Panel(
        points, optimum=yardstick.optimum.points, title=f"The best any policy can do: {task}"
    )
    save_figure(frontier_figure(panel, (1.4 * COLUMN, COLUMN)), path)
