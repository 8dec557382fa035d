"""Building the belief graph: expand every belief by every action and outcome, and merge.

Two facts keep the graph small. States with the same row of the transition matrix have the same
future, so a belief is summed over them. A belief whose running sum is shifted has the same future
rewards, so beliefs are stored from their lowest possible sum upward. Expansion is a matrix product
per chunk of beliefs; equal beliefs are found by a key of their rounded numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from nocta.core.progress import progress_bar
from nocta.exact.graph import BeliefGraph, Level
from nocta.exact.task import BoolArray, FiniteTask, FloatArray, IntArray

if TYPE_CHECKING:
    from tqdm import tqdm

# Beliefs are compared after rounding to this many steps per unit of probability.
_GRID = 2.0**36
_CHUNK_FLOATS = 3_000_000

_Number = TypeVar("_Number", np.float64, np.int64)


def build_graph(
    task: FiniteTask, max_beliefs: int = 5_000_000, progress: bool = False
) -> BeliefGraph:
    """Enumerate the reachable beliefs of a task.

    An error is raised, to save memory, beyond `max_beliefs` at one time. The paper's task has 1.8
    million at its last time.

    Example:
        >>> from nocta.exact import synthetic_task
        >>> [level.n_nodes for level in build_graph(synthetic_task(horizon=4)).levels]
        [1, 8, 40, 184]
    """
    beliefs = np.ones((1, 1, 1))  # (n_classes_of_states, n_nodes, n_sums)
    levels: list[Level] = []
    with progress_bar(unit=" beliefs", unit_scale=True, mininterval=1.0, show=progress) as bar:
        for t in range(task.horizon):
            bar.set_description(f"beliefs at time {t + 1} of {task.horizon}")
            level, beliefs = _expand(_Step.of(task, t), beliefs, bar)
            levels.append(level)
            if beliefs.shape[1] > max_beliefs:
                raise ValueError(
                    f"The task has {beliefs.shape[1]} beliefs at time {t + 1}, more than "
                    f"max_beliefs={max_beliefs}. Shorten the horizon, drop features, or raise "
                    "max_beliefs if there is memory for it."
                )
    return BeliefGraph(task, tuple(levels))


@dataclass(frozen=True, eq=False)
class _Step:
    """One time step as linear maps from a belief, `n_outcomes` of them."""

    shifts: IntArray  # the distinct increments
    to_child: FloatArray  # (n_outcomes, n_next_classes, n_shifts, n_classes)
    to_label: FloatArray | None  # (n_outcomes, n_labels, n_classes), without a running sum
    action: IntArray  # (n_outcomes,), ascending
    outcome: NDArray[np.int32]  # (n_outcomes,)
    costs: FloatArray  # (n_actions,)
    is_last: bool

    @classmethod
    def of(cls, task: FiniteTask, t: int) -> _Step:
        rows = task.initial[None] if t == 0 else _classes(task.transition_at(t - 1))[0]
        is_last = t == task.horizon - 1
        same = np.zeros(task.n_states, dtype=np.int64)
        group = same if is_last else _classes(task.transition_at(t))[1]
        action, outcome, likelihood = _outcomes(task, t)
        flow = likelihood[:, :, None] * rows.T[None]  # (n_outcomes, n_states, n_classes)
        steps = np.zeros(task.n_states, np.int64) if task.increments is None else task.increments
        shifts, which = np.unique(steps, return_inverse=True)
        into, by = np.eye(group.max() + 1)[group], np.eye(len(shifts))[which]
        to_child = np.einsum("osc,sg,sd->ogdc", flow, into, by)
        to_label = None
        if task.state_labels is not None:
            shows = np.eye(task.n_classes)[task.state_labels]
            to_label = np.einsum("osc,sy->oyc", flow, shows)
        subsets = [_features(a, task.n_features) for a in range(2**task.n_features)]
        costs = np.array([task.cost_table()[t][subset].sum() for subset in subsets])
        return cls(shifts, to_child, to_label, action, outcome, costs, is_last)

    def children(self, beliefs: FloatArray) -> FloatArray:
        """`(n_outcomes, n_next_classes, n, n_sums)` joint mass of outcome and next belief."""
        n_classes, n, width = beliefs.shape
        o, c = self.to_child.shape[:2]
        flat = self.to_child.reshape(-1, n_classes) @ beliefs.reshape(n_classes, -1)
        parts = flat.reshape(o, c, len(self.shifts), n, width)
        mass = np.zeros((o, c, n, width + int(self.shifts.max())))
        for i, shift in enumerate(self.shifts):
            mass[..., shift : shift + width] += parts[:, :, i]
        return mass


def _expand(step: _Step, beliefs: FloatArray, bar: tqdm[Any]) -> tuple[Level, FloatArray]:
    """The level of `beliefs`, and the beliefs that follow."""
    correct, score, found = [], [], []
    for part in _chunks(step, beliefs):
        children = step.children(part)
        sums = children.sum(axis=1)  # (n_outcomes, n, n_sums)
        labels = sums
        if step.to_label is not None:
            labels = np.moveaxis(np.tensordot(step.to_label, part[..., 0], axes=1), 1, 2)
        total = sums.sum(axis=-1)
        correct.append(_by_action(step, labels.max(axis=-1)))
        score.append(_by_action(step, xlogy(labels, labels).sum(axis=-1) - xlogy(total, total)))
        if not step.is_last:
            found.append(_edges(step, children, sums))
        bar.update(part.shape[1])
    n_rows = beliefs.shape[1] * len(step.costs)
    probability, outcome = np.empty(0), np.empty(0, np.int32)
    child, starts = np.empty(0, np.int32), np.zeros(n_rows + 1, np.int64)
    following = np.empty((1, 0, 1))
    if found:
        probability = np.concatenate([f.probability for f in found])
        outcome = np.concatenate([f.outcome for f in found])
        starts[1:] = np.concatenate([f.counts for f in found]).cumsum()
        child, following = _merge(found, step.to_child.shape[1])
    earned = np.concatenate(correct), np.concatenate(score)
    return Level(*earned, step.costs, probability, child, outcome, starts), following


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges out of one chunk, with the distinct beliefs they lead to."""

    probability: FloatArray
    outcome: NDArray[np.int32]
    counts: IntArray  # edges per (node, action)
    key: NDArray[np.uint64]  # of each distinct belief
    which: IntArray  # distinct belief of each edge
    beliefs: FloatArray  # (n_distinct, n_classes * n_sums)


def _edges(step: _Step, children: FloatArray, sums: FloatArray) -> _Edges:
    probability = sums.sum(axis=-1).T  # (n, n_outcomes)
    possible = probability > 0
    shifted = _from_lowest_sum(children, sums)
    rows = np.moveaxis(shifted, 2, 0)[possible].reshape(int(possible.sum()), -1)
    rows /= probability[possible][:, None]
    key, first, which = np.unique(_keys(rows), return_index=True, return_inverse=True)
    return _Edges(
        probability=probability[possible],
        outcome=np.broadcast_to(step.outcome, possible.shape)[possible],
        counts=_by_action(step, possible.T.astype(np.int64)).ravel(),
        key=key,
        which=which,
        beliefs=rows[first],
    )


def _merge(found: list[_Edges], n_classes: int) -> tuple[NDArray[np.int32], FloatArray]:
    """Number the beliefs of all chunks together, and give the child of each edge."""
    _, first, number = np.unique(
        np.concatenate([f.key for f in found]), return_index=True, return_inverse=True
    )
    offsets = np.cumsum([0] + [len(f.key) for f in found])
    child = np.concatenate(
        [number[lo + f.which].astype(np.int32) for lo, f in zip(offsets[:-1], found, strict=True)]
    )
    merged = np.empty((len(first), found[0].beliefs.shape[1]))
    chunk = np.searchsorted(offsets, first, side="right") - 1
    for i, f in enumerate(found):
        mine = chunk == i
        merged[mine] = f.beliefs[first[mine] - offsets[i]]
    stacked = np.ascontiguousarray(np.moveaxis(merged.reshape(len(first), n_classes, -1), 0, 1))
    return child, stacked


def _keys(rows: FloatArray) -> NDArray[np.uint64]:
    """A 64-bit key per belief; among two million, two share one by chance once in ten million."""
    steps = np.rint(rows * _GRID).astype(np.int64).astype(np.uint64)
    factors = np.random.default_rng(20).integers(1, 2**63, rows.shape[1], dtype=np.uint64)
    return np.asarray((steps * (2 * factors + 1)).sum(axis=1, dtype=np.uint64))


def _from_lowest_sum(children: FloatArray, sums: FloatArray) -> FloatArray:
    """Shift each child belief along its last axis so that its lowest possible sum comes first."""
    lowest = (sums > 0).argmax(axis=-1)  # (n_outcomes, n)
    moved = np.zeros_like(children)
    width = children.shape[-1]
    for shift in np.unique(lowest):
        o, i = np.nonzero(lowest == shift)
        moved[o, :, i, : width - shift] = children[o, :, i, shift:]
    return moved


def _by_action(step: _Step, per_outcome: NDArray[_Number]) -> NDArray[_Number]:
    """Add up `(n_outcomes, n)` over the outcomes of each action: `(n, n_actions)`."""
    starts = np.searchsorted(step.action, np.arange(len(step.costs)))
    return np.ascontiguousarray(np.add.reduceat(per_outcome, starts, axis=0).T)


def _chunks(step: _Step, beliefs: FloatArray) -> Iterator[FloatArray]:
    per_node = step.to_child[..., 0].size * (beliefs.shape[2] + 1)
    size = max(1, _CHUNK_FLOATS // per_node)
    for lo in range(0, beliefs.shape[1], size):
        yield np.ascontiguousarray(beliefs[:, lo : lo + size])


def _classes(transition: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows of a transition matrix, and the row of each state."""
    rows, which = np.unique(transition, axis=0, return_inverse=True)
    return rows, which.reshape(-1)


def _features(action: int, n_features: int) -> BoolArray:
    return np.array([action >> m & 1 for m in range(n_features)], dtype=bool)


def _outcomes(task: FiniteTask, t: int) -> tuple[IntArray, NDArray[np.int32], FloatArray]:
    """Action, number and `(n_outcomes, n_states)` likelihood of everything that can be seen."""
    actions: list[int] = []
    numbers: list[int] = []
    likelihoods: list[FloatArray] = []
    for action in range(2**task.n_features):
        features = np.flatnonzero(_features(action, task.n_features))
        tables = [task.emission_at(int(m), t) for m in features]
        for values in product(*(range(table.shape[1]) for table in tables)):
            number, radix = 0, 1
            likelihood = np.ones(task.n_states)
            for value, table in zip(values, tables, strict=True):
                number += value * radix
                radix *= table.shape[1]
                likelihood = likelihood * table[:, value]
            actions.append(action)
            numbers.append(number)
            likelihoods.append(likelihood)
    return np.array(actions), np.array(numbers, dtype=np.int32), np.array(likelihoods)
