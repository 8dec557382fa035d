"""Summaries of a comparison: quality over common costs, paired differences, mean points.

Every number is computed per seed and then averaged. Standard errors are over seeds, so they include
the split. Differences are paired: both methods saw the same split.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nocta.evaluation.attainable import attainable_share, optimum_frontier
from nocta.evaluation.frontier import Frontier, paired_difference
from nocta.exact.optimum import accuracy_at
from nocta.exact.yardstick import Yardstick

if TYPE_CHECKING:
    import pandas as pd

QUALITIES = ("accuracy", "ap", "roc_auc", "cross_entropy")
#: Shown side by side, because no one of them tells all; a headline metric of its own comes first.
SIDE_BY_SIDE = ("ap", "roc_auc", "cross_entropy")
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
#: Share of the widest range of costs that a method must cover to count for the common range.
WIDE_SHARE = 0.5
_TOLERANCE = 1e-9


def side_by_side(headline: str) -> tuple[str, ...]:
    """The metrics that every table shows: the headline metric, then the others."""
    return tuple(dict.fromkeys((headline, *SIDE_BY_SIDE)))


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
    yardstick: Yardstick | None = None,
) -> list[MeanPoint]:
    """Every operating point of these methods, averaged over seeds, in the order of the methods.

    With a yardstick, there are two more columns: the share of the optimal accuracy and of the
    attainable gain in accuracy, both at the same cost.
    """
    table = results.assign(point=_points(results))
    columns = list(columns)
    best = None if yardstick is None else optimum_frontier(yardstick, "accuracy")
    if yardstick is not None and best is not None:
        optimum = accuracy_at(yardstick.optimum, table["cost"])
        table["share_of_optimum"] = table["accuracy"] / optimum
        table["share_of_gain"] = attainable_share(best, table["cost"], table["accuracy"])
        columns += ["share_of_optimum", "share_of_gain"]
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
