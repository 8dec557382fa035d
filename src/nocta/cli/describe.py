"""`nocta describe`: the data card of a cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    data_source,
    keep_inputs,
    refuse_folders,
    say_remarks,
)


def describe(
    data: DataArgument,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the card (Markdown) here.", show_default=False)
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Write a figure here: .png, .pdf or .svg.", show_default=False),
    ] = None,
) -> None:
    """Show the data card of a cohort; draw it with --figure.

    Subjects, visits, missing values, class balance per visit, and costs.
    """
    from nocta.tables.summary import CohortSummary

    if figure is not None:
        _check_format(figure)
    source = data_source(data, schema, path, data_option)
    keep_inputs((out, figure), data, source.schema)
    refuse_folders((out, figure))
    read = source.summary(0)
    say_remarks((), read.warnings)
    summary = CohortSummary.of(source.load(0), (*read.warnings, *read.remarks))
    card = summary.to_markdown()
    typer.echo(card, nl=False)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(card, encoding="utf-8")
        typer.echo(f"Wrote {out}.", err=True)
    if figure is not None:
        from nocta.report.plots.describe import cohort_figure
        from nocta.report.plots.style import save_figure

        save_figure(cohort_figure(summary), figure)
        typer.echo(f"Wrote {figure}.", err=True)


def _check_format(path: Path) -> None:
    from nocta.core.errors import ConfigError

    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ConfigError(f"'{path}' is no figure; end its name in .png, .pdf or .svg.")
