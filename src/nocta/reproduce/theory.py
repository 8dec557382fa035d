"""The paper's two claims, checked at every belief of tasks small enough to solve exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np

from nocta.exact import (
    FiniteTask,
    Loss,
    TheoryCheck,
    build_graph,
    check_theory,
    planning_is_not_enough_task,
    random_task,
    replanning_pays_task,
    synthetic_task,
)
from nocta.progress import progress_bar
from nocta.reproduce.page import Sheet

COST_WEIGHTS = (0.05, 0.3, 1.0)
N_RANDOM, N_RANDOM_QUICK = 200, 10
#: Gaps below this are rounding.
ROUNDING = 1e-9


def theory_sheets(*, quick: bool = False, progress: bool = False) -> list[Sheet]:
    """One line per task and loss: the smallest and the largest gap of each inequality.

    Args:
        quick: Fewer and shorter tasks.
        progress: Show a bar.
    """
    import pandas as pd

    lines = [
        _line(name, loss, [check_theory(g, w, loss) for g in graphs for w in COST_WEIGHTS])
        for name, graphs in progress_bar(_graphs(quick), desc="tasks", show=progress)
        for loss in get_args(Loss)
    ]
    weights = ", ".join(f"{w:g}" for w in COST_WEIGHTS)
    note = (
        f"Every reachable belief, every number of rounds, cost weights {weights}. A claim would be "
        f"refuted by a negative smallest gap; gaps within {ROUNDING:g} of zero are rounding and "
        f"shown as zero. Theorem 3.1: optimal value less minus NOCT. Proposition 3.2: what "
        f"replanning earns beyond committing."
    )
    return [Sheet("", "Both claims on exact tasks", pd.DataFrame(lines), note)]


def _graphs(quick: bool) -> Iterator[tuple[str, list[Any]]]:
    rng = np.random.default_rng(0)
    n_random, horizons = (N_RANDOM_QUICK, (4,)) if quick else (N_RANDOM, (4, 6))
    drawn = [random_task(rng, additive=i % 2 == 0) for i in range(n_random)]
    tasks: list[tuple[str, Iterable[FiniteTask]]] = [
        ("planning is not enough", [planning_is_not_enough_task()]),
        ("replanning pays", [replanning_pays_task()]),
        *((f"synthetic, {n} times", [synthetic_task(horizon=n)]) for n in horizons),
        (f"{n_random} at random", drawn),
    ]
    for name, group in tasks:
        yield name, [build_graph(task) for task in group]


def _line(name: str, loss: str, checks: Sequence[TheoryCheck]) -> dict[str, Any]:
    return {
        "task": name,
        "loss": loss,
        "comparisons": sum(c.n_comparisons for c in checks),
        "bound_least": _rounded(min(c.bound_smallest for c in checks)),
        "bound_most": _rounded(max(c.bound_largest for c in checks)),
        "replan_least": _rounded(min(c.replanning_smallest for c in checks)),
        "replan_most": _rounded(max(c.replanning_largest for c in checks)),
        "holds": "yes" if all(c.holds(ROUNDING) for c in checks) else "NO",
    }


def _rounded(gap: float) -> float:
    return 0.0 if abs(gap) <= ROUNDING else gap
