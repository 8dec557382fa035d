"""Cost against quality: operating points of one method, their envelope, area and uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.core.errors import ConfigError
from nocta.core.metrics import LOWER_IS_BETTER, check_metric, evaluate_pairs
from nocta.core.rollout import Rollout

Points = NDArray[np.float64]
EnvelopeKind = Literal["hull", "pareto"]
_SAME_COST = 1e-9


@dataclass(frozen=True)
class Frontier:
    """Operating points of one method, in order of cost.

    Args:
        costs: `(k,)` mean cost per subject.
        qualities: `(k,)` the metric at each point.
        metric: Name of the metric; decides whether higher or lower is better.
        label: Name of the method.

    Example:
        >>> frontier = Frontier([4.0, 1.0, 2.0], [0.9, 0.5, 0.6])
        >>> frontier.costs.tolist()
        [1.0, 2.0, 4.0]
        >>> round(frontier.area(1.0, 4.0), 4)
        0.6833
        >>> frontier.envelope("hull").costs.tolist()  # (2, .6) lies below the line
        [1.0, 4.0]
    """

    costs: NDArray[np.float64]
    qualities: NDArray[np.float64]
    metric: str = "accuracy"
    label: str = ""

    def __post_init__(self) -> None:
        check_metric(self.metric)
        points = _as_points(np.stack([np.asarray(self.costs), np.asarray(self.qualities)], axis=1))
        object.__setattr__(self, "costs", points[:, 0])
        object.__setattr__(self, "qualities", points[:, 1])

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], metric: str = "accuracy", label: str = "") -> Self:
        """The operating points of some roll-outs."""
        check_metric(metric)
        scores = [evaluate_pairs(r.labels, r.probabilities, [metric])[metric] for r in rollouts]
        return cls(np.array([r.cost for r in rollouts]), np.array(scores), metric, label)

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def points(self) -> Points:
        """`(k, 2)` cost and quality."""
        return np.stack([self.costs, self.qualities], axis=1)

    @property
    def higher_is_better(self) -> bool:
        return self.metric not in LOWER_IS_BETTER

    def envelope(self, kind: EnvelopeKind = "hull") -> Frontier:
        """The best of the points; see `upper_envelope`."""
        sign = 1 if self.higher_is_better else -1
        best = upper_envelope(self.points * [1, sign], kind) * [1, sign]
        return replace(self, costs=best[:, 0], qualities=best[:, 1])

    def at(self, costs: ArrayLike, start: tuple[float, float] | None = None) -> Points:
        """Quality at some costs, interpolated as in `area`; NaN left of the first point."""
        return _interpolate(_with_start(self.points, start), np.asarray(costs, dtype=float))

    def area(self, low: float, high: float, start: tuple[float, float] | None = None) -> float:
        """Mean quality over a range of costs; see `area`."""
        return area(self.points, low, high, start)


def upper_envelope(points: ArrayLike, kind: EnvelopeKind = "hull") -> Points:
    """The best of some (cost, quality) points, in order of cost; more quality is better.

    Args:
        points: `(k, 2)`; points with a NaN are dropped.
        kind: `"pareto"` keeps each point that is better than all cheaper points. `"hull"` keeps the
            corners of their concave hull: choosing one of two policies at random per subject
            reaches the points in between. This holds for metrics that are means over predictions
            (accuracy, cross-entropy, Brier). Average precision and ROC AUC do not mix linearly,
            so use `"pareto"` for them.

    Example:
        >>> points = [(0, 0.3), (1, 0.35), (2, 0.8), (3, 0.7), (4, 0.9)]
        >>> upper_envelope(points, "pareto")[:, 0].tolist()
        [0.0, 1.0, 2.0, 4.0]
        >>> upper_envelope(points, "hull")[:, 0].tolist()
        [0.0, 2.0, 4.0]
    """
    kept: list[Points] = []
    for point in _as_points(points):
        if kept and point[1] <= kept[-1][1]:
            continue
        if kept and point[0] == kept[-1][0]:
            kept.pop()
        while kind == "hull" and len(kept) > 1 and _turns_up(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array(kept).reshape(-1, 2)


def area(
    points: ArrayLike, low: float, high: float, start: tuple[float, float] | None = None
) -> float:
    """Mean quality over the costs from `low` to `high` (the area, divided by the range).

    The curve is linear between points, flat after the last point, and starts before the first one
    from `start`, usually `(0, quality of "nothing")`. If `low` equals `high`, the area is the
    quality at that cost.
    """
    curve = _with_start(_as_points(points), start)
    if low > high + _SAME_COST:
        raise ConfigError(f"The cost range runs from {low} to {high}; low comes first.")
    if not len(curve) or low < curve[0, 0] - _SAME_COST:
        first = curve[0, 0] if len(curve) else float("nan")
        raise ConfigError(
            f"The area begins at cost {low:g}, but the first point costs {first:g}. Pass "
            f"start=(0, quality of doing nothing), or begin at the first point."
        )
    low = max(low, float(curve[0, 0]))
    if high - low <= _SAME_COST:
        return float(_interpolate(curve, np.array([low]))[0])
    inside = curve[(curve[:, 0] > low) & (curve[:, 0] < high), 0]
    grid = np.concatenate([[low], inside, [high]])
    return float(np.trapezoid(_interpolate(curve, grid), grid) / (high - low))


@dataclass(frozen=True)
class PairedDifference:
    """Difference between two methods on the same seeds or splits."""

    mean: float
    standard_error: float  # of the mean over the pairs; NaN for a single pair
    n: int
    wins: int  # pairs in which the first method is ahead

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.standard_error:.4f} (ahead in {self.wins} of {self.n})"


def paired_difference(first: ArrayLike, second: ArrayLike) -> PairedDifference:
    """Compare two methods seed by seed; pairs with a NaN are dropped.

    Example:
        >>> print(paired_difference([0.7, 0.8, 0.9], [0.6, 0.75, 0.9]))
        +0.0500 ± 0.0289 (ahead in 2 of 3)
    """
    from scipy.stats import sem

    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ConfigError(f"Pairs need two lists of the same seeds; found {a.shape} and {b.shape}.")
    gaps = (a - b)[~np.isnan(a - b)]
    error = float(sem(gaps)) if gaps.size > 1 else float("nan")
    mean = float(gaps.mean()) if gaps.size else float("nan")
    return PairedDifference(mean, error, int(gaps.size), int((gaps > 0).sum()))


def _as_points(points: ArrayLike) -> Points:
    """Sorted by cost; points with a NaN are dropped."""
    table = np.asarray(points, dtype=float).reshape(-1, 2)
    table = table[~np.isnan(table).any(axis=1)]
    return np.asarray(table[np.lexsort((table[:, 1], table[:, 0]))])


def _with_start(points: Points, start: tuple[float, float] | None) -> Points:
    if start is None or (len(points) and points[0, 0] <= start[0]):
        return points
    return np.concatenate([np.asarray([start], dtype=float), points])


def _interpolate(curve: Points, costs: NDArray[np.float64]) -> NDArray[np.float64]:
    # Points of equal cost count as one point with their mean quality.
    knots, which = np.unique(curve[:, 0], return_inverse=True)
    means = np.bincount(which, curve[:, 1]) / np.bincount(which)
    return np.asarray(np.interp(costs, knots, means, left=np.nan))


def _turns_up(a: Points, b: Points, c: Points) -> bool:
    """Whether `b` lies on or below the line from `a` to `c`."""
    return bool((b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0]))
