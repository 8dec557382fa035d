"""An estimator: the loss of a plan as a linear function of the slots it contains."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from sklearn.linear_model import Ridge

from nocta import Cohort, History, NoctEstimator, Observation, Predictor


class SlotMean(NoctEstimator):
    """Scores a plan by the slots it contains, whatever the values of the subject are."""

    def fit(
        self, train: Cohort, val: Cohort, predictor: Predictor, *, seed: int, progress: bool = False
    ) -> Self:
        rng = np.random.default_rng(seed)
        asked = rng.random(train.recorded.shape) < rng.random((len(train), 1, 1))  # (n, L, M)
        proba = predictor.predict_proba(History.of(train, asked))  # (n, L, C)
        labels = np.maximum(train.labels, 0)[..., None]
        loss = -np.log(np.take_along_axis(proba, labels, axis=2)[..., 0] + 1e-6)  # (n, L)
        weight = train.labels >= 0  # only labeled visits count
        self.models_ = [  # one per visit: the loss there depends on requests up to that visit
            Ridge().fit(asked[:, : k + 1].reshape(len(train), -1), loss[:, k], weight[:, k])
            for k in range(train.n_times)
        ]
        return self

    def score_plans(self, observation: Observation, plans: np.ndarray) -> torch.Tensor:
        asked = observation.requested[:, None] | plans  # (n, p, L, M)
        total = np.zeros(asked.shape[:2])
        for k in range(int(observation.time[0]) + 1, asked.shape[2]):  # visits to come
            rows = asked[:, :, : k + 1].reshape(total.size, -1)
            total += self.models_[k].predict(rows).reshape(total.shape)
        return torch.from_numpy(total)
