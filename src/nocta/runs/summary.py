"""Summaries of a comparison: quality over common costs, paired differences, share of the optimum.

Every number is computed per seed and then averaged. Standard errors are over seeds, so they include
the split. Differences are paired: both methods saw the same split.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nocta.evaluation.frontier import Frontier, paired_difference
from nocta.exact.optimum import OptimalFrontier, accuracy_at

if TYPE_CHECKING:
    import pandas as pd

QUALITIES = ("accuracy", "ap", "roc_auc", "cross_entropy")
SUMMARY_COLUMNS = (
    "quality",
    "method",
    "versus",
    "mean",
    "standard_error",
    "n_seeds",
    "cost_low",
    "cost_high",
)
OPTIMUM_COLUMNS = ("method", "seed", "point", "cost", "accuracy", "optimum", "ratio")
#: Share of the widest range of costs that a method must cover to count for the common range.
WIDE_SHARE = 0.5
_TOLERANCE = 1e-9


def mean_and_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error over seeds; the error of a single value is NaN."""
    found = paired_difference(values, np.zeros(len(values)))
    return found.mean, found.standard_error


def frontiers_by_seed(results: pd.DataFrame, method: str, quality: str) -> dict[int, Frontier]:
    rows = results[results["method"] == method]
    return {
        int(seed): Frontier(group["cost"].to_numpy(), group[quality].to_numpy(), quality, method)
        for seed, group in rows.groupby("seed")
    }


def cost_range(results: pd.DataFrame, methods: Sequence[str]) -> tuple[float, float] | None:
    """The range of costs that all of these methods reach at every seed; `None` if it is empty."""
    rows = results[results["method"].isin(methods)]
    spans = rows.groupby(["method", "seed"])["cost"].agg(["min", "max"])
    if spans.empty:
        return None
    low, high = float(spans["min"].max()), float(spans["max"].min())
    return (low, high) if low <= high + _TOLERANCE else None


def wide_methods(results: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """The methods whose operating points cover at least half of the widest range of costs.

    Others, such as acquiring nothing, would make the common range almost empty.
    """
    spans = {m: cost_range(results, [m]) for m in methods}
    widths = {m: span[1] - span[0] if span else 0.0 for m, span in spans.items()}
    widest = max(widths.values(), default=0.0)
    return [m for m in methods if widest > _TOLERANCE and widths[m] >= WIDE_SHARE * widest]


def quality_per_seed(
    results: pd.DataFrame, method: str, quality: str, costs: tuple[float, float]
) -> dict[int, float]:
    """By seed, the mean quality of a method over a range of costs, or at a single cost."""
    low, high = costs
    frontiers = frontiers_by_seed(results, method, quality)
    if high - low > _TOLERANCE:
        return {seed: f.area(low, high) for seed, f in frontiers.items() if len(f)}
    return {seed: float(f.at(low + _TOLERANCE)) for seed, f in frontiers.items() if len(f)}


def summarize_results(results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The summary table.

    Rows without `versus` hold the mean quality of a method over the common costs of all
    `wide_methods` (the area under its quality-cost curve, divided by the width). Rows with
    `versus` hold the paired difference to another method over the common costs of the two, or at
    a single cost if one of them has only one operating point.
    """
    import pandas as pd

    wide = wide_methods(results, methods)
    shared = cost_range(results, wide)
    rows = []
    for quality in QUALITIES:
        if shared is not None:
            for method in wide:
                found = quality_per_seed(results, method, quality, shared)
                rows.append(_summary_row(quality, method, "", list(found.values()), shared))
        for method, other in permutations(methods, 2):
            costs = cost_range(results, [method, other])
            if costs is not None:
                ours = quality_per_seed(results, method, quality, costs)
                theirs = quality_per_seed(results, other, quality, costs)
                paired = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
                rows.append(_summary_row(quality, method, other, paired, costs))
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


def _summary_row(
    quality: str, method: str, versus: str, values: list[float], costs: tuple[float, float]
) -> tuple[object, ...]:
    return (quality, method, versus, *mean_and_error(values), len(values), *costs)


class MeanPoint(NamedTuple):
    """An operating point of a method: mean and standard error over seeds of each column."""

    method: str
    point: int
    means: dict[str, tuple[float, float]]
    n_seeds: int


def mean_points(
    results: pd.DataFrame,
    methods: Sequence[str],
    columns: Sequence[str],
    optimum: OptimalFrontier | None = None,
) -> list[MeanPoint]:
    """Every operating point of these methods, averaged over seeds, in the order of the methods."""
    table = results.assign(point=_points(results))
    columns = list(columns)
    if optimum is not None:
        table["share_of_optimum"] = table["accuracy"] / accuracy_at(optimum, table["cost"])
        columns.append("share_of_optimum")
    out = []
    for method in methods:
        for point, group in table[table["method"] == method].groupby("point"):
            means = {c: mean_and_error(group[c].dropna().to_numpy()) for c in columns}
            out.append(MeanPoint(method, int(point), means, len(group)))
    return out


def _points(results: pd.DataFrame) -> pd.Series[int]:
    """Number of each operating point within its method and seed; the most expensive end is last.

    Seeds may have found different numbers of points; acquiring everything is never averaged with
    anything else.
    """
    found = results.groupby(["method", "seed"]).cumcount()
    if "setting" in results:
        last = results["setting"].str.startswith('{"acquire": "everything"')
        found = found.where(~last, found.max() + 1)
    return found


def _is_end(results: pd.DataFrame) -> pd.Series[bool]:
    return results["setting"].str.startswith('{"acquire": ')


def share_of_optimum(results: pd.DataFrame, optimum: OptimalFrontier) -> pd.DataFrame:
    """Accuracy of every operating point as a share of the best possible at the same cost.

    The ends of the curves, nothing and everything, are left out. A row with `point` "mean" (over
    points and seeds) follows the points of each method.
    """
    import pandas as pd

    inside = ~_is_end(results) if "setting" in results else slice(None)
    table = results.loc[inside, ["method", "seed", "cost", "accuracy"]].copy()
    table["point"] = table.groupby(["method", "seed"]).cumcount().astype(object)
    table["optimum"] = accuracy_at(optimum, table["cost"].to_numpy())
    table["ratio"] = table["accuracy"] / table["optimum"]
    table["seed"] = table["seed"].astype(object)
    tables = []
    for method, points in table.groupby("method", sort=False):
        mean = points[["cost", "accuracy", "optimum", "ratio"]].mean().to_dict()
        tables += [
            points,
            pd.DataFrame([{"method": method, "seed": "all", "point": "mean", **mean}]),
        ]
    return pd.concat(tables, ignore_index=True)[list(OPTIMUM_COLUMNS)]
