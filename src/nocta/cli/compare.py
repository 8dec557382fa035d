"""`nocta compare`: every method, every seed, from cheap to expensive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Option

from nocta.cli import running
from nocta.cli.data import (
    DataArgument,
    DataOptions,
    PathOption,
    SchemaOption,
    data_source,
    parse_numbers,
    say_what_was_read,
)
from nocta.cli.options import parse_method_options
from nocta.cli.outputs import check_folder, exit_on_failures, say_notes, stoppable

if TYPE_CHECKING:
    from nocta.runs.compare import Comparison


def compare(
    data: DataArgument,
    methods: Annotated[
        str, Option("--methods", help="Names separated by commas, or `all` built-in methods.")
    ],
    out: running.OutFolder,
    seeds: Annotated[int, Option("--seeds", min=1, help="Number of seeds: 0, 1, 2, ...")] = 5,
    schema: SchemaOption = None,
    path: PathOption = None,
    data_option: DataOptions = None,
    preset: running.PresetOption = "default",
    points: running.PointsOption = 10,
    cost_weights: running.CostWeightsOption = None,
    budgets: running.BudgetsOption = None,
    tune: Annotated[
        int,
        Option(
            "--tune",
            min=0,
            metavar="N",
            help="Try N sets of options per method on validation and keep the best.",
        ),
    ] = 0,
    option: Annotated[
        list[str] | None,
        Option(
            "--option",
            "-o",
            metavar="METHOD.OPTION=VALUE",
            help="Set an option of a method, such as nocta-amortized.hidden=32. Repeatable.",
        ),
    ] = None,
    availability: running.AvailabilityOption = "on-arrival",
    results: running.ResultsOption = "after-visit",
    predictor: running.PredictorOption = "learned",
    split_column: running.SplitColumnOption = None,
    fractions: running.FractionsOption = None,
    constraint: running.ConstraintOption = None,
    jobs: running.JobsOption = None,
    dask: running.DaskOption = None,
    quick: running.QuickOption = False,
    quiet: running.QuietOption = False,
) -> None:
    """Compare methods over seeds, and write results.csv, figures and report.html.

    The seed sets the split and every training run. Synthetic data are drawn with it, too. Run
    the same command again to continue a comparison that was stopped, or with more methods or
    seeds to add to it.
    """
    from nocta.methods.registry import parse_methods
    from nocta.report import write_comparison
    from nocta.report.text import failure_lines
    from nocta.runs.absent_classes import class_warnings, splits_to_look_at
    from nocta.runs.compare import compare as run
    from nocta.runs.compare import make_jobs, own_predictor_notes
    from nocta.runs.setup import Setup

    check_folder(out)
    source = data_source(data, schema, path, data_option, split_column, fractions, constraint)
    say_what_was_read(source)
    setup = Setup(
        source=source,
        preset=preset,  # type: ignore[arg-type]  # checked by Setup, as are the others
        availability=availability,  # type: ignore[arg-type]
        results=results,  # type: ignore[arg-type]
        n_points=points,
        cost_weights=parse_numbers("--cost-weights", cost_weights),
        budgets=parse_numbers("--budgets", budgets),
        predictor=predictor,
        n_trials=tune,
    )
    if quick:
        setup = setup.as_quick()
    names = parse_methods(methods)
    wanted = make_jobs(names, range(seeds), parse_method_options(option or [], names))
    splits = splits_to_look_at(setup.source, range(seeds))
    warnings = class_warnings(splits, "--fractions, --split-column")
    say_notes(own_predictor_notes(setup, wanted), warnings)
    with stoppable(f"Finished jobs are in '{out}'; run the same command again to continue."):
        comparison = run(setup, wanted, out, n_jobs=jobs, progress=not quiet, dask=dask)
        write_comparison(comparison)
    _print(comparison)
    exit_on_failures(failure_lines(comparison))


def _print(comparison: Comparison) -> None:
    from nocta.report.text import summary_table
    from nocta.runs.protocol_text import sentences_of_comparison

    console = Console()
    if comparison.records:
        console.print(summary_table(comparison))
        for line in sentences_of_comparison(comparison):
            console.print(line, highlight=False, markup=False)
        names = sorted(p.name for p in comparison.directory.iterdir() if p.is_file())
        written = [n for n in names if n.endswith((".csv", ".png", ".svg", ".html"))]
        console.print(f"In {comparison.directory}: {', '.join(written)}")
