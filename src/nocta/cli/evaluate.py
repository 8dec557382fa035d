"""`nocta evaluate`: roll a saved model out over a cohort, into results.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    is_table,
    keep_inputs,
    parse_data_options,
    parse_numbers,
    refuse_folders,
    say_remarks,
)
from nocta.cli.model import ModelArgument
from nocta.cli.running import AvailabilityOption, QuietOption
from nocta.core.currency import money

if TYPE_CHECKING:
    import pandas as pd

    from nocta.core.environment import Availability
    from nocta.methods.saving import SavedMethod

AUDITED = 48


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", help="results.csv to write.", show_default=False)],
    cost_weights: Annotated[
        str | None,
        typer.Option(
            "--cost-weights",
            help="What one unit of cost is worth in loss: 0.1,0.3,1. Those kept with the model "
            "by default.",
            show_default=False,
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            "--budgets",
            help="Hard limits on what each subject may be charged: 5,10,20.",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        int, typer.Option("--points", min=1, help="How many of the model's own cost weights.")
    ] = 10,
    availability: AvailabilityOption = "on-arrival",
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            help="`test` (kept aside by the fit; the default for its data) or `all` (the default "
            "for other data).",
            show_default=False,
        ),
    ] = None,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw cost against quality: .png, .svg or .pdf."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Roll a saved model out over cost weights and budgets, and write results.csv.

    On the data it was fitted on, the subjects kept aside for testing are used. A table is read
    with the model's own schema unless another is given, a built-in data set with the options of
    the fit unless --data-option gives others. A sample is audited: the policy lives again
    through worlds changed wherever it has not looked, and nothing it does may differ.

    Each operating point is written when it is finished, and large cohorts are rolled out piece by
    piece. Run the same command again to go on with a run that was stopped.
    """
    from nocta.core.errors import ConfigError
    from nocta.methods.saving import load_saved
    from nocta.runs import saved
    from nocta.runs.evaluate_run import Evaluation
    from nocta.runs.results import results_frame, write_results
    from nocta.runs.setup import DataSource

    if part not in (None, "test", "all"):
        raise ConfigError(f"--part is '{part}'; use 'test' or 'all'.")
    _check_targets(out, figure)
    keep_inputs((out, figure), data, schema)
    weights = parse_numbers("--cost-weights", cost_weights)
    limits = parse_numbers("--budgets", budgets)
    chosen = parse_data_options(data, data_option)
    fitted = load_saved(model)
    settings = saved.settings_of(fitted, weights, limits, points)
    judged = saved.subjects_to_judge(
        fitted,
        data,
        table=is_table(data),
        schema=schema,
        path=path,
        part=part,  # type: ignore[arg-type]  # checked above
        data_options=chosen,
    )
    rule: Availability = availability  # type: ignore[assignment]  # the environment checks it

    def say(sentence: str) -> None:
        typer.echo(sentence, err=True)

    say(f"{judged.cohort.name}: {judged.note}.")
    say_remarks(judged.remarks, judged.warnings)
    evaluation = Evaluation.open(fitted, model, judged, rule, out)
    rows = []
    try:
        for row in evaluation.rows(settings, progress=not quiet, say=say):
            rows.append(row)
            write_results(results_frame(rows), out)
        middle = settings[len(settings) // 2]
        finding = saved.audit_sample(fitted, judged, middle, rule, AUDITED)
    except KeyboardInterrupt:
        say("\nStopped. What is finished is kept; the same command goes on.")
        raise typer.Exit(130) from None
    evaluation.finished.clear()
    frame = results_frame(rows)
    _print(frame, fitted)
    typer.echo(f"Audit: {finding}")
    typer.echo(f"Wrote {out}.")
    if figure is not None:
        source = DataSource(data, schema="" if is_table(data) else None)
        _draw(frame, figure, fitted, source.headline)
        typer.echo(f"Drew {figure}.")


def _print(frame: pd.DataFrame, model: SavedMethod) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    limited = bool(frame["budget"].notna().any())
    knob = "cost weight" if model.method.has_cost_weight else "setting"
    head = [knob, *(["budget"] if limited else []), "mean cost"]
    for name in (*head, "accuracy", "AP", "ROC AUC", "cross-entropy"):
        table.add_column(name, justify="right", no_wrap=True)
    currency = model.catalog_.currency
    for _, row in frame.iterrows():
        table.add_row(
            f"{row['cost_weight']:.4g}" if model.method.has_cost_weight else row["setting"],
            *([money(row["budget"], currency)] if limited else []),
            money(row["cost"], currency),
            *(f"{row[name]:.3f}" for name in ("accuracy", "ap", "roc_auc", "cross_entropy")),
        )
    Console().print(table)


def _draw(frame: pd.DataFrame, path: Path, model: SavedMethod, metric: str) -> None:
    from nocta.report.plots.frontier import Panel, frontier_figure
    from nocta.report.plots.style import COLUMN, method_style, save_figure

    dataset = str(frame["dataset"].iloc[0])
    panel = Panel(
        frame,
        metric=metric,
        title=f"{dataset}: {method_style(model.name).label}",
        currency=model.catalog_.currency,
    )
    save_figure(frontier_figure(panel, (1.4 * COLUMN, COLUMN)), path)


def _check_targets(out: Path, figure: Path | None) -> None:
    """What cannot be written is said before the work, not after."""
    from nocta.core.errors import ConfigError
    from nocta.runs.results import is_results

    refuse_folders((out, figure))
    if out.exists() and not is_results(out):
        raise ConfigError(f"'{out}' holds no results of nocta; choose another --out.")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"'{figure}' is no figure; end its name in .png, .svg or .pdf.")
