"""`nocta fit`: train a method and save it in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    data_source,
    say_what_was_read,
)
from nocta.cli.options import parse_options
from nocta.cli.running import QuietOption
from nocta.core.currency import money

if TYPE_CHECKING:
    from nocta.methods.saving import SavedMethod
    from nocta.model.nocta import NOCTA


def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder of the model.", show_default=False)],
    method: Annotated[
        str,
        typer.Option(
            "--method", help="A method that can be saved; `nocta methods` lists all methods."
        ),
    ] = "nocta-amortized",
    preset: Annotated[
        str, typer.Option("--preset", help="`default` (recommended) or `paper` (as published).")
    ] = "default",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Same seed, same split, same model.")
    ] = 0,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    split_column: Annotated[
        str | None,
        typer.Option(
            "--split-column",
            help="Column that assigns subjects to train, val and test; of a built-in data set "
            "its own split, as its card calls it.",
            show_default=False,
        ),
    ] = None,
    fractions: Annotated[
        str | None,
        typer.Option(
            "--fractions",
            help="Size of train, validation and test; the data set's own by default: .7,.15,.15.",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        int, typer.Option("--points", min=1, help="Operating points to find and keep.")
    ] = 10,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            help="Option of the method as NAME=VALUE, for example -o metric=values; repeatable. "
            "`nocta methods METHOD` lists them.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a fit that was stopped.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier fit left in the folder.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A quick run: few subjects, short training.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Train a method and save it in a folder, with a card that says what it is good for.

    Test subjects are set aside and never touched. About ten operating points that spread over the
    whole range of cost are found on validation and kept with the model.
    """
    from nocta.core.errors import ConfigError
    from nocta.runs.fit_run import FitRequest, fit_to_folder

    if preset not in ("default", "paper"):
        raise ConfigError(f"preset is '{preset}'; use 'default' or 'paper'.")
    request = FitRequest(
        source=data_source(data, schema, path, data_option, split_column, fractions),
        method=method,
        preset=preset,  # type: ignore[arg-type]  # checked above
        seed=seed,
        n_points=points,
        quick=quick,
        preset_options=parse_options(option or []),
    )
    say_what_was_read(request.source, seed)
    try:
        model = fit_to_folder(
            request,
            out,
            resume=resume,
            force=force,
            progress=not quiet,
            say=lambda line: typer.echo(line, err=True),
        )
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Finished stages are in '{out}'; continue with --resume.", err=True)
        raise typer.Exit(130) from None
    _print(model, data, out)


def _print(model: NOCTA | SavedMethod, data: str, out: Path) -> None:
    import json

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="On validation, cheapest first",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    weighted = all("cost_weight" in point for point in model.record_["validation"])
    knob = "cost weight" if weighted else "setting"
    for name in (knob, "mean cost", "accuracy", "AP", "cross-entropy"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in model.record_["validation"]:
        measured = (point[name] for name in ("accuracy", "ap", "cross_entropy"))
        table.add_row(
            f"{point['cost_weight']:.4g}" if weighted else json.dumps(point["setting"]),
            money(point["cost"], model.catalog_.currency),
            *("" if value is None else f"{value:.3f}" for value in measured),
        )
    console = Console()
    console.print(table)
    console.print(f"Saved in {out}; read {out / 'card.md'}.", highlight=False)
    plan = f"nocta plan {out} HISTORY.csv, or " if weighted else ""
    console.print(
        f"Next: {plan}nocta evaluate {out} {data} --out results.csv",
        highlight=False,
        markup=False,
    )
