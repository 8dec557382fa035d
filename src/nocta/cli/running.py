"""Options that several commands share: what to run, how, and at which operating points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OutFolder = Annotated[
    Path, typer.Option("--out", help="Folder for the results. Run again to continue in it.")
]
PresetOption = Annotated[
    str, typer.Option("--preset", help="`default` (recommended) or `paper` (as published).")
]
PredictorOption = Annotated[
    str,
    typer.Option(
        "--predictor",
        help="Predictor that the methods share: `learned`, `bayes` (synthetic only), or the name "
        "of an installed predictor.",
    ),
]
PointsOption = Annotated[
    int, typer.Option("--points", min=1, help="Operating points per method, chosen on validation.")
]
CostWeightsOption = Annotated[
    str | None,
    typer.Option(
        "--cost-weights",
        help="Cost weights to use instead of --points, such as 0.1,0.3,1. A cost weight is the "
        "loss that one unit of cost is worth.",
    ),
]
BudgetsOption = Annotated[
    str | None,
    typer.Option("--budgets", help="Hard limits on the cost per subject, such as 5,10,20."),
]
CostWeightOption = Annotated[
    float | None,
    typer.Option(
        "--cost-weight",
        min=0.0,
        help="Loss that one unit of cost is worth. Default: the middle one saved with the model.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option("--budget", min=0.0, help="Hard limit on the further cost of each subject."),
]
SplitColumnOption = Annotated[
    str | None,
    typer.Option(
        "--split-column",
        help="Column that assigns subjects to train, val and test. For a built-in data set: the "
        "name of a split on its card.",
    ),
]
FractionsOption = Annotated[
    str | None,
    typer.Option(
        "--fractions",
        help="Shares of train, validation and test, such as .7,.15,.15. Default: those of the "
        "data set.",
    ),
]
AvailabilityOption = Annotated[
    str,
    typer.Option(
        "--availability",
        help="When a policy learns that a value is missing: `on-arrival` at the visit, or "
        "`known` beforehand (the paper's rule).",
    ),
]
ResultsOption = Annotated[
    str,
    typer.Option(
        "--results",
        help="When a policy sees a visit's results: `after-visit`, or `at-once` for methods that "
        "acquire one feature at a time (dime, difa).",
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Number of processes. Default: one per core.")
]
DaskOption = Annotated[
    str | None,
    typer.Option("--dask", help="Address of a Dask scheduler; its workers run the jobs."),
]
QuickOption = Annotated[
    bool,
    typer.Option(
        "--quick", help="Quick run to try things out: few subjects, short training, worse numbers."
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]
