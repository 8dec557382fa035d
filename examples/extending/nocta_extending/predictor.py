"""A predictor: gradient boosting on the last known values, the requests and the visit."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from nocta import Cohort, History, Predictor


class Boosting(Predictor):
    def fit(self, train: Cohort, val: Cohort, *, seed: int, progress: bool = False) -> Self:
        rng, inputs = np.random.default_rng(seed), []
        for _ in range(4):  # each subject under four random sets of requests
            asked = rng.random(train.recorded.shape) < rng.random((len(train), 1, 1))
            inputs.append(_inputs(History.of(train, asked)))
        self.n_classes_, labels = train.n_classes, np.tile(train.labels.ravel(), 4)
        self.model_ = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
        self.model_.fit(np.concatenate(inputs)[labels >= 0], labels[labels >= 0])
        return self

    def predict_proba(self, history: History) -> np.ndarray:
        out = np.zeros((*history.acquired.shape[:2], self.n_classes_), dtype=np.float32)
        found = self.model_.predict_proba(_inputs(history))
        out[..., self.model_.classes_] = found.reshape(*out.shape[:2], -1)
        return out


def _inputs(history: History) -> np.ndarray:
    """One row per subject and visit, from what is known at that visit; missing values are NaN."""
    n, length = history.acquired.shape[:2]
    last = history.values.copy()
    for k in range(1, length):
        last[:, k] = np.where(np.isnan(last[:, k]), last[:, k - 1], last[:, k])
    slot = np.broadcast_to(np.arange(length)[:, None], (n, length, 1))
    parts = [last, history.requested, history.context[:, None].repeat(length, axis=1), slot]
    return np.concatenate(parts, axis=2).reshape(n * length, -1)
