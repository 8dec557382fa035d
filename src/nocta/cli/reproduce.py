"""`nocta reproduce`: a table or figure of the paper, with the paper's numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from nocta.cli import running
from nocta.cli.data import DataOptions, PathOption, SchemaOption, data_source
from nocta.cli.outputs import check_folder, exit_on_failures, make_table, stoppable
from nocta.core.errors import ConfigError

if TYPE_CHECKING:
    from nocta.report.paper import Sheet
    from nocta.runs.setup import DataSource

#: Tables of the paper are wide: no space around the columns but one blank.
TIGHT: dict[str, Any] = {"pad_edge": False, "padding": (0, 0, 0, 1)}


def reproduce(
    name: Annotated[
        str, Argument(metavar="NAME", help="A table or figure; --list shows all.")
    ] = "",
    out: running.OutFolder = Path("reproduced"),
    show: Annotated[
        bool, Option("--list", help="List the names and their place in the paper.")
    ] = False,
    data: Annotated[
        list[str] | None,
        Option("--data", help="Other data: a built-in name or a table. Repeatable."),
    ] = None,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    folder: Annotated[
        list[Path] | None,
        Option(
            "--from", help="Read the folder of a finished comparison and run nothing. Repeatable."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        Option(
            "--preset", help="`default` or `paper`. Default: the preset of the table or figure."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        Option("--seeds", min=1, help="Number of seeds. Default: 5, as in the paper (--quick: 2)."),
    ] = None,
    availability: running.AvailabilityOption = "on-arrival",
    results: running.ResultsOption = "after-visit",
    jobs: running.JobsOption = None,
    dask: running.DaskOption = None,
    quick: running.QuickOption = False,
    quiet: running.QuietOption = False,
) -> None:
    """Reproduce a table or figure of the paper, with the paper's numbers beside ours.

    Writes NAME.md, NAME.csv, figures and the report. Finished jobs are kept in OUT/runs, and
    names that need the same jobs share them. Run the same command again to continue.
    """
    from nocta.model.files import write_atomically
    from nocta.model.folders import REPRODUCED, Folder, refuse_other
    from nocta.report.paper import Request, find_recipe
    from nocta.report.paper import reproduce as make

    console = Console(highlight=False)
    if show:
        console.print(_listing())
        return
    if not name:
        raise ConfigError("Give a table or figure; `nocta reproduce --list` shows the names.")
    recipe = find_recipe(name)
    check_folder(out)
    if not (out / "runs").is_dir():  # as older versions left it
        refuse_other(out, Folder.REPRODUCED)
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
    with stoppable(f"Finished jobs are in '{out}'; run the same command again to continue."):
        page = make(recipe, request)
    write_atomically(out / REPRODUCED, f"{name}\n")
    files = page.write(out)
    for sheets in page.sheets.values():
        for sheet in sheets[:1]:
            console.print(_table(sheet, console))
    console.print(f"In {out}: {', '.join(file.name for file in files)}", soft_wrap=True)
    if page.failures:
        head = f"{len(page.failures)} job(s) failed; run the same command to try them again."
        exit_on_failures([head, *(f"  {failure}" for failure in page.failures)])


def _sources(
    data: list[str],
    schema: Path | None,
    path: Path | None,
    options: list[str],
    usual: tuple[str, ...],
) -> tuple[DataSource, ...]:
    """The data given on the command line; the recipe's own if only its options are given."""
    if not data and (path is not None or options) and len(usual) == 1:
        data = list(usual)
    if (schema is not None or path is not None or options) and len(data) != 1:
        raise ConfigError(
            "--schema, --path and --data-option apply to one data set; choose it with --data."
        )
    return tuple(data_source(name, schema, path, options) for name in data)


def _listing() -> Table:
    from nocta.report.paper import RECIPES

    table = make_table("name", n_text=1, **TIGHT)
    for column in ("in the paper", "what", "data"):
        table.add_column(column)
    for recipe in RECIPES:
        place, data = recipe.entry.place.partition(",")[0], ", ".join(recipe.data) or "its own"
        table.add_row(recipe.name, place, recipe.title, data)
    return table


def _table(sheet: Sheet, console: Console) -> Table:
    """The table in one line per row; if that is too wide, with errors below their numbers."""
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
    # A number stays beside its error; column names may take several lines.
    names = [head[0], *("\n".join(column.split()) for column in head[1:])]
    table = make_table(*names, n_text=1, wrap=folded, title=title, **TIGHT)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*row)
    return table
