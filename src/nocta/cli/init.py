"""`nocta init`: draft a schema from a long table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from nocta.cli.data import parse_numbers, table_stem
from nocta.cli.outputs import check_outputs
from nocta.core.errors import ConfigError, DataFileMissing

if TYPE_CHECKING:
    from nocta.tables.draft.meaning import Wish


def init(
    data: Annotated[
        Path,
        Argument(metavar="DATA", help="A CSV or Parquet file with one row per subject and visit."),
    ],
    costs: Annotated[
        Path | None,
        Option(help="Price list: a CSV with columns feature, cost and, optionally, group."),
    ] = None,
    label: Annotated[str | None, Option(help="Column to take as the label.")] = None,
    bins: Annotated[
        str | None,
        Option(
            help="Cut a label of numbers into classes: into N ranges of about equal size (3), or "
            "at these limits (5.7,6.5)."
        ),
    ] = None,
    event: Annotated[
        str | None,
        Option(
            metavar="TIME,STATUS",
            help="Label visits by whether an event happens soon after them, as these columns say: "
            "its time (or the end of follow-up), and how follow-up ended. Needs --within.",
        ),
    ] = None,
    within: Annotated[
        float | None, Option(help="How soon after the visit, in the unit of the times.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="File to write. Default: schema.toml beside DATA.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Draft schema.toml from a long table.

    Guesses the subject, visit or time, label, free context and feature columns, and lists the
    guesses to check. It says how the file was understood (separators, decimal signs, dates, words
    for missing) and writes this into the schema. A label has classes: `--bins` cuts a number into
    classes, and `--event` makes them from the time to an event. Fill in the costs, then run `nocta
    describe DATA` to see the cohort.
    """
    from nocta.model.files import write_atomically
    from nocta.tables.draft.draft import draft_schema

    for path in (data, costs):
        if path is not None and path.is_dir():
            raise ConfigError(
                f"'{path}' is a folder; give one of its files. The schema fits all files if it "
                f"lists every class."
            )
        if path is not None and not path.is_file():
            raise DataFileMissing(f"File '{path}' does not exist.")
    target = out or _target(data)
    check_outputs(target, inputs=(data, costs))
    if target.exists() and not force:
        raise ConfigError(
            f"'{target}' already exists. Add --force to replace it, or --out to write elsewhere."
        )
    draft = draft_schema(data, costs, _wish(label, bins, event, within))
    write_atomically(target, draft.text)
    typer.echo(f"Wrote {target}.")
    if draft.notes:
        typer.echo("Understood:")
        for note in draft.notes:
            typer.echo(f"  - {note}")
    if draft.unsure:
        typer.echo("Please check:")
        for doubt in draft.unsure:
            typer.echo(f"  - {doubt}")
    if draft.readable:
        typer.echo(f"The table can be read with this draft: {draft.check}")
    else:
        typer.echo(f"The table cannot be read with this draft yet. {draft.check}")
    typer.echo(f"Next: `nocta describe {shlex.quote(str(data))}`.")


def _wish(label: str | None, bins: str | None, event: str | None, within: float | None) -> Wish:
    """What the options say about the label."""
    from nocta.tables.draft.meaning import Wish

    if event is not None and (label is not None or bins is not None):
        raise ConfigError("--event makes a label of its own; leave out --label and --bins.")
    if within is not None and event is None:
        raise ConfigError("--within says how soon an --event happens; add --event TIME,STATUS.")
    columns = [name.strip() for name in (event or "").split(",")]
    if event is not None and len(columns) != 2:
        raise ConfigError(f"--event is '{event}'; name two columns, such as futime,status.")
    limits = parse_numbers("--bins", bins)
    n_ranges = bins is not None and bins.strip().isdecimal()
    return Wish(
        label=label,
        bins=None if bins is None else int(bins) if n_ranges else limits,
        event=None if event is None else (columns[0], columns[1]),
        within=within,
    )


def _target(data: Path) -> Path:
    """The schema this table already has, else `schema.toml` beside it."""
    own = data.with_name(f"{table_stem(data)}.schema.toml")
    return own if own.exists() else data.with_name("schema.toml")
