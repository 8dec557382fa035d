"""Results as a share of the attainable gain: 0 = acquire nothing, 1 = the optimum at that cost.

A share of the optimum itself says little: guessing may already give most of it. Here the exact
optimum of a finite task sets both ends of the scale, for accuracy and for cross-entropy.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.evaluation.frontier import Frontier, upper_envelope
from nocta.exact.curve import ExactCurve
from nocta.exact.graph import Loss
from nocta.exact.yardstick import Yardstick

#: The measures that have an exact optimum, and the loss it is optimal for.
MEASURES: Final[dict[str, Loss]] = {"accuracy": "error", "cross_entropy": "cross-entropy"}
#: Operating points where the optimum gains less than this share of its greatest gain have no share.
LEAST_GAIN = 0.01
#: Shares over costs are taken from this share of the cost of the full gain up to that cost.
FIRST_COST = 0.05
N_COSTS = 96


def optimum_frontier(yardstick: Yardstick, measure: str) -> Frontier | None:
    """The best possible quality at each cost; `None` if it is not known for this measure."""
    curve = yardstick.find("optimum", MEASURES[measure])
    return None if curve is None else _frontier(curve, measure, "optimum")


def noct_frontier(yardstick: Yardstick, measure: str) -> Frontier | None:
    """The best mixture of exact NOCT policies at each cost, whichever loss they plan for."""
    found = [_frontier(c, measure, "noct") for c in yardstick.curves if c.policy == "noct"]
    if not found:
        return None
    sign = 1 if found[0].higher_is_better else -1
    points = np.concatenate([f.points for f in found]) * [1, sign]
    best = upper_envelope(points) * [1, sign]
    return Frontier(best[:, 0], best[:, 1], measure, "noct")


def attainable_share(
    optimum: Frontier, costs: ArrayLike, qualities: ArrayLike
) -> NDArray[np.float64]:
    """Share of the attainable gain at some costs.

    NaN where the optimum hardly gains anything (below `LEAST_GAIN` of its greatest gain).

    Args:
        optimum: The best quality at each cost; its first point costs nothing.
        costs: `(n,)` mean cost per subject.
        qualities: `(n,)` in the measure of `optimum`.

    Example:
        >>> optimum = Frontier([0.0, 4.0], [0.5, 0.9])
        >>> attainable_share(optimum, [0.0, 2.0, 4.0, 9.0], [0.5, 0.6, 0.9, 0.8]).round(2)
        array([ nan, 0.5 , 1.  , 0.75])
    """
    nothing = optimum.qualities[0]
    best = optimum.at(costs) - nothing
    least = LEAST_GAIN * abs(optimum.qualities[-1] - nothing)
    gained = np.asarray(qualities, dtype=float) - nothing
    undefined = np.full_like(gained, np.nan)
    return np.asarray(np.divide(gained, best, out=undefined, where=np.abs(best) > least))


class ShareOverCosts(NamedTuple):
    """The share of the attainable gain over the whole range of costs."""

    mean: float
    lowest: float
    lowest_at: float  # the cost with the lowest share


def share_over_costs(optimum: Frontier, points: Frontier) -> ShareOverCosts:
    """Mean and lowest share from 5 % to 100 % of the cost of the full gain.

    Between two operating points the quality is that of mixing them; before the first point, of
    mixing it with acquiring nothing. A stretch without operating points therefore costs share.
    """
    full = float(optimum.costs[-1])
    if full <= 0:
        return ShareOverCosts(np.nan, np.nan, np.nan)
    costs = np.linspace(FIRST_COST * full, full, N_COSTS)
    shares = attainable_share(
        optimum, costs, points.at(costs, start=(0.0, float(optimum.qualities[0])))
    )
    if np.isnan(shares).all():
        return ShareOverCosts(np.nan, np.nan, np.nan)
    worst = int(np.nanargmin(shares))
    return ShareOverCosts(float(np.nanmean(shares)), float(shares[worst]), float(costs[worst]))


def _frontier(curve: ExactCurve, measure: str, label: str) -> Frontier:
    return Frontier(curve.cost, getattr(curve, measure), measure, label)
