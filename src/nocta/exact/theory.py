"""The paper's two claims, checked exactly: Theorem 3.1 and Proposition 3.2.

Theorem 3.1: minus NOCT never exceeds the optimal value, at any belief and for any number of rounds.
Proposition 3.2: replanning after each acquisition is never worse than committing to the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.noct import plan_tables
from nocta.exact.optimum import optimal_values
from nocta.exact.policy import GraphPolicy
from nocta.exact.task import FiniteTask, FloatArray


@dataclass(frozen=True)
class TheoryCheck:
    """Gaps of both inequalities on one task; a negative smallest gap would refute them."""

    n_beliefs: int
    n_comparisons: int  # beliefs times numbers of rounds, for the theorem
    bound_smallest: float  # of optimal value less minus-NOCT (Theorem 3.1)
    bound_largest: float  # positive means that the bound is strict somewhere
    replanning_smallest: float  # gain of replanning over committing (Proposition 3.2)
    replanning_largest: float

    def holds(self, tolerance: float = 1e-9) -> bool:
        """Whether both inequalities hold up to rounding."""
        return min(self.bound_smallest, self.replanning_smallest) >= -tolerance


def check_theory(
    graph: BeliefGraph, cost_weight: float, loss: Loss = "cross-entropy"
) -> TheoryCheck:
    """Check both claims at every reachable belief of a task; they hold for both losses.

    Example:
        >>> from nocta.exact import build_graph
        >>> check = check_theory(build_graph(replanning_pays_task()), 1.0, "error")
        >>> check.holds(), round(check.replanning_largest, 3)
        (True, 0.1)
    """
    bound = np.concatenate([np.concatenate(g) for g in lower_bound_gaps(graph, cost_weight, loss)])
    replanning = np.concatenate(replanning_gaps(graph, cost_weight, loss))
    return TheoryCheck(
        n_beliefs=graph.n_beliefs,
        n_comparisons=len(bound),
        bound_smallest=float(bound.min()),
        bound_largest=float(bound.max()),
        replanning_smallest=float(replanning.min()),
        replanning_largest=float(replanning.max()),
    )


def lower_bound_gaps(graph: BeliefGraph, cost_weight: float, loss: Loss) -> list[list[FloatArray]]:
    """Optimal value less minus-NOCT, `V_t^s - NOCT-MAX_t^s`, for `s = 0 .. n_times`.

    Per number of rounds, per level, `(n_nodes,)`.
    """
    limits = range(len(graph.levels) + 1)
    noct: list[list[FloatArray]] = [[] for _ in limits]
    for table in plan_tables(graph, loss, prune=False):
        for s in limits:
            noct[s].append(table.values(cost_weight, n_rounds=s))
    optimal = [optimal_values(graph, cost_weight, loss, n_rounds=s) for s in limits]
    return [[v - bound for v, bound in zip(optimal[s], noct[s][::-1], strict=True)] for s in limits]


def replanning_gaps(graph: BeliefGraph, cost_weight: float, loss: Loss) -> list[FloatArray]:
    """What replanning earns beyond the best plan, `NOCT(u) - R`, per level `(n_nodes,)`."""
    committed, actions = [], []
    for table in plan_tables(graph, loss):
        committed.append(table.values(cost_weight))
        actions.append(table.plans[table.best(cost_weight), 0].astype(np.int32))
    replanned = GraphPolicy(graph, tuple(actions[::-1])).values(cost_weight, loss)
    return [r - c for r, c in zip(replanned, committed[::-1], strict=True)]


def planning_is_not_enough_task() -> FiniteTask:
    """A task in which minus NOCT is strictly below the optimal value, even with replanning.

    Half of the subjects need the expensive test at the second time, and a cheap test at the first
    time tells which half. A fixed plan cannot use that, so it never acquires the cheap test.
    """
    return FiniteTask(
        initial=np.array([0.5, 0.25, 0.25]),  # safe; at risk and well; at risk and ill
        transition=np.eye(3),
        emissions=(np.eye(2)[[0, 1, 1]], np.eye(2)[[0, 0, 1]]),
        costs=np.array([[0.01, 10.0], [0.01, 0.2]]),
        horizon=2,
        n_classes=2,
        state_labels=np.array([0, 0, 1]),
        feature_names=("risk", "illness"),
    )


def replanning_pays_task() -> FiniteTask:
    """A task in which replanning is strictly better than committing.

    The first label decides whether the second is certain or a coin toss. The best plan acquires
    both; after seeing the first, replanning drops the second if it is certain.
    """
    return FiniteTask(
        initial=np.array([0.5, 0.5, 0, 0]),
        transition=np.array([[0, 0, 1, 0], [0, 0, 0.5, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]),
        emissions=(np.eye(2)[[0, 1, 0, 1]],),
        costs=np.array([[0.1], [0.2]]),
        horizon=2,
        n_classes=2,
        state_labels=np.array([0, 1, 0, 1]),
    )


def random_task(
    rng: np.random.Generator,
    n_states: int = 3,
    n_features: int = 2,
    n_values: int = 2,
    horizon: int = 3,
    additive: bool = True,
) -> FiniteTask:
    """A small task with random tables and time-varying costs up to 1, for checks over many tasks.

    The label is a running sum of 0 and 1 if `additive`, otherwise a function of the state.
    """
    rule = rng.integers(0, 2, n_states)
    return FiniteTask(
        initial=rng.dirichlet(np.ones(n_states)),
        transition=rng.dirichlet(np.full(n_states, 0.5), n_states),
        emissions=tuple(rng.dirichlet(np.full(n_values, 0.5), (n_features, n_states))),
        costs=rng.random((horizon, n_features)),
        horizon=horizon,
        n_classes=horizon + 1 if additive else 2,
        increments=rule if additive else None,
        state_labels=None if additive else rule,
    )
