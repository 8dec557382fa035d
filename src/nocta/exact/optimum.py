"""The best that any acquisition policy can do: dynamic programming on the belief graph.

The reward is the expected number of correct labels (or minus the cross-entropy) less the cost
weight times the cost. Solving for many cost weights gives the whole trade-off, the frontier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nocta.core.progress import progress_bar
from nocta.exact.build import build_graph
from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.graph import BeliefGraph, Level, Loss
from nocta.exact.policy import GraphPolicy
from nocta.exact.task import FiniteTask, FloatArray

# A tiny extra cost breaks ties: among actions worth the same, the cheapest is taken.
_TIE = 1e-9


def optimal_policy(graph: BeliefGraph, cost_weight: float, loss: Loss = "error") -> GraphPolicy:
    """The policy with the greatest expected reward less weighted cost.

    `"error"` rewards correct labels, `"cross-entropy"` their log probability.

    Example:
        >>> from nocta.exact import synthetic_task
        >>> graph = build_graph(synthetic_task(horizon=4))
        >>> optimal_policy(graph, cost_weight=0.0).evaluate().accuracy
        1.0
    """
    actions = []
    value: FloatArray | None = None
    for level in reversed(graph.levels):
        quality = level.reward(loss) - (cost_weight + _TIE) * level.costs
        if value is not None:
            quality += level.expect(value)
        best = quality.argmax(axis=1)
        value = quality[np.arange(level.n_nodes), best]
        actions.append(best.astype(np.int32))
    return GraphPolicy(graph, tuple(actions[::-1]))


def optimal_values(
    graph: BeliefGraph, cost_weight: float, loss: Loss = "error", n_rounds: int | None = None
) -> list[FloatArray]:
    """The optimal value of every belief (`V_t^s`), per level `(n_nodes,)`.

    `n_rounds` limits the number of times with an acquisition (`s`).
    """
    limit = len(graph.levels) if n_rounds is None else n_rounds
    out: list[FloatArray] = []
    value = np.zeros((0, limit + 1))  # (n_nodes, rounds left)
    for level in reversed(graph.levels):
        value = _bellman(level, value if out else None, cost_weight, loss, limit)
        out.append(value)
    return [v[:, limit] for v in out[::-1]]


def _bellman(
    level: Level, following: FloatArray | None, cost_weight: float, loss: Loss, limit: int
) -> FloatArray:
    """Values `(n_nodes, limit + 1)` of a level by rounds left."""
    now = level.reward(loss) - cost_weight * level.costs
    quality = np.repeat(now[:, :, None], limit + 1, axis=2)
    if following is not None:
        quality[:, 0] += level.expect(following)[:, 0]
        quality[:, 1:, 1:] += level.expect(following[:, :-1])[:, 1:]
    quality[:, 1:, 0] = -np.inf
    return np.asarray(quality.max(axis=1))


def accuracy_at(frontier: ExactCurve, cost: ArrayLike) -> FloatArray:
    """The greatest accuracy at a mean cost; constant beyond the last vertex."""
    return np.asarray(np.interp(np.asarray(cost), frontier.cost, frontier.accuracy))


def optimal_frontier(
    task: FiniteTask | BeliefGraph,
    tolerance: float = 1e-5,
    progress: bool = False,
    loss: Loss = "error",
) -> ExactCurve:
    """All vertices of the frontier, by recursive bisection of the cost weight.

    Two neighboring vertices define a cost weight, the slope between them. The optimal policy for it
    is either a new vertex between them, or proof that there is none. Vertices that would change the
    accuracy (for `loss="cross-entropy"`, the cross-entropy) by less than `tolerance` are left out.

    Example:
        >>> from nocta.exact import synthetic_task
        >>> frontier = optimal_frontier(synthetic_task(horizon=2))
        >>> [(round(p.cost, 3), round(p.accuracy, 3)) for p in frontier]
        [(0.0, 0.654), (2.333, 0.963), (3.0, 1.0)]
    """
    graph = task if isinstance(task, BeliefGraph) else build_graph(task, progress=progress)
    horizon = len(graph.levels)

    def solve(cost_weight: float) -> CurvePoint:
        return CurvePoint(cost_weight, *optimal_policy(graph, cost_weight, loss).evaluate())

    def quality(point: CurvePoint) -> float:
        return point.accuracy if loss == "error" else -point.cross_entropy

    low, high = solve(_prohibitive_weight(graph, loss)), solve(0.0)
    vertices = [low, high]
    waiting = [(low, high)]
    with progress_bar(desc="frontier", unit=" cost weights", show=progress) as bar:
        while waiting:
            left, right = waiting.pop()
            slope = (quality(right) - quality(left)) / max(right.cost - left.cost, 1e-12)
            if slope <= 0:
                continue
            point = solve(slope * horizon)
            bar.update()
            if quality(point) - quality(left) - slope * (point.cost - left.cost) > tolerance:
                vertices.append(point)
                waiting += [(point, right), (left, point)]
    return ExactCurve.of(set(vertices), loss, "optimum")


def _prohibitive_weight(graph: BeliefGraph, loss: Loss) -> float:
    """A cost weight at which no acquisition pays."""
    costs = np.concatenate([level.costs for level in graph.levels])
    cheapest = costs[costs > 0].min(initial=np.inf)
    most = 1.0 if loss == "error" else max(1.0, float(np.log(graph.task.n_classes)))
    return 2.0 * most * len(graph.levels) / float(cheapest) if np.isfinite(cheapest) else 1.0
