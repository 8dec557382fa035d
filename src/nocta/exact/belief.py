"""The Bayes filter: exact label posteriors from what has been acquired.

The belief is a joint distribution over hidden state and running sum. One forward pass over time
gives the posterior of every label from acquisitions up to its own time, and nothing later.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from nocta.exact.task import BoolArray, FiniteTask, FloatArray, IntArray

Impossible = Literal["raise", "ignore"]


def label_posterior(
    task: FiniteTask, values: ArrayLike, acquired: ArrayLike, impossible: Impossible = "raise"
) -> FloatArray:
    """Exact posterior of the label at each time, given acquisitions up to that time, `(n, L, C)`.

    An acquired value that is NaN (unavailable) carries no information. For values that the task
    cannot produce, `impossible` is `"raise"`, or `"ignore"` to treat everything acquired at that
    time as not acquired.

    Example:
        >>> from nocta.exact import synthetic_task
        >>> task = synthetic_task(horizon=2)
        >>> nothing = np.zeros((1, 2, 2), dtype=bool)
        >>> label_posterior(task, np.full((1, 2, 2), np.nan), nothing)[0, 0, :3].round(3).tolist()
        [0.778, 0.111, 0.111]
    """
    observed = np.asarray(values, dtype=np.float64)
    known = np.asarray(acquired, dtype=bool) & ~np.isnan(observed)
    expected = (task.horizon, task.n_features)
    if observed.ndim != 3 or observed.shape[1:] != expected or known.shape != observed.shape:
        raise ValueError(
            f"values {observed.shape} and acquired {known.shape} must both be "
            f"(n_subjects, {task.horizon}, {task.n_features}) for this task."
        )
    n = len(observed)
    posterior = np.zeros((n, task.horizon, task.n_classes))
    belief = np.zeros((n, task.n_states, task.n_sums))
    for t in range(task.horizon):
        if t == 0:
            belief[:, :, 0] = task.initial
        else:
            belief = np.matmul(task.transition_at(t - 1).T, belief)
        belief = add_increments(task, belief)
        likelihood = observation_likelihood(task, t, observed[:, t], known[:, t])
        belief = _condition(belief, likelihood, t, impossible)
        posterior[:, t] = _label_marginal(task, belief)
    return posterior


def observation_likelihood(
    task: FiniteTask, time: int, values: FloatArray, known: BoolArray
) -> FloatArray:
    """Probability per hidden state, `(n, n_states)`, of the known of values `(n, n_features)`."""
    likelihood = np.ones((len(values), task.n_states))
    for m in range(task.n_features):
        table = task.emission_at(m, time)
        code = value_codes(values[:, m], table.shape[1])
        seen = known[:, m]
        rows = np.where((code >= 0)[:, None], table.T[np.maximum(code, 0)], 0.0)
        likelihood[seen] *= rows[seen]
    return likelihood


def value_codes(values: FloatArray, n_values: int) -> IntArray:
    """Categories of recorded numbers; -1 for a number outside `0 .. n_values - 1`."""
    fits = np.isin(values, np.arange(n_values))
    return np.where(fits, np.where(fits, values, 0.0).astype(np.int64), -1)


def add_increments(task: FiniteTask, belief: FloatArray) -> FloatArray:
    """Move the mass of each state up by its increment along the last axis, the running sum."""
    if task.increments is None:
        return belief
    moved = np.zeros_like(belief)
    for step in np.unique(task.increments):
        rows = task.increments == step
        moved[:, rows, step:] = belief[:, rows, : belief.shape[-1] - step]
    return moved


def _condition(
    belief: FloatArray, likelihood: FloatArray, time: int, impossible: Impossible
) -> FloatArray:
    conditioned = belief * likelihood[:, :, None]
    total = conditioned.sum(axis=(1, 2))
    lost = total <= 0.0
    if lost.any():
        if impossible == "raise":
            raise ValueError(
                f"{lost.sum()} of {len(lost)} subjects have values at time {time} that this task "
                f"cannot produce (the first is subject {int(lost.argmax())}). Check that values "
                "are category numbers and that the task is the right one, or pass "
                "impossible='ignore'."
            )
        conditioned[lost] = belief[lost]
        total = np.where(lost, belief.sum(axis=(1, 2)), total)
    return np.asarray(conditioned / total[:, None, None])


def _label_marginal(task: FiniteTask, belief: FloatArray) -> FloatArray:
    marginal = np.zeros((len(belief), task.n_classes))
    if task.state_labels is None:
        marginal[:, : belief.shape[2]] = belief.sum(axis=1)
        return marginal
    for label in np.unique(task.state_labels):
        marginal[:, label] = belief[:, task.state_labels == label, 0].sum(axis=1)
    return marginal
