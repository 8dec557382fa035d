"""What commands share when they write: path checks, messages, interrupts, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from nocta.core.errors import ConfigError

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_outputs(
    out: Path | None, figure: Path | None = None, *, inputs: Sequence[str | Path | None] = ()
) -> None:
    """Refuse, before any work, paths that cannot be written or that are inputs."""
    if figure is not None and figure.suffix.lower() not in FIGURE_SUFFIXES:
        raise ConfigError(
            f"Figure '{figure}' has an unknown format; use one of {', '.join(FIGURE_SUFFIXES)}."
        )
    read = [Path(given) for given in inputs if given is not None]
    for target in (path for path in (out, figure) if path is not None):
        if target.exists() and any(p.exists() and target.samefile(p) for p in read):
            raise ConfigError(f"'{target}' is also an input file; choose another path to write.")
        if target.is_dir():
            raise ConfigError(f"'{target}' is a folder; give the path of a file.")
        above = [p for p in target.parents if p.is_file()]
        if above:
            raise ConfigError(
                f"Cannot write '{target}': '{above[0]}' is a file. Choose another path."
            )


def check_report(report: Path | None, *, inputs: Sequence[str | Path | None] = ()) -> None:
    """Refuse a report that cannot be written, or a file that is not a page."""
    check_outputs(report, inputs=inputs)
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"Report '{report}' is not a page; end its name in .html.")


def check_new(paths: Sequence[Path | None], force: bool) -> None:
    """Refuse to replace a file that a user may want to keep."""
    for path in paths:
        if path is not None and path.exists() and not force:
            raise ConfigError(
                f"'{path}' already exists. Add --force to replace it, or choose another path."
            )


def check_folder(out: Path) -> None:
    """Refuse, before any work, a path that cannot be a folder."""
    for part in (out, *out.parents):
        if part.exists() and not part.is_dir():
            raise ConfigError(f"Cannot write to '{out}': '{part}' is a file. Choose another --out.")


def say(line: str) -> None:
    """Tell the user something on the error stream, so that output stays clean."""
    typer.echo(line, err=True)


def say_notes(notes: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Tell the user what was noticed while data were read."""
    for warning in warnings:
        say(f"Warning: {warning}")
    for note in notes:
        say(f"Note: {note}")


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Turn Ctrl-C into a message (what is `kept`, how to continue) and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped. {kept}")
        raise typer.Exit(130) from None


def exit_on_failures(lines: Sequence[str]) -> None:
    """Show what failed, if anything did, and exit with status 1."""
    for line in lines:
        typer.secho(line, err=True, fg=typer.colors.RED)
    if lines:
        raise typer.Exit(1)


def make_table(*columns: str, n_text: int = 0, wrap: bool = False, **settings: Any) -> Table:
    """A plain table; all but the first `n_text` columns hold numbers and align right."""
    table = Table(box=SIMPLE_HEAD, title_justify="left", **settings)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < n_text else "right", no_wrap=not wrap)
    return table


def make_narrow_table(*columns: str, **settings: Any) -> Table:
    """A table of numbers for 80 columns: names take several lines, and margins are small."""
    folded = [re.sub(r" (?![^(]*\))|(?<=-)(?=\w)", "\n", name) for name in columns]
    return make_table(*folded, padding=(0, 1, 0, 0), pad_edge=False, **settings)
