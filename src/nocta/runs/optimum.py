"""The exact frontier of a data set, where there is one: computed, written, or as shipped.

The frontier of the paper's task takes a minute or two to compute and never changes, so the file
`nocta optimum synthetic` writes ships with the package; a test computes it again.
"""

from __future__ import annotations

import csv
from importlib import resources
from pathlib import Path

import numpy as np

from nocta.core.errors import ConfigError, did_you_mean
from nocta.exact.optimum import OptimalFrontier, optimal_frontier
from nocta.exact.task import FiniteTask, synthetic_task

#: Data sets drawn from a finite task, and the file their frontier ships in.
SHIPPED = {"synthetic": "synthetic_optimum.csv"}
COLUMNS = ("cost", "accuracy")


def finite_task(dataset: str) -> FiniteTask:
    """The task a data set is drawn from."""
    if dataset not in SHIPPED:
        raise ConfigError(
            f"The optimum of '{dataset}' is not known.{did_you_mean(dataset, SHIPPED)} It can be "
            f"computed for data drawn from a known finite task: {', '.join(SHIPPED)}. For a task "
            f"of your own see nocta.exact.optimal_frontier."
        )
    return synthetic_task()


def compute_optimum(dataset: str, *, progress: bool = False) -> OptimalFrontier:
    """Solve the task anew (a minute or two, up to 6 GiB)."""
    return optimal_frontier(finite_task(dataset), progress=progress)


def shipped_optimum(dataset: str) -> OptimalFrontier | None:
    """The frontier that comes with the package; `None` where the optimum is not known.

    Example:
        >>> from nocta.exact.optimum import accuracy_at
        >>> float(accuracy_at(shipped_optimum("synthetic"), 8.952).round(3))
        0.845
        >>> shipped_optimum("pbc-stage")
    """
    if dataset not in SHIPPED:
        return None
    with resources.as_file(resources.files(__package__).joinpath(SHIPPED[dataset])) as path:
        return read_optimum(path, horizon=finite_task(dataset).horizon)


def write_optimum(frontier: OptimalFrontier, path: Path) -> None:
    """Write `cost,accuracy`, one vertex per line, cheapest first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((f"{p.cost:.10g}", f"{p.accuracy:.10g}") for p in frontier)


def read_optimum(path: Path, horizon: int) -> OptimalFrontier:
    """Read what `write_optimum` wrote.

    Args:
        path: The file.
        horizon: Number of times of the task; cost weights are in correct labels over all times.
    """
    table = np.atleast_2d(np.loadtxt(path, delimiter=",", skiprows=1))
    cost, accuracy = table.T
    slope = np.diff(accuracy) / np.diff(cost)
    # A vertex is optimal at every cost weight between the slopes on either side; the last one
    # already at weights barely above zero.
    return OptimalFrontier(
        cost_weight=horizon * np.append(slope, 0.0), cost=cost, accuracy=accuracy
    )
