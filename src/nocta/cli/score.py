"""`nocta score`: the next decision for every subject of a large cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from nocta.cli import running
from nocta.cli.outputs import check_folder, check_outputs, say, stoppable


def score(
    model: running.ModelArgument,
    cohort: Annotated[
        Path,
        Argument(
            metavar="COHORT",
            help="CSV or Parquet file, or folder of Parquet files, with the values acquired so "
            "far. "
            "Empty means not acquired; `unavailable` means requested but not available.",
        ),
    ],
    out: Annotated[
        Path,
        Option(
            "--out",
            help="An order list (F.csv), a table with all numbers (F.parquet), or a folder for one "
            "Parquet file per part of the input.",
        ),
    ],
    cost_weight: running.CostWeightOption = None,
    budget: running.BudgetOption = None,
    constraint: running.ConstraintOption = None,
    jobs: running.JobsOption = None,
    dask: running.DaskOption = None,
    force: Annotated[
        bool,
        Option(
            "--force",
            help="Replace results made with other settings, or from parts no longer in the cohort.",
        ),
    ] = False,
    allow_missing: Annotated[
        bool,
        Option(
            "--allow-missing",
            help="Treat features whose column the table lacks as unavailable so far.",
        ),
    ] = False,
    quiet: running.QuietOption = False,
) -> None:
    """Write the next decision for every subject: when, which features, expected loss and cost.

    A CSV output is an order list: subject, visit (and date), features, cost and prediction. It has
    a line for every subject; a line without visit means that nothing more is acquired.

    The cohort is read with the model's schema, part by part, so memory does not grow with its
    size. Run the same command again to continue a run that was stopped.
    """
    from nocta.model.persistence import load
    from nocta.runs.score_run import ScoreRequest, score_cohort

    check_folder(out.parent)
    if out.suffix.lower() == ".csv":
        check_outputs(out, inputs=(cohort,))
    fitted = load(model)
    fitted.catalog_.constrained(constraint)  # conflicts are told before anything is read
    weight, origin = running.choose_cost_weight(fitted, cost_weight)
    with stoppable("Finished parts are kept; run the same command again to continue."):
        n = score_cohort(
            ScoreRequest.of(model, weight, budget, allow_missing, constraint or ()),
            cohort,
            out,
            force=force,
            n_jobs=jobs,
            dask=dask,
            progress=not quiet,
            say=say,
        )
    typer.echo(f"Scored {n} subjects at cost weight {weight:.4g} ({origin}). Wrote {out}.")
