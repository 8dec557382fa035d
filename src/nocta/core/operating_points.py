"""Operating points: which of a method's points to keep, so that they lie where something changes.

A point has a cost and a loss on validation. Both are divided by their range between acquiring
nothing and acquiring everything, and points are spread along the length of the curve they draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.options import Count, check_value
from nocta.core.rollout import Rollout

#: Points closer than this share of the curve count as one.
_SAME = 1e-6


class Predicts(Protocol):
    """A predictor, or a policy, which predicts too."""

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """Class probabilities at every time, `(n, L, C)`."""


def cost_of_everything(cohort: Cohort) -> float:
    """Mean charge per subject if everything is requested (unavailable values are not charged)."""
    return float(cohort.catalog.cost_of(cohort.recorded).mean())


def mean_loss(labels: NDArray[np.int64], probabilities: NDArray[np.floating[Any]]) -> float:
    """Mean cross-entropy over the labeled pairs of `(n, L)` labels; 0 if there is no label."""
    labeled = labels >= 0
    if not labeled.any():
        return 0.0
    return float(pair_losses(labels[labeled], probabilities[labeled]).mean())


def cost_and_loss(rollout: Rollout) -> tuple[float, float]:
    """Mean cost per subject and mean cross-entropy of a roll-out."""
    return rollout.cost, mean_loss(rollout.labels, rollout.probabilities)


@dataclass(frozen=True)
class CurveEnds:
    """Where every cost-quality curve begins and ends.

    Args:
        nothing: Loss of acquiring nothing, at cost 0.
        cost: Cost of acquiring everything.
        everything: Loss of acquiring everything.
    """

    nothing: float
    cost: float
    everything: float

    @classmethod
    def of(cls, predictor: Predicts, cohort: Cohort) -> Self:
        """The ends for a predictor, on validation subjects.

        A predictor that was never trained on empty histories may be worse there than the
        frequency of the classes; nothing then counts as much as these frequencies.
        """

        def loss(requested: NDArray[np.bool_]) -> float:
            return mean_loss(cohort.labels, predictor.predict_proba(History.of(cohort, requested)))

        slots = cohort.catalog.open_slots
        nothing = min(loss(np.zeros_like(slots)), _loss_of_frequencies(cohort))
        return cls(nothing, cost_of_everything(cohort), loss(slots))


def _loss_of_frequencies(cohort: Cohort) -> float:
    """Loss of predicting at each slot how often each class occurs there."""
    classes = np.arange(cohort.n_classes)
    counts = (cohort.labels[:, :, None] == classes).sum(axis=0)
    shares = (counts + 1e-9) / (counts + 1e-9).sum(axis=1, keepdims=True)
    guess = np.broadcast_to(shares, (*cohort.labels.shape, cohort.n_classes))
    return mean_loss(cohort.labels, guess)


def positions_on_curve(
    costs: ArrayLike, losses: ArrayLike, ends: CurveEnds
) -> tuple[NDArray[np.float64], float]:
    """How far along the curve each point lies, `(k,)`, and the length of the whole curve.

    A point counts with the lowest loss of all points that cost no more, so that noise adds no
    length.

    Example:
        >>> ends = CurveEnds(nothing=1.0, cost=10.0, everything=0.5)
        >>> found, length = positions_on_curve([0.0, 10.0], [0.5, 0.5], ends)
        >>> found.tolist(), length
        ([1.0, 2.0], 2.0)
    """
    cost, loss = (np.asarray(values, dtype=float) for values in (costs, losses))
    order = np.lexsort((loss, cost))
    x = np.concatenate([[0.0], cost[order], [max(ends.cost, cost.max(initial=0.0))]])
    y = np.minimum.accumulate(np.concatenate([[ends.nothing], loss[order], [ends.everything]]))
    steps = np.hypot(_share(np.diff(x), x[-1]), _share(np.diff(y), y[0] - y[-1]))
    length = np.concatenate([[0.0], np.cumsum(steps)])
    out = np.empty(len(cost))
    out[order] = length[1:-1]
    return out, float(length[-1])


def _share(values: NDArray[np.float64], whole: float) -> NDArray[np.float64]:
    return values / whole if whole > 0 else np.zeros_like(values)


def spread_points(
    costs: ArrayLike, losses: ArrayLike, ends: CurveEnds, n_points: int
) -> NDArray[np.int64]:
    """At most `n_points` of some points, spread along the curve, cheapest first.

    Points at its ends, where nothing or everything is acquired, are taken only if there are no
    others: every curve shows the ends anyway.
    """
    check_value("n_points", n_points, Count)
    found, length = positions_on_curve(costs, losses, ends)
    near = _SAME * max(length, 1e-12)
    inside = np.flatnonzero((found > near) & (found < length - near))
    if not len(inside):
        inside = np.arange(len(found))
    targets = length * np.arange(1, n_points + 1) / (n_points + 1)
    nearest = np.abs(found[inside][None, :] - targets[:, None]).argmin(axis=1)
    chosen = list(inside[np.unique(nearest)])
    while len(chosen) < min(n_points, len(inside)):
        apart = np.abs(found[inside][:, None] - found[chosen][None, :]).min(axis=1)
        if apart.max() <= near:
            break
        chosen.append(inside[int(apart.argmax())])
    order = np.lexsort((found[chosen], np.asarray(costs, dtype=float)[chosen]))
    return np.asarray(chosen, dtype=np.int64)[order]
