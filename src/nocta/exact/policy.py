"""Policies on the belief graph: one action per belief, followed step by step and valued exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.exact.belief import Impossible, label_posterior, value_codes
from nocta.exact.graph import BeliefGraph, Level, Loss
from nocta.exact.task import BoolArray, FloatArray, IntArray


class Performance(NamedTuple):
    """What a policy is expected to cost and achieve."""

    cost: float  # mean of one subject
    accuracy: float  # share of correct labels, over all times
    cross_entropy: float  # mean per time, in nats, of the exact posterior


@dataclass(frozen=True, eq=False)
class GraphPolicy:
    """Which features to acquire at each reachable belief.

    Deciding slot by slot is the same as deciding, after each acquisition, when the next one will
    be, because nothing is learned in between.
    """

    graph: BeliefGraph
    actions: tuple[NDArray[np.int32], ...]  # per level, (n_nodes,) bit masks of features

    def evaluate(self) -> Performance:
        """Exact expected cost and quality, from the beliefs the policy visits."""
        cost = correct = score = 0.0
        nodes, weight = np.zeros(1, dtype=np.int64), np.ones(1)
        for level, actions in zip(self.graph.levels, self.actions, strict=True):
            action = actions[nodes]
            cost += float(weight @ level.costs[action])
            correct += float(weight @ level.correct[nodes, action])
            score += float(weight @ level.log_score[nodes, action])
            nodes, weight = _spread(level, nodes * level.n_actions + action, weight)
        horizon = len(self.graph.levels)
        return Performance(cost, correct / horizon, 0.0 - score / horizon)

    def values(self, cost_weight: float, loss: Loss) -> list[FloatArray]:
        """Expected reward-to-go less weighted cost at every belief, per level `(n_nodes,)`."""
        following: FloatArray | None = None
        out: list[FloatArray] = []
        for level, action in zip(self.graph.levels[::-1], self.actions[::-1], strict=True):
            nodes = np.arange(level.n_nodes)
            value = level.reward(loss)[nodes, action] - cost_weight * level.costs[action]
            if following is not None:
                rows = nodes * level.n_actions + action
                value = value + level.transitions[rows] @ following
            following = value
            out.append(value)
        return out[::-1]

    def next_acquisitions(
        self,
        values: ArrayLike,
        acquired: ArrayLike,
        after: int | IntArray,
        impossible: Impossible = "raise",
    ) -> tuple[IntArray, BoolArray]:
        """The next acquisition of each subject.

        Only what was acquired up to `after` is read; -1 is before the first time. For values that
        the task cannot produce, see `label_posterior`.

        Returns:
            Times `(n_subjects,)`, all greater than `after`, the horizon meaning stop; and features
            `(n_subjects, n_features)`, all false if stopped.
        """
        observed = np.asarray(values, dtype=np.float64)
        known = np.asarray(acquired, dtype=bool) & ~np.isnan(observed)
        n, horizon, n_features = observed.shape
        now = np.broadcast_to(np.asarray(after), (n,))
        node = np.zeros(n, dtype=np.int64)
        times = np.full(n, horizon)
        chosen = np.zeros(n, dtype=np.int64)
        for t, level in enumerate(self.graph.levels):
            action = self.actions[t][node]
            decides = (t > now) & (times == horizon) & (action != 0)
            times[decides], chosen[decides] = t, action[decides]
            if t + 1 < horizon:
                seen = known[:, t] & (t <= now)[:, None]
                node = self._follow(t, level, node, observed[:, t], seen, impossible)
        return times, (chosen[:, None] >> np.arange(n_features)) % 2 == 1

    def acquired_of(self, values: ArrayLike) -> BoolArray:
        """What the policy acquires of subjects with these values, both `(n, L, n_features)`."""
        observed = np.asarray(values, dtype=np.float64)
        bits = np.arange(self.graph.task.n_features)
        acquired = np.zeros(observed.shape, dtype=bool)
        node = np.zeros(len(observed), dtype=np.int64)
        for t, level in enumerate(self.graph.levels):
            acquired[:, t] = (self.actions[t][node][:, None] >> bits) % 2 == 1
            if t + 1 < len(self.graph.levels):
                node = self._follow(t, level, node, observed[:, t], acquired[:, t], "raise")
        return acquired

    def measure(self, values: ArrayLike, labels: IntArray) -> Performance:
        """Mean cost and quality of the exact posterior over these subjects.

        Args:
            values: `(n, L, n_features)`, all recorded.
            labels: `(n, L)`.
        """
        task, acquired = self.graph.task, self.acquired_of(values)
        posterior = label_posterior(task, values, acquired)
        stated = np.take_along_axis(posterior, labels[:, :, None], axis=2)
        return Performance(
            cost=float((acquired * task.cost_table()).sum(axis=(1, 2)).mean()),
            accuracy=float((posterior.argmax(axis=2) == labels).mean()),
            cross_entropy=float(0.0 - np.log(stated).mean()),
        )

    def next_acquisition(
        self, values: ArrayLike, acquired: ArrayLike, after: int
    ) -> tuple[int, tuple[int, ...]] | None:
        """The next acquisition of one subject: time and feature indices, or `None` to stop.

        Example:
            >>> from nocta.exact import build_graph, optimal_policy, synthetic_task
            >>> policy = optimal_policy(build_graph(synthetic_task(horizon=4)), cost_weight=0.1)
            >>> values, acquired = np.full((4, 2), np.nan), np.zeros((4, 2), dtype=bool)
            >>> policy.next_acquisition(values, acquired, after=-1)
            (0, (0, 1))
            >>> values[0], acquired[0] = (1, 2), True
            >>> policy.next_acquisition(values, acquired, after=0)
            (2, (0,))
        """
        observed, known = np.asarray(values, dtype=np.float64), np.asarray(acquired, dtype=bool)
        times, features = self.next_acquisitions(observed[None], known[None], after)
        if times[0] == len(self.graph.levels):
            return None
        return int(times[0]), tuple(int(m) for m in np.flatnonzero(features[0]))

    def _follow(
        self,
        t: int,
        level: Level,
        node: IntArray,
        values: FloatArray,
        seen: BoolArray,
        impossible: Impossible,
    ) -> IntArray:
        """The next belief of each subject, `(n_subjects,)`, after what was seen at `t`."""
        task = self.graph.task
        action, outcome = np.zeros_like(node), np.zeros_like(node)
        radix, fits = np.ones_like(node), np.ones(len(node), dtype=bool)
        for m in range(task.n_features):
            n_values = task.emission_at(m, t).shape[1]
            code = value_codes(values[:, m], n_values)
            fits &= ~seen[:, m] | (code >= 0)
            action += seen[:, m] * (1 << m)
            outcome += np.where(seen[:, m], code * radix, 0)
            radix = np.where(seen[:, m], radix * n_values, radix)
        edge = _find_edge(level, node * level.n_actions + action, np.where(fits, outcome, -1))
        lost = edge < 0
        if lost.any():
            if impossible == "raise":
                raise ValueError(
                    f"{lost.sum()} of {len(lost)} subjects have values at time {t} that this task "
                    f"cannot produce (the first is subject {int(lost.argmax())})."
                )
            # Acquiring nothing has one outcome, so its edge is where the row starts.
            edge = np.where(lost, level.starts[node * level.n_actions], edge)
        return level.child[edge].astype(np.int64)


def constant_policy(graph: BeliefGraph, plan: Sequence[int]) -> GraphPolicy:
    """The policy that follows one fixed plan: per time, the bit mask of what to acquire."""
    pairs = zip(graph.levels, plan, strict=True)
    return GraphPolicy(graph, tuple(np.full(level.n_nodes, a, np.int32) for level, a in pairs))


def _find_edge(level: Level, row: IntArray, outcome: IntArray) -> IntArray:
    """Index of the edge of each row with that outcome; -1 if there is none."""
    begin, end = level.starts[row], level.starts[row + 1]
    found = np.full(len(row), -1)
    for step in range(int((end - begin).max(initial=0))):
        edge = np.minimum(begin + step, end - 1)
        found = np.where(level.outcome[edge] == outcome, edge, found)
    return found


def _spread(level: Level, rows: IntArray, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    """Carry probability from rows (node and action) to the nodes of the next level."""
    if not len(level.child):
        return np.empty(0, dtype=np.int64), np.empty(0)
    out = level.transitions[rows]
    nodes, inverse = np.unique(out.indices, return_inverse=True)
    mass = np.repeat(weight, np.diff(out.indptr)) * out.data
    total = np.bincount(inverse, mass, minlength=len(nodes))
    return nodes.astype(np.int64), np.asarray(total, dtype=np.float64)
