"""The exact yardstick of a data set that is drawn from a finite task.

That of the paper's task takes minutes to compute and never changes, so the file that `nocta optimum
synthetic --noct` writes ships with the package; a test computes it again. Small tasks are solved
when they are needed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from nocta import datasets
from nocta.core.errors import ConfigError
from nocta.exact.build import build_graph
from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.graph import Loss
from nocta.exact.task import FiniteTask
from nocta.exact.yardstick import Yardstick, solve_yardstick
from nocta.model.files import write_atomically
from nocta.runs.setup import DataSource

COLUMNS = ("cost", "accuracy")
CURVE_COLUMNS = ("policy", "loss", *CurvePoint._fields)
#: Options that decide who is drawn, not from which task.
_DRAWING = {"n_subjects", "seed"}
#: Tasks with at most this many beliefs at one time are solved without being asked, in seconds.
SMALL_TASK = 300_000


def finite_task(source: DataSource) -> FiniteTask:
    """The task a data set is drawn from."""
    make = source.card.finite_task if source.card is not None else None
    if make is None:
        known = []
        for name in datasets.names():
            with suppress(ConfigError):  # a broken package must not hide this message
                if datasets.card(name).finite_task is not None:
                    known.append(name)
        raise ConfigError(
            f"The optimum of '{source.data}' is not known. It can be computed for data drawn from "
            f"a known finite task: {', '.join(known)}. For your own task, use "
            f"nocta.exact.optimal_frontier."
        )
    options = _task_options(source)
    unknown = options.keys() - inspect.signature(make).parameters.keys()
    if unknown:
        raise ConfigError(
            f"The optimum of '{source.data}' is not known with the data option "
            f"{', '.join(sorted(unknown))}; its finite task does not depend on it. Leave it out."
        )
    return make(**options)


def compute_yardstick(
    source: DataSource,
    losses: Sequence[Loss] = get_args(Loss),
    *,
    noct: bool = True,
    progress: bool = False,
) -> Yardstick:
    """Solve the task; for `synthetic` this takes some minutes and up to 6 GiB."""
    return solve_yardstick(finite_task(source), losses, noct=noct, progress=progress)


def known_yardstick(source: DataSource) -> Yardstick | None:
    """The yardstick that ships with the package, or that of a small task.

    `None` for data that are not drawn from a finite task, and for tasks too large to be solved on
    the way: `nocta optimum` solves those.
    """
    if source.card is None or source.card.finite_task is None or source.constraints:
        return None
    if not _task_options(source):
        file = resources.files(__package__).joinpath(f"{source.card.name}_optimum.csv")
        if file.is_file():
            with resources.as_file(file) as path:
                return read_curves(path)
    return _solve_small(source.data, json.dumps(_task_options(source)))


def write_optimum(frontier: ExactCurve, path: Path) -> None:
    """Write `cost,accuracy`, one vertex per line, cheapest first."""
    lines = [f"{p.cost:.10g},{p.accuracy:.10g}\n" for p in frontier]
    write_atomically(path, "".join([",".join(COLUMNS) + "\n", *lines]))


def curve_rows(curves: Iterable[ExactCurve]) -> list[dict[str, Any]]:
    """One row per point, with the columns of `CURVE_COLUMNS`."""
    return [{"policy": c.policy, "loss": c.loss, **p._asdict()} for c in curves for p in c]


def write_curves(yardstick: Yardstick, path: Path) -> None:
    """Write every curve to one CSV file, in the columns of `CURVE_COLUMNS`."""
    rows = [[_text(v) for v in row.values()] for row in curve_rows(yardstick.curves)]
    lines = [",".join(line) + "\n" for line in ([*CURVE_COLUMNS], *rows)]
    write_atomically(path, "".join(lines))


def read_curves(path: Path) -> Yardstick:
    """Read a file of `write_curves`."""
    import pandas as pd

    table = pd.read_csv(path)
    curves = []
    for (policy, loss), rows in table.groupby(["policy", "loss"], sort=False):
        numbers = rows[list(CurvePoint._fields)].itertuples(index=False)
        points = [CurvePoint(*row) for row in numbers]
        curves.append(ExactCurve.of(points, loss, policy))
    return Yardstick(tuple(curves))


@lru_cache(maxsize=32)
def _solve_small(data: str, options: str) -> Yardstick | None:
    source = DataSource(data, data_options=json.loads(options))
    try:
        graph = build_graph(finite_task(source), max_beliefs=SMALL_TASK)
    except (ConfigError, ValueError):  # an option that the task does not have, or too many beliefs
        return None
    return solve_yardstick(graph)


def _task_options(source: DataSource) -> dict[str, Any]:
    """The data options that decide the task."""
    return {k: v for k, v in source.data_options.items() if k not in _DRAWING}


def _text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
