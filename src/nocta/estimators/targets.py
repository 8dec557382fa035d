"""What estimators learn from: the loss of training subjects at every time, under any request.

Where the predictor has seen the subject, its loss there is too good to be true. With few
subjects it pays to score each one by a predictor that never saw it (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.cohort.cohort import Cohort
from nocta.objective import PlanningLoss, losses_at_times, self_expected_losses
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.neural import NeuralPredictor


class LossTargets:
    """Losses of a cohort's subjects under requests, from predictors fitted elsewhere.

    Args:
        cohort: The subjects to score.
        predictors: One predictor, or one per fold.
        fold: `(n,)` which predictor scores each subject; all by the first by default.
        kinds: The losses to compute, in this order.
        expected: Use the loss the predictor expects of itself instead of the realised one: no
            label noise, but only as good as its calibration.
    """

    def __init__(
        self,
        cohort: Cohort,
        predictors: Sequence[NeuralPredictor],
        fold: NDArray[np.int64] | None = None,
        kinds: Sequence[PlanningLoss] = ("cross-entropy", "error"),
        expected: bool = False,
    ) -> None:
        self.predictors = list(predictors)
        self.fold = np.zeros(len(cohort), dtype=np.int64) if fold is None else fold
        self.kinds = tuple(kinds)
        self.expected = expected
        self.data = [EncodedCohort(p.encoder_, cohort) for p in self.predictors]
        self.labelled = torch.from_numpy(cohort.labelled)

    def __call__(self, index: NDArray[np.int64], requested: NDArray[np.bool_]) -> Tensor:
        """Losses of the subjects at `index` at every time, `(b, L, n_kinds)`; 0 if unlabelled."""
        length = requested.shape[1]
        out = torch.zeros(len(index), length, len(self.kinds))
        for which, predictor in enumerate(self.predictors):
            rows = np.flatnonzero(self.fold[index] == which)
            if rows.size == 0:
                continue
            subjects = torch.as_tensor(index[rows])
            data = self.data[which]
            log_proba = predictor.log_proba(data.inputs(subjects, requested[rows]))
            out[torch.as_tensor(rows)] = self._losses(log_proba, data.labels[subjects])
        return out

    def _losses(self, log_proba: Tensor, labels: Tensor) -> Tensor:
        if self.expected:
            losses = [self_expected_losses(log_proba, kind) for kind in self.kinds]
            return torch.stack(losses, dim=-1) * (labels >= 0)[..., None]
        return torch.stack([losses_at_times(log_proba, labels, k) for k in self.kinds], dim=-1)
