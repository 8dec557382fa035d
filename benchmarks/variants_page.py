"""The figure and the numbers of docs/explanation/open-and-closed-loop.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nocta.evaluation.attainable import (
    FIRST_COST,
    MEASURES,
    N_COSTS,
    attainable_share,
    share_over_costs,
)
from nocta.exact import (
    NAMED_TASKS,
    GraphPolicy,
    build_graph,
    family_member,
    noct_policies,
    optimal_policy,
    optimal_values,
    plan_tables,
)
from nocta.model.files import write_atomically
from nocta.report.plots.style import COLUMN, PAGE, house_style, save_figure
from nocta.report.tables import number
from variants_tables import Tasks, frontiers

EXAMPLE = "late-starts"
COST_WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
FIGURE = "open-and-closed-loop"
#: Countdowns that can, and that never start at 0.
COLORS = {True: "#0072B2", False: "#D55E00"}


def write_page(tasks: Tasks, page: Path) -> None:
    """Replace the numbers between the markers of the page."""
    text = page.read_text("utf-8")
    for name, lines in {"example": example_lines(), "family": family_lines(tasks)}.items():
        text = replaced(text, name, lines)
    write_atomically(page, text)


def replaced(text: str, name: str, lines: Iterable[str]) -> str:
    """The text with new lines between `<!-- NAME: ... -->` and `<!-- end of NAME -->`."""
    head, begin, rest = text.partition(f"<!-- {name}: written by benchmarks/variants.py -->\n")
    _, end, tail = rest.partition(f"<!-- end of {name} -->")
    if not begin or not end:
        raise SystemExit(f"The page has no markers '{name}' and 'end of {name}'.")
    return head + begin + "\n".join(lines) + "\n" + end + tail


def example_lines() -> list[str]:
    """Values from the start, and what is reached, at some cost weights."""
    graph = build_graph(NAMED_TASKS[EXAMPLE].task)
    *_, root = plan_tables(graph, "error")
    nothing = root.rewards[0, 0]
    lines = [
        "| cost weight | value of the optimum | of NOCT's plan | of NOCT with replanning "
        "| optimum: first acquires | cost, accuracy | NOCT: first acquires | cost, accuracy |",
        "|---" * 8 + "|",
    ]
    for weight, noct in zip(COST_WEIGHTS, noct_policies(graph, COST_WEIGHTS), strict=True):
        best = optimal_policy(graph, weight)
        values = (
            optimal_values(graph, weight)[0][0],
            root.values(weight)[0],
            noct.values(weight, "error")[0][0],
        )
        cells = [f"{weight:g}", *(number(float(v - nothing), 2) for v in values)]
        cells += [*_reached(best), *_reached(noct)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _reached(policy: GraphPolicy) -> tuple[str, str]:
    """What a policy acquires first, and what it costs and achieves."""
    task = policy.graph.task
    shape = (task.horizon, task.n_features)
    first = policy.next_acquisition(np.full(shape, np.nan), np.zeros(shape, dtype=bool), -1)
    said = "nothing"
    if first is not None:
        names = " and ".join(task.feature_names[m] for m in first[1])
        said = f"{names} at time {first[0]}"
    found = policy.evaluate()
    return said, f"{number(found.cost, 2)}, {number(found.accuracy)}"


def family_lines(tasks: Tasks) -> list[str]:
    """Exact NOCT on every task, those without a start at 0 first."""
    lines = [
        "| task | countdowns from | accuracy: mean / lowest | cross-entropy: mean / lowest "
        "| cost of the full gain: optimum, NOCT |",
        "|---" * 5 + "|",
    ]
    for task in sorted(tasks, key=lambda name: 0 in _starts(name)):
        cells = [task, ", ".join(map(str, _starts(task)))]
        for measure in MEASURES:
            found = share_over_costs(*frontiers(tasks[task], measure))
            cells.append(f"{number(found.mean)} / {number(found.lowest)}")
        best, noct = frontiers(tasks[task], "accuracy")
        cells.append(f"{number(float(best.costs[-1]), 2)}, {number(float(noct.costs[-1]), 2)}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def write_figure(tasks: Tasks, out: Path) -> None:
    """Left: the example. Right: the share of the attainable gain of exact NOCT on every task."""
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=(PAGE, 0.85 * COLUMN), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_example(left, tasks)
        _draw_family(right, tasks)
    for suffix in (".png", ".svg"):
        save_figure(figure, out / f"{FIGURE}{suffix}")


def _draw_example(axes: Any, tasks: Tasks) -> None:
    yardstick = tasks[EXAMPLE]
    marks = {"error": ("#D55E00", "o", "-"), "cross-entropy": ("#009E73", "s", "--")}
    best = yardstick.optimum
    far = max(curve.cost[-1] for curve in yardstick.curves)
    cost, accuracy = np.append(best.cost, far), np.append(best.accuracy, best.accuracy[-1])
    axes.plot(cost, accuracy, color="black", linewidth=1.6, label="optimum")
    for loss, (color, marker, line) in marks.items():
        curve = yardstick.curve("noct", loss)  # type: ignore[arg-type]
        axes.plot(*curve.points.T, line, color=color, marker=marker, label=f"exact NOCT for {loss}")
    axes.set_xlabel("mean acquisition cost per subject")
    axes.set_ylabel("accuracy")
    axes.set_title(f"Task {EXAMPLE}", loc="left")
    axes.legend(loc="lower right")


def _draw_family(axes: Any, tasks: Tasks) -> None:
    shares = np.linspace(FIRST_COST, 1.0, N_COSTS)
    for task, yardstick in tasks.items():
        best, noct = frontiers(yardstick, "accuracy")
        cost = shares * best.costs[-1]
        axes.plot(shares, attainable_share(best, cost, noct.at(cost)), color=_color(task))
    for from_zero, text in {True: "a countdown can start at 0", False: "none starts at 0"}.items():
        axes.plot([], [], color=COLORS[from_zero], label=text)
    axes.set_xlabel("cost, as a share of the cost of the full gain")
    axes.set_ylabel("share of the attainable gain")
    axes.set_title("Exact NOCT on every task, accuracy", loc="left")
    axes.set_ylim(bottom=axes.get_ylim()[0] - 0.1, top=1.02)
    axes.legend(loc="lower right")


def _starts(task: str) -> tuple[int, ...]:
    return family_member(int(task) if task.isdigit() else task).starts


def _color(task: str) -> str:
    return COLORS[0 in _starts(task)]
