"""Search for values of a method's knob whose operating points spread along its curve.

The same search, with the same number of roll-outs, serves every method with a knob.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError
from nocta.core.operating_points import CurveEnds, positions_on_curve, spread_points

#: From a knob value to its mean cost and mean loss on validation (often a whole roll-out).
PointAt = Callable[[float], tuple[float, float]]
#: Two knob values whose logarithms are closer than this are not divided: the curve jumps.
_NARROWEST = 1e-3
#: How many times the knob range may be extended on either side.
_MOST_STRETCHES = 6
#: A side is given up after this many extensions that moved nothing.
_MOST_IDLE = 2


def n_roll_outs(n_points: int) -> int:
    """How many knob values any method may try on validation to find this many points."""
    return min(20, 6 + 2 * n_points)


def search_knob(
    point_at: PointAt,
    knob_range: tuple[float, float],
    ends: CurveEnds,
    n_points: int,
    *,
    n_evaluations: int | None = None,
    n_coarse: int = 7,
    known: Mapping[float, tuple[float, float]] | None = None,
    stretch: float | None = None,
) -> list[float]:
    """At most `n_points` values of a positive knob, spread along the curve, cheapest first.

    The search is on a logarithmic scale: a coarse grid first, then again and again between the
    two neighbors that are farthest apart on the curve.

    Args:
        point_at: Cost and loss on validation at a knob value.
        knob_range: Smallest and largest value to try, both positive.
        ends: Where the curve begins and ends.
        n_points: How many values to find.
        n_evaluations: Maximum number of values to try; `n_roll_outs` by default.
        n_coarse: Size of the coarse grid.
        known: Points of knob values that were tried before; they count as tried.
        stretch: Factor by which to extend the range while the curve goes on beyond it: above 1 if
            a larger knob costs more. By default the search stays in the range.
    """
    low, high = knob_range
    if not 0 < low < high:
        raise ConfigError(f"knob_range is {knob_range}; give two positive numbers, low first.")
    n_evaluations = n_evaluations or n_roll_outs(n_points)
    search = _Search(dict(known or {}), ends, n_points, float(np.log(stretch or 1.0)))
    for x in np.geomspace(low, high, max(3, min(n_coarse, n_evaluations))):
        if len(search.seen) < n_evaluations and not search.has(float(x)):
            search.seen[float(x)] = point_at(float(x))
    while len(search.seen) < n_evaluations:
        value = search.next_value()
        if value is None:
            break
        search.seen[value] = point_at(value)
    return [list(search.seen)[i] for i in spread_points(*search.points, ends, n_points)]


@dataclass
class _Search:
    """What was tried so far, and where to try next."""

    seen: dict[float, tuple[float, float]]
    ends: CurveEnds
    n_points: int
    #: Step on the logarithmic scale toward higher cost; 0: the range is not left.
    step: float
    #: By side (-1 cheaper, 1 more expensive), how much of the curve was left beyond the range
    #: each time it was extended.
    left: dict[int, list[float]] = field(default_factory=lambda: {-1: [], 1: []})

    @property
    def points(self) -> tuple[list[float], list[float]]:
        """Costs and losses."""
        return [cost for cost, _ in self.seen.values()], [loss for _, loss in self.seen.values()]

    def has(self, value: float) -> bool:
        return any(abs(np.log(value / other)) < _NARROWEST for other in self.seen)

    def next_value(self) -> float | None:
        """The middle of the widest gap, or a step beyond the range; `None` if all is close."""
        found, length = positions_on_curve(*self.points, self.ends)
        logs = np.log(list(self.seen))
        close = length / (2 * (self.n_points + 1))
        score, value = _widest_gap(logs, found, close)
        outside = [
            (left * np.sqrt(abs(self.step)), side, left)
            for side, left in ((-1, float(found.min())), (1, length - float(found.max())))
            if left > close and self._may_extend(side, left, close)
        ]
        if outside and max(outside)[0] > score:
            _, side, left = max(outside)
            self.left[side].append(left)
            edge = logs.max() if side * self.step > 0 else logs.min()
            value = edge + side * self.step
        return None if value is None else float(np.exp(value))

    def _may_extend(self, side: int, left: float, close: float) -> bool:
        before = self.left[side]
        idle = len(before) >= _MOST_IDLE and before[-_MOST_IDLE] - left < 0.1 * close
        return self.step != 0 and len(before) < _MOST_STRETCHES and not idle


def _widest_gap(
    logs: NDArray[np.float64], found: NDArray[np.float64], close: float
) -> tuple[float, float | None]:
    """How wide the widest gap between neighbors is, and its middle."""
    order = np.argsort(logs)
    logs, found = logs[order], found[order]
    gaps, widths = np.abs(np.diff(found)), np.diff(logs)
    # A jump is divided less and less often, so that it does not take all the roll-outs.
    scores = np.where((gaps > close) & (widths > _NARROWEST), gaps * np.sqrt(widths), 0.0)
    if not scores.any():
        return 0.0, None
    i = int(scores.argmax())
    return float(scores[i]), float((logs[i] + logs[i + 1]) / 2)
