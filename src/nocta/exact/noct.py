"""The exact NOCT policy: follow the best open-loop plan under the true conditional, and replan.

The search over plans is exhaustive. What a plan earns from a belief is linear in the belief graph,
so the plans from level `t` on are valued at all beliefs of the level at once, from the values of
their remainders one level later. Loss and cost stay apart, so one pass serves every cost weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.policy import GraphPolicy, constant_policy
from nocta.exact.task import FloatArray, IntArray

_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class PlanTable:
    """What every open-loop plan earns from every belief of one level."""

    level: int  # the time the plans begin
    plans: NDArray[np.int16]  # (n_plans, n_times - level) bit masks; plan 0 acquires nothing
    rewards: FloatArray  # (n_nodes, n_plans) expected reward-to-go before costs
    costs: FloatArray  # (n_plans,)

    @property
    def rounds(self) -> IntArray:
        """`(n_plans,)` number of times with an acquisition."""
        return np.asarray(np.count_nonzero(self.plans, axis=1), dtype=np.int64)

    def best(self, cost_weight: float, n_rounds: int | None = None) -> IntArray:
        """`(n_nodes,)` best plan at each belief (`u`), the cheapest of those worth the same."""
        price = (cost_weight + _TIE) * self.costs
        if n_rounds is not None:
            price = np.where(self.rounds > n_rounds, np.inf, price)
        return np.asarray((self.rewards - price).argmax(axis=1))

    def values(self, cost_weight: float, n_rounds: int | None = None) -> FloatArray:
        """`(n_nodes,)` minus NOCT of the best plan at each belief."""
        best = self.best(cost_weight, n_rounds)
        nodes = np.arange(len(self.rewards))
        return np.asarray(self.rewards[nodes, best] - cost_weight * self.costs[best])


def plan_tables(
    graph: BeliefGraph, loss: Loss = "error", prune: bool = True, max_entries: int = 100_000_000
) -> Iterator[PlanTable]:
    """Value every plan at every belief: one table per level, from the last to the first.

    `prune` drops a plan that earns the same as a cheaper one at every belief (as plans with useless
    features do). The best plan is never lost; the best in few rounds may be. An error is raised, to
    save memory, beyond `max_entries` values in a table.
    """
    table: PlanTable | None = None
    for t in range(len(graph.levels) - 1, -1, -1):
        level = graph.levels[t]
        actions = np.arange(level.n_actions, dtype=np.int16)
        n_plans = level.n_actions * (1 if table is None else len(table.plans))
        if level.n_nodes * n_plans > max_entries:
            raise ValueError(
                f"There are {n_plans} plans from {level.n_nodes} beliefs at time {t}: too many to "
                f"try them all (max_entries={max_entries}). Shorten the horizon or drop features."
            )
        if table is None:
            table = PlanTable(t, actions[:, None], level.reward(loss), level.costs)
        else:
            rewards = level.reward(loss)[:, :, None] + level.expect(table.rewards)
            first = np.repeat(actions, len(table.plans))[:, None]
            table = PlanTable(
                level=t,
                plans=np.hstack([first, np.tile(table.plans, (level.n_actions, 1))]),
                rewards=rewards.reshape(level.n_nodes, n_plans),
                costs=(level.costs[:, None] + table.costs).ravel(),
            )
        if prune:
            table = _without_duplicates(table)
        yield table


def noct_policies(
    graph: BeliefGraph, cost_weights: Sequence[float], loss: Loss = "error", replan: bool = True
) -> list[GraphPolicy]:
    """The exact NOCT policy at several cost weights (`alpha`, in correct labels or nats).

    With `replan`, plans are searched again after each acquisition (Algorithm 1).

    Example:
        >>> from nocta.exact import build_graph, synthetic_task
        >>> graph = build_graph(synthetic_task(horizon=4))
        >>> dynamic, = noct_policies(graph, [0.4])
        >>> committed, = noct_policies(graph, [0.4], replan=False)
        >>> dynamic.values(0.4, "error")[0] >= committed.values(0.4, "error")[0]
        array([ True])
    """
    actions: list[list[NDArray[np.int32]]] = [[] for _ in cost_weights]
    for table in plan_tables(graph, loss):
        for weight, collected in zip(cost_weights, actions, strict=True):
            collected.append(table.plans[table.best(weight), 0].astype(np.int32))
    if replan:
        return [GraphPolicy(graph, tuple(collected[::-1])) for collected in actions]
    return [constant_policy(graph, table.plans[table.best(w)[0]].tolist()) for w in cost_weights]


def _without_duplicates(table: PlanTable) -> PlanTable:
    """Keep the cheapest of the plans that earn the same everywhere."""
    order = np.argsort(table.costs, kind="stable")
    weights = np.random.default_rng(21).random(len(table.rewards))
    probe = (weights / weights.sum()) @ table.rewards  # (n_plans,)
    _, first, group = np.unique(np.round(probe[order], 10), return_index=True, return_inverse=True)
    twin = np.empty_like(order)
    twin[order] = order[first[group]]  # the cheapest plan with the same probe
    doubtful = np.flatnonzero(twin != np.arange(len(twin)))
    gap = np.abs(table.rewards[:, doubtful] - table.rewards[:, twin[doubtful]]).max(axis=0)
    keep = np.ones(len(twin), dtype=bool)
    keep[doubtful[gap < 1e-10]] = False
    if keep.all():
        return table
    rewards = np.ascontiguousarray(table.rewards[:, keep])
    return PlanTable(table.level, table.plans[keep], rewards, table.costs[keep])
