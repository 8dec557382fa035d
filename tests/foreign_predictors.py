"""Predictors as somebody else would write them, from the docstring of `nocta.Predictor`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from nocta.core import plugins as plugins_module
from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.predictor import Predictor, State
from nocta.core.random_plans import random_requests


def last_values(history: History) -> NDArray[np.float32]:
    """Last value of every column, which columns are known, slot and context, `(n, L, width)`."""
    n, length, _ = history.values.shape
    last = history.values.copy()
    for k in range(1, length):
        last[:, k] = np.where(np.isnan(last[:, k]), last[:, k - 1], last[:, k])
    slot = np.broadcast_to(np.arange(length)[None, :, None], (n, length, 1))
    context = np.broadcast_to(history.context[:, None], (n, length, history.context.shape[1]))
    return np.concatenate([last, ~np.isnan(last), slot, context], axis=2, dtype=np.float32)


class BoostedPredictor(Predictor):
    """Gradient boosting on last values; it can be fitted and has no `state`."""

    def __init__(self, max_iter: int = 8) -> None:
        self.max_iter = max_iter

    def fit(self, train: Cohort, val: Cohort, *, seed: int, progress: bool = False) -> Self:
        rng, rows, labels = np.random.default_rng(seed), [], []
        for _ in range(3):
            asked = random_requests(len(train), train.catalog.open_slots, rng)
            rows.append(last_values(History.of(train, asked))[train.labeled])
            labels.append(train.labels[train.labeled])
        self.n_classes_ = train.n_classes
        self.subjects_ = set(train.subjects.tolist())
        model = HistGradientBoostingClassifier(max_iter=self.max_iter, random_state=seed)
        self.model_ = model.fit(np.concatenate(rows), np.concatenate(labels))
        return self

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        table = last_values(history)
        out = np.full((*table.shape[:2], self.n_classes_), 1e-6, dtype=np.float32)
        found = self.model_.predict_proba(table.reshape(-1, table.shape[2]))
        out[..., self.model_.classes_] += found.reshape(*table.shape[:2], -1)
        return np.asarray(out / out.sum(axis=2, keepdims=True))


class PrevalencePredictor(Predictor):
    """Class frequencies per slot, shifted by the last known value; it can be fitted and saved."""

    def fit(self, train: Cohort, val: Cohort, *, seed: int, progress: bool = False) -> Self:
        self.n_classes_ = train.n_classes
        counts = [
            np.bincount(train.labels[train.labeled[:, k], k], minlength=train.n_classes) + 1
            for k in range(train.n_times)
        ]
        self.log_frequency_ = np.log(np.stack(counts)).astype(np.float32)
        return self

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        level = np.tanh(np.nan_to_num(last_values(history)[..., :1]))
        odds = np.exp(self.log_frequency_ + level * np.linspace(-1, 1, self.n_classes_))
        return np.asarray(odds / odds.sum(axis=2, keepdims=True), dtype=np.float32)

    def state(self) -> State:
        return {"n_classes": self.n_classes_}, {"log_frequency": self.log_frequency_}

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        out = cls()
        out.n_classes_, out.log_frequency_ = config["n_classes"], arrays["log_frequency"]
        return out


class NeedsArgument(PrevalencePredictor):
    """Cannot be constructed without arguments."""

    def __init__(self, size: int) -> None:
        self.size = size


class WithoutFit(Predictor):
    """Predicts only."""

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        raise NotImplementedError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package were installed that publishes these predictors."""
    points = {
        "boosted": "BoostedPredictor",
        "prevalence": "PrevalencePredictor",
        "sized": "NeedsArgument",
        "fixed": "WithoutFit",
    }
    monkeypatch.setattr(
        plugins_module,
        "entry_points",
        lambda group: (
            [EntryPoint(name, f"foreign_predictors:{kind}", group) for name, kind in points.items()]
            if group == "nocta.predictors"
            else []
        ),
    )
    plugins_module.plugins.cache_clear()
    yield
    plugins_module.plugins.cache_clear()
