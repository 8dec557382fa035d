"""`nocta token`: who may use a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from typer import Argument, Option

from nocta.core.errors import ConfigError

_ROLES = ("read", "write")


def token(
    store: Annotated[Path, Argument(metavar="STORE", help="SQLite file with the cases.")],
    name: Annotated[
        str | None, Option("--name", help="Make a token for this person or program.")
    ] = None,
    role: Annotated[str, Option("--role", help="`read` or `write`.")] = "write",
    days: Annotated[
        float | None, Option("--days", min=0.0, help="Days until it expires. Default: 90.")
    ] = 90.0,
    revoke: Annotated[str | None, Option("--revoke", help="Refuse this token from now on.")] = None,
) -> None:
    """Make, list or revoke the tokens of a service.

    A new token is shown once; the store keeps only its hash. Without options, tokens are listed.
    """
    from rich.console import Console

    from nocta.cli.outputs import make_table
    from nocta.service.access import create_token, list_tokens, revoke_token
    from nocta.service.store import Store

    if role not in _ROLES:
        raise ConfigError(f"--role is '{role}'; use read or write.")
    kept = Store(store)
    if revoke is not None:
        revoke_token(kept, revoke)
        typer.echo(f"The token '{revoke}' is refused from now on.")
    if name is not None:
        made = create_token(kept, name, cast(Literal["read", "write"], role), days)
        typer.echo(f"Token '{name}' ({role}). It is not shown again:\n{made}")
    if name is None and revoke is None:
        table = make_table("name", "role", "state", "created", "expires", n_text=5)
        for row in list_tokens(kept):
            table.add_row(row.name, row.role, row.state, row.created[:16], (row.expires or "")[:16])
        Console().print(table)
