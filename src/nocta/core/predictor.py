"""The predictor contract: labels at every time from what has been acquired up to that time."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from nocta.core.history import History


class Predictor(ABC):
    """Class probabilities at every time point, causally (`ŷ_k(x_{o_{1:k}})`).

    The prediction at slot `k` uses acquisitions at slots `<= k` only.
    `nocta.testing.check_predictor` verifies it: changing later acquisitions must leave earlier
    predictions identical to the bit.
    """

    n_classes_: int

    @abstractmethod
    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """Class probabilities `(n, L, C)`; row `[:, k]` uses slots `<= k` only."""
