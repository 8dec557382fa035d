"""`nocta backup`: a copy of the cases while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from nocta.core.errors import ConfigError


def backup(
    store: Annotated[Path, Argument(metavar="STORE", help="SQLite file with the cases.")],
    out: Annotated[Path, Option("--out", help="File to write.")],
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Copy a store of cases while it is in use; the copy is complete, or there is none."""
    from nocta.service.store import Store

    if out.exists() and (not force or out.resolve() == store.resolve()):
        raise ConfigError(f"'{out}' exists; choose another --out, or add --force to replace it.")
    kept = Store(store, read_only=True)
    kept.backup(out)
    n = len(kept.cases())
    kept.close()
    typer.echo(f"Copied {n} {'case' if n == 1 else 'cases'} to {out}.")
