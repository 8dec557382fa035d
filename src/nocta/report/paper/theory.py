"""The paper's two claims, checked at every belief of tasks small enough to solve exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np

from nocta.core.progress import progress_bar
from nocta.exact import (
    CurvePoint,
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
from nocta.exact.yardstick import Yardstick
from nocta.report.paper.page import Sheet
from nocta.runs.optimum import known_yardstick
from nocta.runs.setup import DataSource
from nocta.runs.shares import GAIN_COLUMNS, share_of_optimum

COST_WEIGHTS = (0.05, 0.3, 1.0)
N_RANDOM, N_RANDOM_QUICK = 200, 10
#: Gaps below this are rounding.
ROUNDING = 1e-9


def theory_sheets(*, quick: bool = False, progress: bool = False) -> list[Sheet]:
    """One line per task and loss: the smallest and the largest gap of each inequality."""
    lines = [
        _line(name, loss, [check_theory(g, w, loss) for g in graphs for w in COST_WEIGHTS])
        for name, graphs in progress_bar(_graphs(quick), desc="tasks", show=progress)
        for loss in get_args(Loss)
    ]
    weights = ", ".join(f"{w:g}" for w in COST_WEIGHTS)
    note = (
        f"Every reachable belief, every number of rounds, cost weights {weights}. A negative "
        f"smallest gap would refute a claim; gaps within {ROUNDING:g} of zero are rounding and "
        f"shown as zero. Theorem 3.1: the gap is the optimal value plus NOCT. Proposition 3.2: the "
        f"gap is the gain of replanning over committing to the plan."
    )
    claims = Sheet("", "Both claims on exact tasks", lines, note)
    return [claims] if quick else [claims, noct_sheet()]


def noct_sheet(yardstick: Yardstick | None = None) -> Sheet:
    """The policy that plans by exact NOCT and replans, beside the optimum."""
    import pandas as pd

    known = yardstick or known_yardstick(DataSource("synthetic"))
    assert known is not None
    lines: list[dict[str, Any]] = []
    for curve in (known.curve("noct", loss) for loss in get_args(Loss)):
        points = pd.DataFrame(list(curve), columns=CurvePoint._fields)
        table = share_of_optimum(points.assign(method="noct", seed=0), known)[: len(points)]
        shown = table[["cost", "accuracy", "optimum", "ratio", *GAIN_COLUMNS.values()]]
        shown.insert(0, "cost_weight", points["cost_weight"])
        shown.insert(0, "loss", curve.loss)
        lines += shown.rename(columns={"ratio": "share_of_optimum"}).to_dict("records")
    return Sheet(
        "noct",
        "Planning by exact NOCT on the synthetic task",
        lines,
        "The policy plans by exact NOCT, carries out the earliest acquisitions and replans; one "
        "line per distinct policy over the cost weights. Gain: the share of what the optimum gains "
        "over acquiring nothing, at the same cost. What is missing to the optimum here is due to "
        "open-loop plans; a learned policy that plans by NOCT also has errors of estimation.",
    )


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
