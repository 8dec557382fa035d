"""The yardstick of a task: the exact optimum and exact NOCT, for error and for cross-entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from nocta.core.progress import progress_bar
from nocta.exact.build import build_graph
from nocta.exact.curve import CurvePoint, ExactCurve, ExactPolicy
from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.noct import noct_policies
from nocta.exact.noct_curve import noct_curve
from nocta.exact.optimum import optimal_frontier, optimal_policy
from nocta.exact.task import FiniteTask, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Yardstick:
    """The exact curves of one task; those of NOCT may be missing.

    Example:
        >>> from nocta.exact import family_member
        >>> found = solve_yardstick(family_member("late-starts").task)
        >>> [found.curve(policy, "error").cost[-1].round(2) for policy in ("optimum", "noct")]
        [np.float64(3.73), np.float64(5.02)]
    """

    curves: tuple[ExactCurve, ...]

    def find(self, policy: ExactPolicy, loss: Loss) -> ExactCurve | None:
        """A curve, if it is known."""
        mine = (c for c in self.curves if (c.policy, c.loss) == (policy, loss))
        return next(mine, None)

    def curve(self, policy: ExactPolicy, loss: Loss) -> ExactCurve:
        """A curve that has to be known."""
        found = self.find(policy, loss)
        if found is None:
            raise ValueError(f"This yardstick has no curve of '{policy}' for '{loss}'.")
        return found

    @property
    def optimum(self) -> ExactCurve:
        """The greatest accuracy at each cost."""
        return self.curve("optimum", "error")


def yardstick_on(
    yardstick: Yardstick, task: FiniteTask | BeliefGraph, values: FloatArray, labels: IntArray
) -> Yardstick:
    """The same policies measured on some subjects of the task instead of in expectation.

    A method is best compared with the optimum on the subjects that it was measured on: both then
    have the same luck with them.

    Args:
        yardstick: The curves of the task; their cost weights name the policies.
        task: The task.
        values: `(n, L, n_features)`, all recorded.
        labels: `(n, L)`.
    """
    graph = task if isinstance(task, BeliefGraph) else build_graph(task)
    curves = []
    for curve in yardstick.curves:
        weights = [float(weight) for weight in curve.cost_weight]
        if curve.policy == "optimum":
            policies = [optimal_policy(graph, weight, curve.loss) for weight in weights]
        else:
            policies = noct_policies(graph, weights, curve.loss)
        points = [
            CurvePoint(weight, *policy.measure(values, labels))
            for weight, policy in zip(weights, policies, strict=True)
        ]
        curves.append(ExactCurve.of(points, curve.loss, curve.policy))
    return Yardstick(tuple(curves))


def solve_yardstick(
    task: FiniteTask | BeliefGraph,
    losses: Sequence[Loss] = get_args(Loss),
    *,
    noct: bool = True,
    progress: bool = False,
) -> Yardstick:
    """The optimum of a task for some losses, and exact NOCT with replanning unless told not to.

    Tasks of `family_member` take a second each.
    """
    graph = task if isinstance(task, BeliefGraph) else build_graph(task, progress=progress)
    curves = [optimal_frontier(graph, progress=progress, loss=loss) for loss in losses]
    if noct:
        bar = progress_bar(losses, desc="exact NOCT", unit=" losses", show=progress)
        curves += [noct_curve(graph, loss) for loss in bar]
    return Yardstick(tuple(curves))
