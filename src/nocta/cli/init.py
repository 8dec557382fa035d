"""`nocta init`: draft a schema from a long table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from nocta.cli.data import table_stem
from nocta.cli.outputs import check_outputs
from nocta.core.errors import ConfigError, DataFileMissing


def init(
    data: Annotated[
        Path,
        Argument(metavar="DATA", help="A CSV or Parquet file with one row per subject and visit."),
    ],
    costs: Annotated[
        Path | None,
        Option(help="Price list: a CSV with columns feature, cost and, optionally, group."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="File to write. Default: schema.toml beside DATA.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Draft schema.toml from a long table.

    Guesses the subject, visit or time, label, free context and feature columns, and lists the
    guesses to check. Fill in the costs, then run `nocta describe DATA` to see the cohort.
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
    draft = draft_schema(data, costs)
    write_atomically(target, draft.text)
    typer.echo(f"Wrote {target}.")
    if draft.unsure:
        typer.echo("Please check:")
        for doubt in draft.unsure:
            typer.echo(f"  - {doubt}")
    if draft.readable:
        typer.echo(f"The table can be read with this draft: {draft.check}")
    else:
        typer.echo(f"The table cannot be read with this draft yet. {draft.check}")
    typer.echo(f"Next: `nocta describe {shlex.quote(str(data))}`.")


def _target(data: Path) -> Path:
    """The schema this table already has, else `schema.toml` beside it."""
    own = data.with_name(f"{table_stem(data)}.schema.toml")
    return own if own.exists() else data.with_name("schema.toml")
