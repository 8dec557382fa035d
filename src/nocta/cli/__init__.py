"""The command line: one file per command, imported only when it is called."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run `nocta` with these arguments (those of the process by default) and exit.

    Exit status: 0 good, 2 the user's input, 1 anything else.
    """
    from nocta.cli.app import app

    app(args=None if argv is None else list(argv), prog_name="nocta")
