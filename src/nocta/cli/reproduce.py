"""`nocta reproduce`: a table or figure of the paper, with the paper's numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nocta.cli.data import DataOptions, data_source
from nocta.cli.running import AvailabilityOption, DaskOption, JobsOption, QuietOption, ResultsOption

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from nocta.report.paper import Sheet
    from nocta.runs.setup import DataSource


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="What to reproduce; --list shows all.", show_default=False
        ),
    ] = "",
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the results; continued where it stopped.")
    ] = Path("reproduced"),
    show: Annotated[bool, typer.Option("--list", help="List every name and its place.")] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="Other data: a built-in name or a table; may be repeated.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="Schema of a table; found beside it.", show_default=False),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", help="Where a data set's own files are.", show_default=False),
    ] = None,
    data_option: DataOptions = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="Run nothing: read the folder of a finished comparison; may be repeated.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="`default` or `paper`, where it is not to be as listed.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="How many seeds; 5, as in the paper (quick: 2)."),
    ] = None,
    availability: AvailabilityOption = "on-arrival",
    results: ResultsOption = "after-visit",
    jobs: JobsOption = None,
    dask: DaskOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A rehearsal: few subjects, short training.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Reproduce a table or figure of the paper: NAME.md, NAME.csv, figures and the report.

    What was run is kept in OUT/runs job by job: the same command goes on where it stopped, and
    names that need the same jobs share them. With --from nothing is run.
    """
    from rich.console import Console

    from nocta.core.errors import ConfigError
    from nocta.report.paper import Request, find_recipe
    from nocta.report.paper import reproduce as make

    console = Console(highlight=False)
    if show:
        console.print(_listing())
        return
    if not name:
        raise ConfigError("Name a table or figure; `nocta reproduce --list` shows all.")
    recipe = find_recipe(name)
    request = Request(
        out=out,
        sources=_sources(data or [], schema, path, data_option or [], recipe.data),
        folders=tuple(folder or ()),
        preset=preset,
        n_seeds=seeds,
        quick=quick,
        rules={"availability": availability, "results": results},
        n_jobs=jobs,
        dask=dask,
        progress=not quiet,
    )
    try:
        page = make(recipe, request)
    except KeyboardInterrupt:
        typer.echo(
            f"\nStopped. What is finished is in '{out}'; the same command goes on.", err=True
        )
        raise typer.Exit(130) from None
    files = page.write(out)
    for sheets in page.sheets.values():
        for sheet in sheets[:1]:
            console.print(_table(sheet, console))
    console.print(f"In {out}: {', '.join(file.name for file in files)}", soft_wrap=True)
    if page.failures:
        errors = Console(stderr=True, highlight=False)
        errors.print(f"{len(page.failures)} job(s) failed; the same command tries them again.")
        for failure in page.failures:
            errors.print(f"  {failure}", style="red", markup=False)
        raise typer.Exit(1)


def _sources(
    data: list[str],
    schema: Path | None,
    path: Path | None,
    options: list[str],
    usual: tuple[str, ...],
) -> tuple[DataSource, ...]:
    """The data named on the command line; the recipe's own where only its options are given."""
    from nocta.core.errors import ConfigError

    if not data and (path is not None or options) and len(usual) == 1:
        data = list(usual)
    if (schema is not None or path is not None or options) and len(data) != 1:
        raise ConfigError(
            "--schema, --path and --data-option belong to one data set; name it with --data."
        )
    return tuple(data_source(name, schema, path, options) for name in data)


def _listing() -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from nocta.report.paper import RECIPES

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for column in ("name", "in the paper", "what", "data"):
        table.add_column(column, no_wrap=column == "name")
    for recipe in RECIPES:
        place, data = recipe.entry.place.partition(",")[0], ", ".join(recipe.data) or "its own"
        table.add_row(recipe.name, place, recipe.title, data)
    return table


def _table(sheet: Sheet, console: Console) -> Table:
    """The table as wide as it reads best, or with errors below their numbers where that is wide."""
    head, rows = sheet.readable()
    table = _laid_out(sheet.title, head, rows)
    unbounded = console.options.update(max_width=1000)
    if console.measure(table, options=unbounded).maximum > console.width:
        rows = [[cell.replace(" ± ", "\n± ") for cell in row] for row in rows]
        table = _laid_out(sheet.title, head, rows)
    if console.measure(table, options=unbounded).maximum > console.width:
        table = _laid_out(sheet.title, head, rows, folded=True)
    return table


def _laid_out(title: str, head: list[str], rows: list[list[str]], folded: bool = False) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    for i, column in enumerate(head):
        # A number stays with its error; names of columns may take several lines.
        name = "\n".join(column.split()) if i else column
        side: Literal["left", "right"] = "right" if i else "left"
        table.add_column(name, justify=side, no_wrap=not folded, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
