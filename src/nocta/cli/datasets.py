"""`nocta datasets`: the list, a card, and what a loader reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nocta.cli.data import parse_data_options

if TYPE_CHECKING:
    from rich.table import Table

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
    name: Annotated[
        str | None, typer.Argument(help="Show the card of this data set.", show_default=False)
    ] = None,
    load: Annotated[
        bool, typer.Option("--load", help="Read the data set and summarize what was found.")
    ] = False,
    path: Annotated[
        Path | None,
        typer.Option(
            "--path", help="Folder or file with the downloaded data; implies --load.",
            show_default=False,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--data-option", "--option", "-o", metavar="NAME=VALUE", show_default=False,
            help="Option of the data set, such as min_labels=3; may be repeated.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the cards as Markdown.")
    ] = False,
) -> None:  # fmt: skip
    """List the data sets, show the card of one, or load it and summarize what was read."""
    from nocta import datasets as registry
    from nocta.core.errors import ConfigError

    if name is None and (load or path or option):
        raise ConfigError("--load, --path and --data-option need the NAME of a data set.")
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
    """Two lines per data set, so that the table fits 80 columns."""
    from rich.table import Table

    from nocta import datasets as registry
    from nocta.core.errors import ConfigError

    table = Table(box=None, pad_edge=False, caption_justify="left", padding=(0, 2, 0, 0))
    for column in ("name\n", "size\nlabels", "license\nfiles"):
        table.add_column(column, no_wrap=column == "name\n", overflow="fold")
    for name in registry.names():
        try:
            card = registry.card(name)
        except ConfigError as error:  # another package is broken; the others are still listed
            table.add_row(name, str(error))
            continue
        # Two rows: a first line that wraps does not misalign the second.
        table.add_row(name, card.size, card.license)
        table.add_row("", card.labels, card.access_here)
    table.caption = "`nocta datasets NAME` shows a card: origin, costs, label rule, known pitfalls."
    return table


def _print(what: Any) -> None:
    from rich.console import Console

    Console(soft_wrap=False, highlight=False, markup=False).print(what)
