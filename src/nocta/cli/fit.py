"""`nocta fit`: train a method and save it in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Option

from nocta.cli import running
from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    data_source,
    say_what_was_read,
)
from nocta.cli.options import parse_options
from nocta.cli.outputs import check_folder, make_narrow_table, say, stoppable

if TYPE_CHECKING:
    from nocta.methods.saving import SavedMethod
    from nocta.model.nocta import NOCTA


def fit(
    data: DataArgument,
    out: Annotated[Path, Option("--out", help="Folder for the model.")],
    method: Annotated[
        str, Option("--method", help="A method that can be saved; `nocta methods` lists all.")
    ] = "nocta-auto",
    preset: running.PresetOption = "default",
    predictor: running.PredictorOption = "learned",
    seed: Annotated[
        int, Option("--seed", min=0, max=2**32 - 1, help="Sets the split and the training.")
    ] = 0,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    split_column: running.SplitColumnOption = None,
    fractions: running.FractionsOption = None,
    constraint: running.ConstraintOption = None,
    points: Annotated[
        int, Option("--points", min=1, help="Operating points to find and save.")
    ] = 10,
    option: Annotated[
        list[str] | None,
        Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Set an option of the method, such as metric=values. Repeatable. "
            "`nocta methods METHOD` lists the options.",
        ),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue a fit that was stopped.")] = False,
    force: Annotated[bool, Option("--force", help="Replace an earlier fit in the folder.")] = False,
    quick: running.QuickOption = False,
    quiet: running.QuietOption = False,
) -> None:
    """Train a method and save it in a folder, with a card that describes it.

    Test subjects are held out and never touched. About ten operating points that spread along the
    cost-quality curve are found on validation and saved with the model. The default one is the
    cheapest within one standard error of the best; `nocta choose` sets another.
    """
    from nocta.model.files import only_process
    from nocta.runs.fit_run import FitRequest, fit_to_folder

    check_folder(out)
    request = FitRequest(
        source=data_source(data, schema, path, data_option, split_column, fractions, constraint),
        method=method,
        preset=preset,  # type: ignore[arg-type]  # checked by FitRequest
        seed=seed,
        n_points=points,
        quick=quick,
        preset_options=parse_options(option or []),
        predictor=predictor,
    )
    say_what_was_read(request.source, seed)
    kept = f"Finished stages are in '{out}'; continue with --resume."
    with stoppable(kept), only_process(out):
        model = fit_to_folder(request, out, resume=resume, force=force, progress=not quiet, say=say)
    _print(model, data, out)


def _print(model: NOCTA | SavedMethod, data: str, out: Path) -> None:
    from nocta.methods.saving import as_saved
    from nocta.runs.point_text import default_sentence, point_table
    from nocta.runs.protocol_text import sentences_of_record

    saved = as_saved(model)
    record, currency, default = saved.record_, saved.catalog_.currency, saved.default_point
    weighted = saved.method.has_cost_weight
    head = ("cost weight" if weighted else "setting", "mean cost", "accuracy", "AP (95 %)")
    title = "On validation, cheapest first (* is the default)"
    table = make_narrow_table(*head, "ROC AUC", "cross-entropy", title=title)
    for name, cost, accuracy, ap, roc, loss in point_table(record, currency, default.setting):
        table.add_row(name, cost, accuracy, ap, roc, loss)
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(default_sentence(default.setting, default.reason, record, currency))
    for line in sentences_of_record(record, currency=currency):
        console.print(line)
    console.print(f"Saved in {out}; {out / 'card.md'} describes the model.")
    plan = f"nocta plan {out} HISTORY.csv, or " if weighted else ""
    console.print(f"Next: {plan}nocta evaluate {out} {data} --out results.csv")
    if weighted:
        console.print(f"In a browser: nocta serve {out}", soft_wrap=True)
