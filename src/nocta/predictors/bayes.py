"""The exact Bayes filter as a predictor: the best possible one on a finite task."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.core.history import History
from nocta.core.predictor import Predictor, State
from nocta.exact.belief import label_posterior
from nocta.exact.task import FiniteTask


class BayesPredictor(Predictor):
    """Exact label posteriors under a known task; nothing to fit.

    Values that the task cannot produce are treated as not acquired.

    Example:
        >>> from nocta.exact.task import synthetic_task
        >>> from nocta.testing import tiny_counter_cohort
        >>> cohort = tiny_counter_cohort(6)
        >>> everything = History.of(cohort, np.ones_like(cohort.recorded))
        >>> predicted = BayesPredictor(synthetic_task(horizon=4)).predict_proba(everything)
        >>> bool((predicted.argmax(axis=2) == cohort.labels).all())
        True
    """

    kind = "bayes"
    is_calibrated = True

    def __init__(self, task: FiniteTask) -> None:
        self.task = task
        self.n_classes_ = task.n_classes

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        expected = (self.task.horizon, self.task.n_features)
        if history.values.shape[1:] != expected or history.acquired.shape[1:] != expected:
            raise DataError(
                f"The history has {history.values.shape[1:]} times and columns; the task of this "
                f"Bayes filter has {expected}, one column per feature."
            )
        posterior = label_posterior(
            self.task, history.values, history.acquired, impossible="ignore"
        )
        return posterior.astype(np.float32)

    def state(self) -> State:
        task = vars(self.task)
        arrays = {k: v for k, v in task.items() if isinstance(v, np.ndarray)}
        arrays |= {f"emissions.{m}": table for m, table in enumerate(self.task.emissions)}
        plain = {k: task[k] for k in ("horizon", "n_classes", "feature_names")}
        return {"kind": self.kind, **plain}, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        names = tuple(config["feature_names"])
        given: dict[str, Any] = {k: v for k, v in arrays.items() if "." not in k}
        emissions = tuple(arrays[f"emissions.{m}"] for m in range(len(names)))
        shape = {"horizon": config["horizon"], "n_classes": config["n_classes"]}
        task = FiniteTask(**given, **shape, emissions=emissions, feature_names=names)
        out = cls.__new__(cls)
        BayesPredictor.__init__(out, task)  # a subclass may have other arguments
        return out
