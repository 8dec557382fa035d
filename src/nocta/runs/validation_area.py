"""One number for a whole trade-off on validation, on the same scale for every method.

The score is the mean quality over all costs from 0 to 90 % of the cost of acquiring everything:
the area under the quality-cost curve through the method's operating points, divided by that
range. Validation subjects and prices fix the range, so a method cannot gain by covering fewer
costs. Three rules make scores comparable:

- Every curve starts at the same point: cost 0, and the quality of predicting the training
  frequency of each class at each slot. No curve is extrapolated to the left.
- The curve is linear between points and flat after the most expensive point.
- Every point counts, without an envelope, as in the tables of the report.
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

    Args:
        metric: The quality metric.
        high: Upper end of the range of costs, which starts at 0.
        start: Quality at no cost.

    Example:
        >>> from nocta.core.rollout import rollout
        >>> from nocta.methods.fixed import FixedPlanPolicy
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> train, val = tiny_cohort(40).split((0.5, 0.5))
        >>> everything = FixedPlanPolicy(train.catalog.open_slots, RunningMeanPredictor(2))
        >>> 0 < ValidationArea.of(train, val, "ap").score([rollout(everything, val)]) < 1
        True
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
