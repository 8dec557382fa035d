"""`nocta describe`: the data card of a cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from nocta.cli.data import DataArgument, DataOptions, PathOption, SchemaOption, data_source
from nocta.cli.outputs import check_new, check_outputs, say, say_notes


def describe(
    data: DataArgument,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    out: Annotated[Path | None, Option(help="Write the card to this Markdown file.")] = None,
    figure: Annotated[Path | None, Option(help="Draw the card: a .png, .svg or .pdf file.")] = None,
    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Show the data card of a cohort; draw it with --figure.

    The card lists subjects, visits, missing values, class balance per visit, and costs.
    """
    from nocta.model.files import write_atomically
    from nocta.tables.summary import CohortSummary

    source = data_source(data, schema, path, data_option)
    check_outputs(out, figure, inputs=(data, source.schema))
    check_new((out, figure), force)
    read = source.summary(0)
    say_notes((), read.warnings)
    summary = CohortSummary.of(source.load(0), (*read.warnings, *read.remarks))
    card = summary.to_markdown()
    typer.echo(card, nl=False)
    if out is not None:
        write_atomically(out, card)
        say(f"Wrote {out}.")
    if figure is not None:
        from nocta.report.plots.describe import cohort_figure
        from nocta.report.plots.style import save_figure

        save_figure(cohort_figure(summary), figure)
        say(f"Wrote {figure}.")
