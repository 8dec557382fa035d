"""One number for a whole trade-off on validation, on the same scale for every method.

The score is the mean quality over all costs from 0 to 90 % of what acquiring everything costs:
the area under the quality-cost curve through the method's operating points, divided by that
range. The range is fixed by the validation subjects and their prices, so no method can do better
by covering fewer costs. Three rules make it comparable:

- Every curve starts at the same point: no cost, and the quality of predicting how frequent each
  class is among the training subjects at each slot. Nobody is scored by extrapolation to the left.
- Between points the curve is linear; after the dearest point it is flat.
- Points count as they are, without an envelope, as in the tables of the report.
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
from nocta.runs.summary import headline_metric


@dataclass(frozen=True)
class ValidationArea:
    """The scale on which the trials of all methods of a seed are scored.

    Args:
        metric: What quality is.
        high: Where the range of costs ends; it begins at 0.
        start: Quality at no cost.

    Example:
        >>> from nocta.core.rollout import rollout
        >>> from nocta.methods.fixed import FixedPlanPolicy
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> train, val = tiny_cohort(40).split((0.5, 0.5))
        >>> everything = FixedPlanPolicy(train.catalog.open_slots, RunningMeanPredictor(2))
        >>> 0 < ValidationArea.of(train, val).score([rollout(everything, val)]) < 1
        True
    """

    metric: str
    high: float
    start: float

    @classmethod
    def of(cls, train: Cohort, val: Cohort) -> Self:
        """The scale of a split; the metric is the one to look at first on these data."""
        metric = headline_metric(val.name)
        shape = (len(val), val.n_times, val.n_classes)
        guess = np.broadcast_to(class_frequencies(train), shape)
        start = evaluate_pairs(val.labels, guess, [metric])[metric]
        return cls(metric, COST_SHARE[1] * cost_of_everything(val), start)

    def score(self, rollouts: Sequence[Rollout]) -> float:
        """How good the operating points are together, higher is better; NaN where undefined."""
        area = Frontier.of(rollouts, self.metric).area(0.0, self.high, (0.0, self.start))
        return -area if self.metric in LOWER_IS_BETTER else area


def class_frequencies(cohort: Cohort) -> NDArray[np.float64]:
    """How frequent each class is at each slot, `(L, C)`; slots with few labels lean on all."""
    classes = np.arange(cohort.n_classes)
    counts = (cohort.labels[:, :, None] == classes).sum(axis=0).astype(float)
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + cohort.n_classes)
    return np.asarray((counts + overall) / (counts.sum(axis=1, keepdims=True) + 1))
