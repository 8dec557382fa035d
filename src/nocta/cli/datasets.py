"""`nocta datasets`: the list, the card of one, and a summary of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from nocta.cli.data import parse_data_options
from nocta.core.errors import ConfigError

_MARKDOWN_HEAD = """# Data sets

Generated from the cards: `nocta datasets --markdown > docs/reference/datasets.md`.
On the command line, `nocta datasets` lists the data sets, `nocta datasets NAME` shows a card, and
`nocta datasets NAME --load` reads the files and shows what was found and what was dropped.
In Python: `nocta.datasets.load(NAME)`, `load_with_summary`, `card`, `names`.

Files are searched for in the given folder (`--path`, `path=`), or without one in
`$NOCTA_DATA/FOLDER`, `$NOCTA_DATA`, `data/FOLDER` and `data` under the current folder. How to get
the files, and how to set options: [Use a public data set](../how-to/public-data.md). To add a data
set of your own, declare the entry point `nocta.datasets` in an installed package
(`examples/extending/`).
"""


def datasets(
    name: Annotated[str | None, Argument(help="Show the card of this data set.")] = None,
    load: Annotated[
        bool, Option("--load", help="Read the data set and summarize what was found.")
    ] = False,
    path: Annotated[
        Path | None, Option("--path", help="Folder or file with the data; implies --load.")
    ] = None,
    option: Annotated[
        list[str] | None,
        Option(
            "--data-option",
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Set an option of the data set, such as min_labels=3. Repeatable.",
        ),
    ] = None,
    markdown: Annotated[bool, Option("--markdown", help="Print the cards as Markdown.")] = False,
) -> None:
    """List the data sets, show the card of one, or load it and summarize what was read."""
    from nocta import datasets as registry

    if name is None and (load or path or option):
        raise ConfigError("--load, --path and --data-option need the name of a data set.")
    if markdown:
        typer.echo(to_markdown(registry.names() if name is None else [name]), nl=False)
    elif name is None:
        _print(_overview())
    elif load or path or option:
        _, summary = registry.load_with_summary(
            name, path=path, progress=True, **parse_data_options(name, option)
        )
        typer.echo(str(summary))
    else:
        _print(registry.card(name))


def to_markdown(names: list[str]) -> str:
    """The reference page of these data sets."""
    from nocta import datasets as registry

    cards = [registry.card(name).to_markdown() for name in names]
    return "\n".join([_MARKDOWN_HEAD, *cards])


def _overview() -> Table:
    """Two lines for every data set, so that the table fits a terminal of 80 columns."""
    from nocta import datasets as registry

    table = Table(box=None, pad_edge=False, caption_justify="left", padding=(0, 2, 0, 0))
    for column in ("name\n", "size\nlabels", "license\nfiles"):
        table.add_column(column, no_wrap=column == "name\n", overflow="fold")
    for name in registry.names():
        try:
            card = registry.card(name)
        except ConfigError as error:  # a broken package must not hide the other data sets
            table.add_row(name, str(error))
            continue
        # Two rows, so that wrapping the first line does not shift the second.
        table.add_row(name, card.size, card.license)
        table.add_row("", card.labels, card.access_here)
    table.caption = "`nocta datasets NAME` shows a card: origin, costs, label rule, known pitfalls."
    return table


def _print(what: Any) -> None:
    Console(soft_wrap=False, highlight=False, markup=False).print(what)
