"""The exact frontier of a data set that is drawn from a finite task.

That of the paper's task takes minutes to compute and never changes, so the file that `nocta optimum
synthetic` writes ships with the package. A test computes it again.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import resources
from pathlib import Path

import numpy as np

from nocta import datasets
from nocta.core.errors import ConfigError
from nocta.exact.optimum import OptimalFrontier, optimal_frontier
from nocta.exact.task import FiniteTask
from nocta.model.files import write_atomically
from nocta.runs.setup import DataSource

COLUMNS = ("cost", "accuracy")


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
    return make()


def compute_optimum(source: DataSource, *, progress: bool = False) -> OptimalFrontier:
    """Solve the task (a minute or two, up to 6 GiB)."""
    return optimal_frontier(finite_task(source), progress=progress)


def shipped_optimum(source: DataSource) -> OptimalFrontier | None:
    """The frontier that ships with the package; `None` if there is none for these data."""
    if not source.is_as_published or source.card is None or source.card.finite_task is None:
        return None
    file = resources.files(__package__).joinpath(f"{source.card.name}_optimum.csv")
    if not file.is_file():
        return None
    with resources.as_file(file) as path:
        return read_optimum(path, horizon=finite_task(source).horizon)


def write_optimum(frontier: OptimalFrontier, path: Path) -> None:
    """Write `cost,accuracy`, one vertex per line, cheapest first."""
    lines = [f"{p.cost:.10g},{p.accuracy:.10g}\n" for p in frontier]
    write_atomically(path, "".join([",".join(COLUMNS) + "\n", *lines]))


def read_optimum(path: Path, horizon: int) -> OptimalFrontier:
    """Read a file of `write_optimum`; cost weights are in correct labels over the horizon."""
    table = np.atleast_2d(np.loadtxt(path, delimiter=",", skiprows=1))
    cost, accuracy = table.T
    slope = np.diff(accuracy) / np.diff(cost)
    # A vertex is optimal at every cost weight between the slopes on either side, the last vertex
    # at every weight just above zero.
    return OptimalFrontier(
        cost_weight=horizon * np.append(slope, 0.0), cost=cost, accuracy=accuracy
    )
