"""The yardstick of a task: the exact optimum and exact NOCT, for error and for cross-entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from nocta.core.progress import progress_bar
from nocta.exact.build import build_graph
from nocta.exact.curve import ExactCurve, ExactPolicy
from nocta.exact.graph import BeliefGraph, Loss
from nocta.exact.noct_curve import noct_curve
from nocta.exact.optimum import optimal_frontier
from nocta.exact.task import FiniteTask


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
