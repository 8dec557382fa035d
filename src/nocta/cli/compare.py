"""`nocta compare`: every method, every seed, over its whole trade-off."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nocta.cli.data import (
    DataArgument,
    DataOptions,
    SchemaOption,
    data_source,
    parse_numbers,
    say_remarks,
    say_what_was_read,
)
from nocta.cli.options import parse_method_options
from nocta.cli.running import AvailabilityOption, DaskOption, JobsOption, QuietOption, ResultsOption

if TYPE_CHECKING:
    from nocta.runs.compare import Comparison


def compare(
    data: DataArgument,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            help="Names, separated by commas, or `all`: every built-in method.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder of the results; continued where it stopped."),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: 0, 1, 2, ...")] = 5,
    schema: SchemaOption = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", help="Where a data set's own files are.", show_default=False),
    ] = None,
    data_option: DataOptions = None,
    preset: Annotated[
        str, typer.Option("--preset", help="`default` (recommended) or `paper` (as published).")
    ] = "default",
    points: Annotated[
        int,
        typer.Option("--points", min=1, help="Operating points per method, chosen on validation."),
    ] = 10,
    cost_weights: Annotated[
        str | None,
        typer.Option(
            "--cost-weights",
            help="Instead of --points, for methods with a cost weight: 0.1,0.3,1.",
            show_default=False,
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            "--budgets",
            help="Hard limits on what each subject may be charged: 5,10,20.",
            show_default=False,
        ),
    ] = None,
    tune: Annotated[
        int,
        typer.Option(
            "--tune",
            min=0,
            metavar="N",
            help="Let every method try N sets of options on validation and keep the best.",
            show_default=False,
        ),
    ] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="METHOD.OPTION=VALUE",
            help="Option of a method, such as nocta-amortized.hidden=32; may be repeated.",
            show_default=False,
        ),
    ] = None,
    availability: AvailabilityOption = "on-arrival",
    results: ResultsOption = "after-visit",
    predictor: Annotated[
        str,
        typer.Option(
            "--predictor",
            help="What reference methods acquire for: `learned`, or `bayes` (synthetic only).",
        ),
    ] = "learned",
    split_column: Annotated[
        str | None,
        typer.Option(
            "--split-column",
            help="Column that assigns subjects to train, val and test; of a built-in data set "
            "its own split, as its card calls it.",
            show_default=False,
        ),
    ] = None,
    fractions: Annotated[
        str | None,
        typer.Option(
            "--fractions",
            help="Size of train, validation and test; the data set's own by default: .7,.15,.15.",
            show_default=False,
        ),
    ] = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A rehearsal: few subjects, short training, few points."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Compare methods over seeds, and write results.csv, figures and report.html.

    The seed decides the split and every training run; synthetic data are drawn with it as well.
    Run the same command again to continue a comparison that was stopped; methods and seeds may
    be added to it.
    """
    from nocta.methods.registry import parse_methods
    from nocta.report import write_comparison
    from nocta.runs.absent_classes import class_warnings, splits_to_look_at
    from nocta.runs.compare import compare as run
    from nocta.runs.compare import make_jobs
    from nocta.runs.setup import Setup

    source = data_source(data, schema, path, data_option, split_column, fractions)
    say_what_was_read(source)
    setup = Setup(
        source=source,
        preset=preset,  # type: ignore[arg-type]  # checked by Setup, as are the others
        availability=availability,  # type: ignore[arg-type]
        results=results,  # type: ignore[arg-type]
        n_points=points,
        cost_weights=parse_numbers("--cost-weights", cost_weights),
        budgets=parse_numbers("--budgets", budgets),
        predictor=predictor,  # type: ignore[arg-type]
        n_trials=tune,
    )
    if quick:
        setup = setup.as_quick()
    names = parse_methods(methods)
    wanted = make_jobs(names, range(seeds), parse_method_options(option or [], names))
    splits = splits_to_look_at(setup.source, range(seeds))
    say_remarks((), class_warnings(splits, "--fractions, --split-column"))
    try:
        comparison = run(setup, wanted, out, n_jobs=jobs, progress=not quiet, dask=dask)
        write_comparison(comparison)
    except KeyboardInterrupt:
        typer.echo(
            f"\nStopped. What is finished is in '{out}'; the same command goes on.", err=True
        )
        raise typer.Exit(130) from None
    _print(comparison)
    if comparison.failures:
        raise typer.Exit(1)


def _print(comparison: Comparison) -> None:
    from rich.console import Console

    from nocta.report.text import failure_lines, summary_table

    console = Console()
    if comparison.records:
        console.print(summary_table(comparison))
        names = sorted(p.name for p in comparison.directory.iterdir() if p.is_file())
        written = [n for n in names if n.endswith((".csv", ".png", ".svg", ".html"))]
        console.print(f"In {comparison.directory}: {', '.join(written)}")
    errors = Console(stderr=True)
    for line in failure_lines(comparison):
        errors.print(line, style="red", markup=False, highlight=False)
