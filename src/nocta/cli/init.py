"""`nocta init`: draft a schema from a long table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nocta.cli.data import keep_inputs, refuse_folders, table_stem


def init(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A CSV or Parquet file, one row per subject and visit.",
            show_default=False,
        ),
    ],
    costs: Annotated[
        Path | None,
        typer.Option(
            help="Price list: a CSV with columns feature, cost and optionally group.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write the schema; schema.toml beside DATA by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Draft schema.toml from a long table.

    Guesses subject, visit or time, label, free context and features, and lists what to check.
    Fill in the costs, then run `nocta describe DATA`.
    """
    from nocta.core.errors import ConfigError, DataFileMissing
    from nocta.tables.draft.draft import draft_schema

    for path in (data, costs):
        if path is not None and path.is_dir():
            raise ConfigError(
                f"'{path}' is a folder; give one of its files. The schema works for all of them "
                f"once it lists every class."
            )
        if path is not None and not path.is_file():
            raise DataFileMissing(f"There is no file '{path}'.")
    target = out or _target(data)
    keep_inputs((target,), data, costs)
    refuse_folders((target,))
    if target.exists() and not force:
        raise ConfigError(
            f"'{target}' already exists. Add --force to replace it, or --out to write elsewhere."
        )
    draft = draft_schema(data, costs)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draft.text, encoding="utf-8")
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
