"""`nocta choose`: an operating point in the user's terms, saved as the model's default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from nocta.cli import running
from nocta.cli.data import (
    DataOptions,
    PathOption,
    SchemaOption,
    is_table,
    parse_data_options,
)
from nocta.cli.outputs import check_outputs, make_table, say, say_notes
from nocta.core.currency import money
from nocta.core.errors import ConfigError

if TYPE_CHECKING:
    from nocta.core.environment import Availability
    from nocta.methods.saving import SavedMethod
    from nocta.model.choice.choose import Choice

#: What the promise of a risk does not cover.
_SEEN = (
    "Note: These subjects also helped to fit the model, so the promise is only strictly valid on "
    "subjects that the fit has not used: give a table of other subjects, or spend the test "
    "subjects with --part test."
)


def choose(
    model: running.ModelArgument,
    data: Annotated[
        str | None,
        Argument(
            metavar="[DATA]",
            help="The data of the fit (its validation subjects are used; the default), or a table "
            "of other subjects.",
        ),
    ] = None,
    sensitivity: Annotated[
        float | None,
        Option("--sensitivity", help="Cheapest point with at least this, at --specificity."),
    ] = None,
    specificity: Annotated[
        float | None, Option("--specificity", help="Specificity to keep. Default: 0.8.")
    ] = None,
    at_most_cost: Annotated[
        float | None,
        Option("--at-most-cost", help="Best point that costs at most this a subject, on average."),
    ] = None,
    cost_per_case: Annotated[
        float | None,
        Option(
            "--cost-per-case",
            help="Most expensive point up to which one more case found costs at most this.",
        ),
    ] = None,
    within: Annotated[
        float | None,
        Option("--within", help="Cheapest point within this share of the best --metric."),
    ] = None,
    metric: Annotated[str, Option("--metric", help="Metric of --within.")] = "ap",
    risk: Annotated[
        str | None,
        Option(
            "--risk",
            help="Cheapest point that can promise --at-most of this risk on new subjects: "
            "`miss-rate`, `false-alarm-rate` or `error`.",
        ),
    ] = None,
    at_most: Annotated[float | None, Option("--at-most", help="What the risk may be.")] = None,
    confidence: Annotated[
        float, Option("--confidence", help="Probability with which the promise is kept.")
    ] = 0.9,
    control: Annotated[
        str,
        Option(
            "--control",
            help="How several points are tested: `fixed-sequence`, from the most expensive down, "
            "or `bonferroni`.",
        ),
    ] = "fixed-sequence",
    positive: Annotated[
        str | None,
        Option(
            "--positive", help="Positive classes, such as worse,dead. Default: the second of 2."
        ),
    ] = None,
    threshold: Annotated[
        float, Option("--threshold", help="Probability from which a risk calls a visit positive.")
    ] = 0.5,
    part: Annotated[
        str | None,
        Option(
            "--part",
            help="Subjects of the fit's own data: `validation` (default), or `test`, which are "
            "then no longer untouched. For other data: `all`.",
        ),
    ] = None,
    availability: running.AvailabilityOption = "on-arrival",
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    figure: Annotated[
        Path | None,
        Option("--figure", help="Draw cost against each of these: a .png, .svg or .pdf file."),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show the choice; leave the model as it is.")
    ] = False,
) -> None:
    """Choose the operating point that a saved model uses by default, in your own terms.

    Say one of --sensitivity, --at-most-cost, --cost-per-case, --within or --risk. The choice is
    made on subjects that were held out from training; intervals are over subjects. If no point
    does what you ask, nothing is changed and the exit status is 2.
    """
    from nocta.methods.saving import load_saved
    from nocta.model.choice.choose import make_goal
    from nocta.runs.choose_run import choose_default, keep_choice
    from nocta.runs.saved import subjects_to_judge

    if part not in (None, "validation", "test", "all"):
        raise ConfigError(f"--part is '{part}'; use 'validation', 'test' or 'all'.")
    check_outputs(None, figure, inputs=(data, schema))
    fitted = load_saved(model)
    goal = make_goal(
        fitted.classes_,
        sensitivity=sensitivity,
        specificity=specificity,
        at_most_cost=at_most_cost,
        cost_per_case=cost_per_case,
        within=within,
        metric=metric,
        risk=risk,
        at_most=at_most,
        confidence=confidence,
        control=control,
        positive=None if positive is None else [name.strip() for name in positive.split(",")],
        threshold=threshold,
        currency=fitted.catalog_.currency,
    )
    source = data or _own_data(fitted, model)
    judged = subjects_to_judge(
        fitted,
        source,
        table=is_table(source),
        schema=schema,
        path=path,
        part=part,  # type: ignore[arg-type]  # checked above
        own="validation",
        data_options=parse_data_options(source, data_option),
    )
    say(f"{judged.cohort.name}: chosen on {judged.note}.")
    say_notes(judged.remarks, judged.warnings)
    if risk is not None and judged.part == "validation":
        say(_SEEN)
    rule: Availability = availability  # type: ignore[assignment]  # the environment checks it
    choice, rollouts = choose_default(fitted, judged, goal, rule)
    _print(choice, fitted)
    if figure is not None:
        from nocta.report.plots.choice import draw_choice

        draw_choice(choice, rollouts, figure, metric=metric, positive=positive, model=fitted)
        typer.echo(f"Wrote {figure}.")
    if choice.setting is None:
        raise ConfigError(f"Nothing was chosen: {choice.reason}. The default stays as it was.")
    if dry_run:
        typer.echo("A dry run: the model stays as it is.")
        return
    keep_choice(fitted, model, choice, judged)
    typer.echo(f"Saved as the default of {model}; plan, score and evaluate use it.")


def _own_data(model: SavedMethod, folder: Path) -> str:
    """The data the model was fitted on, if they are still where they were."""
    source = model.record_.get("request", {}).get("source", {})
    data = str(source.get("data", ""))
    if not data or (source.get("schema") is not None and not Path(data).exists()):
        raise ConfigError(
            f"The data of the fit ('{data}') are not there; say which to choose on: "
            f"nocta choose {folder} DATA ..."
        )
    return data


def _print(choice: Choice, model: SavedMethod) -> None:
    from nocta.model.choice.choose import between
    from nocta.runs.point_text import point_name

    knob = "cost weight" if model.method.has_cost_weight else "setting"
    measured, cost = choice.measured, choice.cost
    other = [] if measured.name == "cost" else [f"{measured.name} (95 %)"]
    table = make_table(knob, "mean cost (95 %)", *other)
    currency = model.catalog_.currency
    for i, setting in enumerate(choice.settings):
        mark = "* " if i == choice.index else ""
        ends = f"({cost.low[i]:,.2f} to {cost.high[i]:,.2f})"
        row = [mark + point_name(setting), f"{money(float(cost.values[i]), currency)} {ends}"]
        if other:
            ends = between(float(measured.low[i]), float(measured.high[i]))
            shown = f"{measured.values[i]:.3g} ({ends})"
            row.append("" if measured.values[i] != measured.values[i] else shown)
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.print(table)
    if choice.setting is not None:
        console.print(str(choice))
