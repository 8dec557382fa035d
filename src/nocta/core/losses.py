"""The loss of finished predictions, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pair_losses(
    labels: NDArray[np.int64], probabilities: NDArray[np.floating[Any]]
) -> NDArray[np.float64]:
    """Cross-entropy of every pair, from `(...)` labels and `(..., C)`; NaN without a label."""
    normal = normalized(probabilities)
    chosen = np.take_along_axis(normal, np.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    losses = -np.log(np.maximum(chosen, np.finfo(float).eps))
    return np.where(labels >= 0, losses, np.nan)


def normalized(probabilities: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """In double precision, divided by the sum over classes."""
    exact = probabilities.astype(float)
    return np.asarray(exact / exact.sum(axis=-1, keepdims=True))
