"""Options that several commands share: what to run, how, and at which operating points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from nocta.cli.outputs import say

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA

ModelArgument = Annotated[
    Path, Argument(metavar="DIR", help="Folder of a model that `nocta fit` wrote.")
]
OutFolder = Annotated[
    Path, Option("--out", help="Folder for the results. Run again to continue in it.")
]
PresetOption = Annotated[
    str, Option("--preset", help="`default` (recommended) or `paper` (as published).")
]
PredictorOption = Annotated[
    str,
    Option(
        "--predictor",
        help="Predictor that the methods share: `learned`, `bayes` (only for data drawn from a "
        "known finite task), or the name of an installed predictor.",
    ),
]
PointsOption = Annotated[
    int, Option("--points", min=1, help="Operating points per method, chosen on validation.")
]
CostWeightsOption = Annotated[
    str | None,
    Option(
        "--cost-weights",
        help="Cost weights to use instead of --points, such as 0.1,0.3,1. A cost weight is the "
        "loss that one unit of cost is worth.",
    ),
]
BudgetsOption = Annotated[
    str | None, Option("--budgets", help="Hard limits on the cost per subject, such as 5,10,20.")
]
CostWeightOption = Annotated[
    float | None,
    Option(
        "--cost-weight",
        min=0.0,
        help="Loss that one unit of cost is worth. Default: that of the default "
        "operating point saved with the model (`nocta choose` sets it).",
    ),
]
BudgetOption = Annotated[
    float | None,
    Option("--budget", min=0.0, help="Hard limit on the further cost of each subject."),
]
SplitColumnOption = Annotated[
    str | None,
    Option(
        "--split-column",
        help="Column that assigns subjects to train, val and test. For a built-in data set: the "
        "name of a split on its card.",
    ),
]
FractionsOption = Annotated[
    str | None,
    Option(
        "--fractions",
        help="Shares of train, validation and test, such as .7,.15,.15. Default: those of the "
        "data set.",
    ),
]
AvailabilityOption = Annotated[
    str,
    Option(
        "--availability",
        help="When a policy learns that a value is missing: `on-arrival` at the visit, or "
        "`known` beforehand (the paper's rule).",
    ),
]
ResultsOption = Annotated[
    str,
    Option(
        "--results",
        help="When a policy sees a visit's results: `after-visit`, or `at-once` for methods that "
        "acquire one feature at a time (dime, difa).",
    ),
]
JobsOption = Annotated[
    int | None, Option("--jobs", min=1, help="Number of processes. Default: one per core.")
]
DaskOption = Annotated[
    str | None, Option("--dask", help="Address of a Dask scheduler; its workers run the jobs.")
]
QuickOption = Annotated[
    bool,
    Option(
        "--quick", help="Quick run to try things out: few subjects, short training, worse numbers."
    ),
]
QuietOption = Annotated[bool, Option("--quiet", help="Do not show progress.")]


def choose_cost_weight(model: NOCTA, given: float | None) -> tuple[float, str]:
    """The cost weight to use, and where it comes from."""
    if given is not None:
        return given, "as given"
    point = model.default_point
    if point.note:
        say(f"Note: {point.note}")
    return point.cost_weight, point.reason
