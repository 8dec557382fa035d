"""Which operating points are as good as the best one, up to one standard error.

The standard error is that of the paired difference of the losses, over subjects (or groups of
subjects): two points of one model judge the same subjects, so most of the noise cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.losses import pair_losses
from nocta.core.rollout import Rollout


@dataclass(frozen=True)
class UnitLosses:
    """Cross-entropy of a roll-out by independent unit: sums `(u,)` over labeled pairs, counts."""

    sums: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, rollout: Rollout) -> Self:
        losses = pair_losses(rollout.labels, rollout.probabilities)
        sums = np.bincount(rollout.units, weights=np.nansum(losses, axis=1))
        counts = np.bincount(rollout.units, weights=(rollout.labels >= 0).sum(axis=1))
        return cls(np.asarray(sums, dtype=float), np.asarray(counts, dtype=float))

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / max(self.counts.sum(), 1.0))


def paired_excess(first: UnitLosses, second: UnitLosses) -> tuple[float, float]:
    """How much higher the mean loss of `first` is, and the standard error over units.

    Example:
        >>> worse, better = UnitLosses(np.array([2., 3.]), np.ones(2)), UnitLosses(
        ...     np.array([1., 1.]), np.ones(2))
        >>> paired_excess(worse, better)
        (1.5, 0.5)
    """
    n, total = len(first.sums), max(float(first.counts.sum()), 1.0)
    gaps = first.sums - second.sums
    mean = float(gaps.sum() / total)
    spread = gaps - mean * first.counts
    error = np.sqrt(n / max(n - 1, 1) * (spread**2).sum()) / total
    return mean, float(error)


def within_one_error(rollouts: Sequence[Rollout]) -> tuple[NDArray[np.bool_], int]:
    """Which roll-outs are within one standard error of the best, `(k,)`, and which is the best."""
    losses = [UnitLosses.of(rollout) for rollout in rollouts]
    best = int(np.argmin([loss.mean for loss in losses]))
    excess = [paired_excess(loss, losses[best]) for loss in losses]
    return np.array([gap <= error for gap, error in excess]), best


def cheapest_within_one_error(rollouts: Sequence[Rollout]) -> int:
    """The cheapest roll-out within one standard error of the best; the better of equal costs."""
    close, _ = within_one_error(rollouts)
    losses = [UnitLosses.of(rollout).mean for rollout in rollouts]
    order = sorted(range(len(rollouts)), key=lambda i: (rollouts[i].cost, losses[i]))
    return next(i for i in order if close[i])
