"""Predictors that never judge a subject they were trained on, and together predict for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.history import History
from nocta.core.predictor import Predictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.neural import NeuralPredictor, arrays_under
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor

KINDS: dict[str, type[NeuralPredictor]] = {
    "recurrent": RecurrentPredictor,
    "mlp": MLPPredictor,
    "summary": SummaryPredictor,
    "mixed": MixedPredictor,
}


class CrossFittedPredictor(Predictor):
    """One network, or one per fold whose probabilities are averaged for new subjects.

    Args:
        members: Fitted networks.
        fold: `(n_train,)` which member never saw each training subject; with a single member
            there is none, and its losses on training subjects are its own.
        expected: Whether the members are calibrated well enough to judge themselves.
    """

    def __init__(
        self, members: Sequence[NeuralPredictor], fold: NDArray[np.int64], expected: bool = True
    ) -> None:
        self.members = tuple(members)
        self.fold = fold
        self.expected = expected
        self.n_classes_ = self.members[0].n_classes_

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """Mean of the members' probabilities, `(n, L, C)`; causal as they are."""
        total = np.zeros((), dtype=np.float64)
        for member in self.members:
            total = total + member.predict_proba(history)
        return (total / len(self.members)).astype(np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain configuration and arrays that restore the predictor."""
        states = [member.state() for member in self.members]
        config = {
            "kind": "cross-fitted",
            "expected": self.expected,
            "members": [config for config, _ in states],
        }
        arrays = {"fold": self.fold}
        for i, (_, own) in enumerate(states):
            arrays |= {f"member{i}.{name}": array for name, array in own.items()}
        return config, arrays

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Inverse of `state`."""
        members = []
        for i, own in enumerate(config["members"]):
            members.append(KINDS[own["kind"]].from_state(own, arrays_under(arrays, f"member{i}.")))
        return cls(members, arrays["fold"], config["expected"])


class OutOfFoldPredictor(Predictor):
    """Predicts for the training subjects of a cross-fitted predictor, each by a stranger.

    Args:
        predictor: One member per fold.
        rows: `(n,)` the training subjects, in the order in which histories hold them; a history
            may hold all of them several times over.
    """

    def __init__(self, predictor: CrossFittedPredictor, rows: NDArray[np.int64]) -> None:
        self.members, self.fold = predictor.members, predictor.fold[rows]
        self.n_classes_ = predictor.n_classes_

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """By the member that never saw the subject, `(n, L, C)`."""
        fold = np.tile(self.fold, len(history) // len(self.fold))
        out = np.zeros((*history.values.shape[:2], self.n_classes_), dtype=np.float32)
        for which, member in enumerate(self.members):
            own = np.flatnonzero(fold == which)
            if own.size:
                out[own] = member.predict_proba(history.subset(own))
        return out
