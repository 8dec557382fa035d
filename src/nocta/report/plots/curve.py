"""Average the frontiers of several seeds into one curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.evaluation.frontier import Frontier

#: Costs at which seeds with different numbers of points are compared.
_N_COSTS = 12


@dataclass(frozen=True)
class Curve:
    """One method, averaged over its seeds; costs are in ascending order.

    Cost errors are zero if seeds are read at one cost. A quality error is NaN if not every seed
    reaches the cost.
    """

    costs: NDArray[np.float64]
    qualities: NDArray[np.float64]
    cost_errors: NDArray[np.float64]
    quality_errors: NDArray[np.float64]


def mean_curve(frontiers: Sequence[Frontier]) -> Curve:
    """Average the frontiers of several seeds into one.

    Seeds are averaged at equal cost within the range that all of them reach: averaging point by
    point would turn differences in cost into uncertainty of quality, with bands above the possible.
    Outside that range the mean points follow without a band.
    """
    usable = [f for f in frontiers if len(f)]
    if not usable:
        raise DataError("The metric is undefined at every operating point; draw another metric.")
    low = max(float(f.costs[0]) for f in usable)
    high = min(float(f.costs[-1]) for f in usable)
    if len({len(f) for f in usable}) > 1:
        # As dense as the points are: they lie where something changes.
        found = np.clip(np.concatenate([f.costs for f in usable]), low, high)
        costs = np.unique(np.quantile(found, np.linspace(0, 1, _N_COSTS)))
        return _at_equal_cost(usable, costs)
    means = _point_by_point(usable)
    if len(usable) == 1 or low >= high:
        return means
    inside = means.costs[(means.costs > low) & (means.costs < high)]
    shared = _at_equal_cost(usable, np.array([low, *inside, high]))
    pieces = [_beyond(means, means.costs < low), shared, _beyond(means, means.costs > high)]
    names = ("costs", "qualities", "cost_errors", "quality_errors")
    return Curve(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))


def _point_by_point(frontiers: Sequence[Frontier]) -> Curve:
    costs = np.stack([f.costs for f in frontiers])
    qualities = np.stack([f.qualities for f in frontiers])
    errors = _standard_error(costs), _standard_error(qualities)
    return Curve(costs.mean(axis=0), qualities.mean(axis=0), *errors)


def _at_equal_cost(frontiers: Sequence[Frontier], costs: NDArray[np.float64]) -> Curve:
    found = np.stack([f.at(costs) for f in frontiers])
    return Curve(costs, found.mean(axis=0), np.zeros(len(costs)), _standard_error(found))


def _beyond(means: Curve, where: NDArray[np.bool_]) -> Curve:
    unknown = np.full(int(where.sum()), np.nan)
    return Curve(means.costs[where], means.qualities[where], np.zeros(len(unknown)), unknown)


def _standard_error(table: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(table) < 2:
        return np.zeros(table.shape[1])
    return np.asarray(table.std(axis=0, ddof=1) / np.sqrt(len(table)))
