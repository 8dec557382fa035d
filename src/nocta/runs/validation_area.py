"""One number for a whole trade-off on validation, on the same scale for every method.

The score is the mean quality over all costs from 0 to 90 % of the cost of acquiring everything: the
area under the curve through all operating points, divided by that range. Every curve starts at cost
0 with the quality of predicting the training frequency of each class at each slot. It is linear
between points and flat after the most expensive one, so covering fewer costs gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.metrics import LOWER_IS_BETTER, evaluate_pairs
from nocta.core.operating_points import COST_SHARE, cost_of_everything
from nocta.core.rollout import Rollout
from nocta.evaluation.frontier import Frontier


@dataclass(frozen=True)
class ValidationArea:
    """The scale on which the trials of all methods of a seed are scored.

    Costs go from 0, with the quality `start`, to `high`.
    """

    metric: str
    high: float
    start: float

    @classmethod
    def of(cls, train: Cohort, val: Cohort, metric: str) -> Self:
        """The scale of a split."""
        shape = (len(val), val.n_times, val.n_classes)
        guess = np.broadcast_to(class_frequencies(train), shape)
        start = evaluate_pairs(val.labels, guess, [metric])[metric]
        return cls(metric, COST_SHARE[1] * cost_of_everything(val), start)

    def score(self, rollouts: Sequence[Rollout]) -> float:
        """Score of the operating points together, higher is better; NaN if undefined."""
        area = Frontier.of(rollouts, self.metric).area(0.0, self.high, (0.0, self.start))
        return -area if self.metric in LOWER_IS_BETTER else area


def class_frequencies(cohort: Cohort) -> NDArray[np.float64]:
    """Smoothed frequency of each class at each slot, `(L, C)`."""
    classes = np.arange(cohort.n_classes)
    counts = (cohort.labels[:, :, None] == classes).sum(axis=0).astype(float)
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + cohort.n_classes)
    return np.asarray((counts + overall) / (counts.sum(axis=1, keepdims=True) + 1))
