"""The loss of finished predictions, in NumPy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: Loss of a whole trajectory: cross-entropy or errors summed over the labeled visits, or the mean
#: cross-entropy over them.
TrajectoryLoss = Literal["cross-entropy", "error", "mean-cross-entropy"]


def trajectory_losses(
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating[Any]],
    kind: TrajectoryLoss = "cross-entropy",
) -> NDArray[np.float64]:
    """Loss of every subject, from `(n, L)` labels and `(n, L, C)`; zero without a label.

    Example:
        >>> trajectory_losses(np.array([[0, 1, -1]]), np.full((1, 3, 2), 0.5)).round(3)
        array([1.386])
    """
    if kind == "error":
        return np.asarray(((labels >= 0) & (probabilities.argmax(axis=-1) != labels)).sum(axis=1))
    total = np.nansum(pair_losses(labels, probabilities), axis=1)
    n_labels = np.maximum((labels >= 0).sum(axis=1), 1)
    return np.asarray(total if kind == "cross-entropy" else total / n_labels)


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
