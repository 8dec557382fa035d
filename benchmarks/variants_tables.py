"""The tables of `variants.py`: every operating point, shares over costs, a page to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from nocta.evaluation.attainable import (
    MEASURES,
    attainable_share,
    noct_frontier,
    optimum_frontier,
    share_over_costs,
)
from nocta.evaluation.frontier import Frontier
from nocta.exact.family import family_member
from nocta.exact.yardstick import Yardstick
from nocta.report.tables import label, number
from nocta.runs.optimum import curve_rows
from nocta.runs.shares import gain_over_costs
from nocta.runs.versions import versions

#: By name or number, in the order of the tables.
Tasks = Mapping[str, Yardstick]
NOCT = "exact NOCT"
_KEYS = ["task", "method", "seed", "point", "setting", "subjects", "points", "cost"]
_TIMES = ["fit_seconds", "rollout_seconds"]
#: In the middle, the optimum has gained between these shares of its greatest gain.
MIDDLE = (0.1, 0.9)


def exact_table(tasks: Tasks) -> pd.DataFrame:
    """Every exact policy of every task."""
    rows = [{"task": t, **row} for t, found in tasks.items() for row in curve_rows(found.curves)]
    return pd.DataFrame(rows)


def frontiers(yardstick: Yardstick, measure: str) -> tuple[Frontier, Frontier]:
    """The optimum and exact NOCT."""
    best, noct = optimum_frontier(yardstick, measure), noct_frontier(yardstick, measure)
    assert best is not None
    assert noct is not None
    return best, noct


def judged(rows: pd.DataFrame, on_test: Mapping[int, Yardstick]) -> pd.DataFrame:
    """Operating points beside the optimum and exact NOCT at the same cost, by seed."""
    tables = [_judged(ours, on_test[int(seed)]) for seed, ours in rows.groupby("seed")]
    return pd.concat(tables, ignore_index=True)


def _judged(rows: pd.DataFrame, yardstick: Yardstick) -> pd.DataFrame:
    table = rows.assign(point=rows.groupby("method").cumcount())
    columns = list(_KEYS)
    for measure in MEASURES:
        best, noct = frontiers(yardstick, measure)
        cost = table["cost"].to_numpy()
        table[f"optimum_{measure}"], table[f"noct_{measure}"] = best.at(cost), noct.at(cost)
        table[f"gain_{measure}"] = attainable_share(best, cost, table[measure])
        table[f"noct_gain_{measure}"] = attainable_share(best, cost, noct.at(cost))
        columns += [measure, *(f"{c}_{measure}" for c in ("optimum", "noct", "gain", "noct_gain"))]
    return table[[*columns, *_TIMES]]


def summary(
    rows: pd.DataFrame, yardstick: Yardstick, on_test: Mapping[int, Yardstick]
) -> pd.DataFrame:
    """By method and seed of one task, the share of the attainable gain over all costs.

    `middle` counts the operating points where the optimum has gained 10 % to 90 % of what it can,
    `widest` is the widest stretch without one, as a share of the cost of the full gain. Exact NOCT
    is judged in expectation, a method on its test subjects.
    """
    found = []
    for measure in MEASURES:
        share = share_over_costs(*frontiers(yardstick, measure))
        found.append({"method": NOCT, "measure": measure, **share._asdict()})
    for seed, ours in rows.groupby("seed"):
        over = gain_over_costs(ours, on_test[int(seed)])
        for line in over.to_dict("records"):
            best, _ = frontiers(yardstick, line["measure"])
            costs = ours[ours["method"] == line["method"]]["cost"].to_numpy()
            found.append({**line, **_spread(costs, best)})
    table = pd.DataFrame(found)
    table.insert(0, "task", rows["task"].iloc[0])
    return table


def _spread(costs: Any, best: Frontier) -> dict[str, float]:
    """How operating points are spread over the costs at which anything is to be decided."""
    low, high = best.qualities[0], best.qualities[-1]
    gained = (best.at(costs) - low) / (high - low)
    full = best.costs[-1]
    stops = np.unique(np.clip([0.0, *costs, full], 0.0, full))
    middle = int(((gained >= MIDDLE[0]) & (gained <= MIDDLE[1])).sum())
    return {"middle": middle, "widest": float(np.diff(stops).max() / full)}


def markdown(table: pd.DataFrame, shares: pd.DataFrame) -> str:
    """A page with one table per measure, and one about the operating points."""
    methods = [NOCT, *dict.fromkeys(table["method"])]
    sizes = table.iloc[0]
    seeds = table.groupby(["task", "method"])["seed"].nunique()
    lines = [
        "# Random tasks, against their exact optimum",
        "",
        f"Written by `benchmarks/variants.py`: {sizes['subjects']} subjects drawn per task and "
        f"seed (42 % to train, 9 % to validate, 49 % to test), {seeds.min()} or more "
        f"seeds, `default` preset, up to {sizes['points']} operating points as the methods propose "
        "them. No method is tuned on these tasks.",
        "",
        "**Share of the attainable gain**: 0 = acquire nothing, 1 = the optimum at the same cost. "
        "First the mean over costs from 5 % to 100 % of the cost of the full gain, then the lowest "
        "share in that range (of any seed). Operating points are mixed to reach costs between "
        "them, so a stretch without operating points counts against a method. The optimum is "
        "measured on the same test subjects as the method. Exact NOCT is the best mixture of the "
        "policies that plan by exact NOCT and replan, whichever loss they plan for, in "
        "expectation. A share in bold is above it.",
        "",
        *_task_lines(shares["task"].unique()),
    ]
    for measure in MEASURES:
        lines += ["", f"## {measure.replace('_', '-').capitalize()}", ""]
        lines += _share_lines(shares[shares["measure"] == measure], methods)
    lines += ["", "## Operating points", "", *_point_lines(table, shares, methods[1:])]
    lines += ["", f"Versions: {versions()}"]
    return "\n".join(lines) + "\n"


def _task_lines(tasks: Iterable[str]) -> list[str]:
    members = {task: family_member(int(task) if task.isdigit() else task) for task in tasks}
    rows = [f"| {task} | {member} |" for task, member in members.items()]
    return ["| task | what it is |", "|---|---|", *rows]


def _share_lines(shares: pd.DataFrame, methods: list[str]) -> list[str]:
    mean = shares.pivot_table(index="task", columns="method", values="mean", sort=False)
    low = shares.pivot_table(
        index="task", columns="method", values="lowest", aggfunc="min", sort=False
    )
    mean.loc["all: mean / lowest"], low.loc["all: mean / lowest"] = mean.mean(), low.min()
    head = f"| task | {' | '.join(_name(m) for m in methods)} |"
    lines = [head, "|---" * (1 + len(methods)) + "|"]
    for task in mean.index:
        cells = []
        for method in methods:
            text = f"{number(mean.at[task, method])} / {number(low.at[task, method])}"
            ahead = method != NOCT and mean.at[task, method] > mean.at[task, NOCT]
            cells.append(f"**{text}**" if ahead else text)
        lines.append(f"| {task} | {' | '.join(cells)} |")
    return lines


def _point_lines(table: pd.DataFrame, shares: pd.DataFrame, methods: list[str]) -> list[str]:
    """Numbers over all tasks and seeds."""
    lines = [
        "Over all tasks and seeds. In the middle: where the optimum has 10 % to 90 % of its "
        "greatest gain in accuracy. Widest stretch: between neighboring operating points (or the "
        "ends), as a share of the cost of the full gain.",
        "",
        "| method | operating points | in the middle, mean (least) | widest stretch, mean (most) "
        "| fit, seconds |",
        "|---|---|---|---|---|",
    ]
    for method in methods:
        ours = shares[(shares["method"] == method) & (shares["measure"] == "accuracy")]
        rows = table[table["method"] == method].groupby(["task", "seed"])
        middle, widest = ours["middle"], ours["widest"]
        lines.append(
            f"| {_name(method)} | {number(rows.size().mean(), 1)} "
            f"| {number(middle.mean(), 1)} ({middle.min():.0f}) "
            f"| {number(widest.mean(), 2)} ({number(widest.max(), 2)}) "
            f"| {number(rows['fit_seconds'].first().mean(), 0)} |"
        )
    return lines


def _name(method: str) -> str:
    return method if method == NOCT else label(method)
