"""Options that commands which run something have in common: rules, processes, progress."""

from __future__ import annotations

from typing import Annotated

import typer

AvailabilityOption = Annotated[
    str,
    typer.Option(
        "--availability",
        help="`on-arrival`, or `known`: the paper's rule, missing slots known beforehand.",
    ),
]
ResultsOption = Annotated[
    str,
    typer.Option(
        "--results",
        help="When a visit's results are shown: `after-visit`, or `at-once` to methods that "
        "acquire one feature after the other (dime, difa).",
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes; one per core by default.")
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        help="Address of a Dask scheduler; jobs become tasks of its workers.",
        show_default=False,
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
