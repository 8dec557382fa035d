"""The exact NOCT policy, replanned after each acquisition, over all cost weights that matter.

NOCT is an open-loop value, so its policies need not lie on a frontier: a smaller cost weight may
give a policy that costs more and predicts no better. All of them are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from nocta.exact.build import build_graph
from nocta.exact.curve import CurvePoint, ExactCurve
from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.noct import noct_policies, plan_tables
from nocta.exact.task import FiniteTask, FloatArray

#: The first cost weights tried, spread from the largest that acquires anything to a 500th of it.
N_FIRST, SMALLEST = 24, 1 / 500
#: Cost weights are added between two policies whose costs differ by more than this share.
RESOLUTION = 0.03
#: Two cost weights closer than this factor are taken as one.
_CLOSEST = 1.002


def noct_curve(
    task: FiniteTask | BeliefGraph, loss: Loss = "error", *, n_rounds: int = 4
) -> ExactCurve:
    """Cost and quality of the exact NOCT policies of a task, over all cost weights that matter.

    A grid of cost weights comes first. Each round then adds one between all neighbors that still
    differ much in cost. One point is kept per distinct policy, with the largest cost weight.

    Example:
        >>> from nocta.exact import synthetic_task
        >>> curve = noct_curve(synthetic_task(horizon=3))
        >>> curve.cost[0], curve.accuracy[-1].round(3)
        (np.float64(0.0), np.float64(1.0))
    """
    graph = task if isinstance(task, BeliefGraph) else build_graph(task)
    top = _largest_weight(graph, loss)
    if top <= 0:  # nothing is ever worth its cost
        return ExactCurve.of(_solve(graph, [1.0], loss), loss, "noct")
    grid = np.append(np.geomspace(1.02 * top, SMALLEST * top, N_FIRST), 0.0)
    found = {p.cost_weight: p for p in _solve(graph, grid, loss)}
    for _ in range(n_rounds):
        between = _between(sorted(found.values()), top)
        if not between:
            break
        found |= {p.cost_weight: p for p in _solve(graph, between, loss)}
    distinct: dict[tuple[float, ...], CurvePoint] = {}
    for point in sorted(found.values(), reverse=True):
        distinct.setdefault(tuple(round(value, 9) for value in point[1:]), point)
    return ExactCurve.of(distinct.values(), loss, "noct")


def _largest_weight(graph: BeliefGraph, loss: Loss) -> float:
    """Above this cost weight the best plan from the start is to acquire nothing."""
    *_, root = plan_tables(graph, loss)
    paid = root.costs > 0
    gains: FloatArray = (root.rewards[0, paid] - root.rewards[0, 0]) / root.costs[paid]
    return float(gains.max(initial=0.0))


def _solve(graph: BeliefGraph, weights: Iterable[float], loss: Loss) -> list[CurvePoint]:
    chosen = [float(weight) for weight in weights]
    policies = noct_policies(graph, chosen, loss)
    return [CurvePoint(w, *p.evaluate()) for w, p in zip(chosen, policies, strict=True)]


def _between(points: list[CurvePoint], top: float) -> list[float]:
    """A cost weight between each two neighbors whose costs differ much; points by weight."""
    far = RESOLUTION * max(point.cost for point in points)
    least = 1e-3 * SMALLEST * top
    return [
        float(np.sqrt(max(low.cost_weight, least) * high.cost_weight))
        for low, high in pairwise(points)
        if abs(low.cost - high.cost) > far
        and high.cost_weight > _CLOSEST * max(low.cost_weight, least)
    ]
