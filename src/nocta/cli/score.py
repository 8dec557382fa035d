"""`nocta score`: the next decision of every subject of a large cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nocta.cli.model import ModelArgument, choose_cost_weight
from nocta.cli.running import JobsOption, QuietOption


def score(
    model: ModelArgument,
    cohort: Annotated[
        Path,
        typer.Argument(
            metavar="COHORT",
            help="Parquet file, or folder of Parquet files, with what was acquired so far: empty "
            "= not acquired, `unavailable` = asked for in vain.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="One file (F.parquet), or a folder that gets one file per part of the input.",
            show_default=False,
        ),
    ],
    cost_weight: Annotated[
        float | None,
        typer.Option(
            "--cost-weight",
            min=0.0,
            help="What one unit of cost is worth in loss; the middle one of the model by default.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", min=0.0, help="What may still be spent on each subject.", show_default=False
        ),
    ] = None,
    jobs: JobsOption = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            help="Address of a Dask scheduler; parts become tasks of its workers.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace results of other settings, and of parts the cohort does not have.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Write the next decision of every subject: when, which features, and what they promise.

    The cohort is read with the model's own schema, part by part, so memory does not grow with
    it. Run the same command again to go on with a run that was stopped.
    """
    from nocta.model.persistence import load
    from nocta.runs.score_run import ScoreRequest, score_cohort

    weight, origin = choose_cost_weight(load(model), cost_weight)
    try:
        n = score_cohort(
            ScoreRequest.of(model, weight, budget),
            cohort,
            out,
            force=force,
            n_jobs=jobs,
            dask=dask,
            progress=not quiet,
            say=lambda line: typer.echo(line, err=True),
        )
    except KeyboardInterrupt:
        typer.echo("\nStopped. Finished parts are kept; the same command goes on.", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{n} subjects at cost weight {weight:.4g} ({origin}), in {out}.")
