"""`nocta evaluate`: a saved model on a cohort, into results.csv."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Option

from nocta.cli import running
from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    is_table,
    parse_data_options,
    parse_numbers,
)
from nocta.cli.outputs import (
    check_outputs,
    check_report,
    make_narrow_table,
    say,
    say_notes,
    stoppable,
)
from nocta.core.currency import money
from nocta.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from nocta.core.environment import Availability
    from nocta.methods.saving import SavedMethod

AUDITED = 48


def evaluate(
    model: running.ModelArgument,
    data: DataArgument,
    out: Annotated[Path, Option("--out", help="The results.csv file to write.")],
    cost_weights: running.CostWeightsOption = None,
    budgets: running.BudgetsOption = None,
    points: Annotated[
        int, Option("--points", min=1, help="Number of cost weights saved with the model.")
    ] = 10,
    availability: running.AvailabilityOption = "on-arrival",
    part: Annotated[
        str | None,
        Option(
            "--part",
            help="Subjects to use: `test` (held out by the fit; default for the data of the fit) "
            "or `all` (default for other data).",
        ),
    ] = None,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    constraint: running.ConstraintOption = None,
    figure: Annotated[
        Path | None,
        Option("--figure", help="Draw quality against cost: a .png, .svg or .pdf file."),
    ] = None,
    report: Annotated[
        Path | None,
        Option("--report", help="Write a report of this model: an .html file."),
    ] = None,
    quiet: running.QuietOption = False,
) -> None:
    """Evaluate a saved model over cost weights and budgets, and write results.csv.

    On the data of the fit, only the test subjects are used. A table is read with the model's
    schema unless you give another; a built-in data set is loaded with the options of the fit
    unless --data-option sets others. An audit repeats a sample with every value changed that
    the policy has not acquired, and checks that all decisions stay the same. Inputs and labels
    are compared with those of the fit, to say whether the model still fits.

    Each operating point is written when it is finished. Large cohorts are processed in pieces.
    Run the same command again to continue a run that was stopped.
    """
    from nocta.methods.saving import load_saved
    from nocta.report.evaluation import write_evaluation
    from nocta.runs import saved
    from nocta.runs.drift import NOT_RECORDED, drift_of
    from nocta.runs.evaluate_run import Evaluation
    from nocta.runs.protocol_text import sentences_of_results
    from nocta.runs.results import is_results, results_frame, write_results
    from nocta.runs.setup import DataSource

    if part not in (None, "test", "all"):
        raise ConfigError(f"--part is '{part}'; use 'test' or 'all'.")
    check_outputs(out, figure, inputs=(data, schema))
    check_report(report, inputs=(data, schema))
    if out.exists() and not is_results(out):
        raise ConfigError(f"'{out}' exists and is not a nocta results file; choose another --out.")
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
        constraints=constraint,
    )
    settings += saved.protocols_to_judge(fitted, judged)
    for setting in settings:
        judged.cohort.catalog.check_budget(setting.get("budget", math.inf))
    rule: Availability = availability  # type: ignore[assignment]  # the environment checks it
    say(f"{judged.cohort.name}: {judged.note}.")
    say_notes(judged.remarks, judged.warnings)
    source = DataSource(data, schema="" if is_table(data) else None)
    headline = None if report is None else source.headline
    evaluation = Evaluation.open(fitted, model, judged, rule, out, described_by=headline)
    rows = []
    with stoppable("Finished points are kept; run the same command again to continue."):
        for row in evaluation.rows(settings, progress=not quiet, say=say):
            rows.append(row)
            write_results(results_frame(rows), out)
        own = [s for s in settings if "acquire" not in s] or settings
        finding = saved.audit_sample(model, fitted.seed, judged, own[len(own) // 2], rule, AUDITED)
        drift = drift_of(fitted, judged.cohort)
        if report is not None:
            options = {
                "--out": out,
                "--cost-weights": cost_weights,
                "--budgets": budgets,
                "--points": points,
                "--availability": rule,
                "--part": part,
                "--schema": schema,
                "--path": path,
                "--report": report,
            }
            details = evaluation.details(settings)
            write_evaluation(
                evaluation,
                details,
                rows,
                evaluation.recommended(settings),
                report,
                source=source,
                finding=finding,
                drift=drift,
                command=_command(model, data, options, data_option or []),
            )
    evaluation.finished.clear()
    frame = results_frame(rows)
    _print(frame, fitted)
    source = DataSource(data, schema="" if is_table(data) else None)
    currency = fitted.catalog_.currency
    for line in sentences_of_results(frame, fitted.name, source.headline, currency):
        typer.echo(line)
    typer.echo(f"Audit: {finding}")
    typer.echo(f"Drift: {NOT_RECORDED if drift is None else drift.verdict}")
    typer.echo(f"Wrote {out}.")
    if report is not None:
        typer.echo(f"Wrote {report}.")
    if figure is not None:
        _draw(frame, figure, fitted, source.headline)
        typer.echo(f"Wrote {figure}.")


def _command(
    model: Path, data: str, options: Mapping[str, object], data_options: Sequence[str]
) -> str:
    """What to type to repeat the evaluation."""
    given = [text for name, value in options.items() if value for text in (name, str(value))]
    given += [text for option in data_options for text in ("--data-option", option)]
    return shlex.join(["nocta", "evaluate", str(model), data, *given])


_MEASURES = {
    "accuracy": "accuracy",
    "ap": "AP (95 %)",
    "roc_auc": "ROC AUC",
    "cross_entropy": "cross-entropy",
    "tests": "tests",
}
_IF_KNOWN = {"detection_delay": "delay"}


def _print(frame: pd.DataFrame, model: SavedMethod) -> None:
    from nocta.runs.point_text import point_name, with_interval

    limited = bool(frame["budget"].notna().any())
    knob = "cost weight" if model.method.has_cost_weight else "setting"
    head = [knob, *(["budget"] if limited else []), "mean cost"]
    shown = _MEASURES | {k: v for k, v in _IF_KNOWN.items() if frame[k].notna().any()}
    table = make_narrow_table(*head, *shown.values())
    currency = model.catalog_.currency
    default = model.default_point.setting
    for _, row in frame.iterrows():
        setting = json.loads(row["setting"])
        mark = "* " if {k: v for k, v in setting.items() if k != "budget"} == default else ""
        table.add_row(
            mark + point_name(setting),
            *([money(row["budget"], currency)] if limited else []),
            money(row["cost"], currency),
            *(
                with_interval(row[name], (row["ap_low"], row["ap_high"]) if name == "ap" else None)
                for name in shown
            ),
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
