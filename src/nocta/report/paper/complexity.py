"""Growth of decision time with the size of a task, beside the orders the paper states.

Cohorts of several sizes are simulated and written as tables. Each is an ordinary comparison, timed
by its rollouts. The exponent is the slope of log time over log size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nocta.core.errors import ConfigError
from nocta.model.files import write_atomically
from nocta.report.paper.evidence import Request, run_arms
from nocta.report.paper.page import Page, Sheet
from nocta.report.paper.recipes import Arm, Recipe
from nocta.runs.setup import DataSource, Setup

if TYPE_CHECKING:
    import pandas as pd

SYMBOLS = {"O": "|O|"}
SEED = 0
#: Short training changes the decisions, not the time they take.
SHORT: dict[str, dict[str, Any]] = {
    "nocta-contrastive": {"embedding_weights": [1.0], "embedding_epochs": 1}
}


@dataclass(frozen=True)
class Size:
    """Slots, features, candidate plans and training subjects; named as in the paper."""

    L: int
    M: int
    O: int  # noqa: E741
    n: int

    @property
    def folder(self) -> str:
        """Folder of the cohort; the number of candidate plans is an option of the methods."""
        return f"complexity-L{self.L}-M{self.M}-n{self.n}"


@dataclass(frozen=True)
class Scale:
    """Sizes along each axis of the paper's orders; the others stay as in `base`."""

    axes: Mapping[str, Sequence[int]]
    base: Size
    n_val: int = 60
    n_test: int = 120


FULL = Scale(
    {
        "L": (5, 10, 20, 40),
        "M": (2, 4, 8, 16),
        "O": (250, 500, 1000, 2000),
        "n": (250, 500, 1000, 2000),
    },
    Size(L=10, M=4, O=1000, n=500),
)
QUICK = Scale(
    {"L": (4, 8), "M": (2, 4), "O": (50, 200), "n": (60, 240)}, Size(L=4, M=2, O=50, n=60)
)


def complexity_page(
    recipe: Recipe, request: Request, page: Page, scale: Scale | None = None
) -> None:
    """Time every method at every size, and fit exponents."""
    scale = scale or (QUICK if request.quick else FULL)
    base = scale.base
    orders = {row.method: dict(row.knob) for row in recipe.rows}
    times: list[dict[str, Any]] = []
    for axis, sizes in scale.axes.items():
        methods = [m for m, order in orders.items() if axis in "LM" or order[axis]]
        for value in sizes if methods else ():
            size = replace(base, **{axis: value})
            found, failures = _measure(size, methods, recipe, request, scale)
            page.failures += failures
            times += [{"axis": axis, "size": value, **row} for row in found]
    if not times:
        reasons = "; ".join(page.failures[:3])
        raise ConfigError(f"No job of '{recipe.name}' finished: {reasons}")
    measured = Sheet("times", "Milliseconds per subject", times)
    page.sheets[""] = [_growth(measured.frame, orders), measured]
    page.notes.append(
        f"Rollouts of {scale.n_test} subjects on one thread, around L = {base.L}, M = {base.M}, "
        f"|O| = {base.O}, n = {base.n}. Decisions are made for all subjects together, so fixed "
        f"work flattens the exponents."
    )


def _measure(
    size: Size, methods: Sequence[str], recipe: Recipe, request: Request, scale: Scale
) -> tuple[list[dict[str, Any]], list[str]]:
    """Milliseconds per subject of each method, at its most expensive operating point."""
    directory = request.out / "runs" / size.folder
    setup = Setup(
        write_cohort(size, directory.with_name(f"{size.folder}-data"), scale),
        preset="paper",
        n_points=3,
        cost_weights=(0.0,),  # cost does not matter, so every method acquires until the end
        quick=True,
        audit_subjects=0,
    )
    arms = [_arm(method, size) for method in methods]
    alone = replace(request, n_seeds=SEED + 1, n_jobs=1)
    comparison = run_arms(setup, arms, directory, recipe, alone)
    rows = []
    for record in comparison.records:
        most_expensive = max(record.rows, key=lambda row: row.cost)
        seconds = most_expensive.rollout_seconds / most_expensive.n_subjects
        rows.append({"method": record.job.method, "milliseconds": 1000 * seconds})
    failures = [f"{failure} ({size.folder})" for failure in comparison.failures]
    return rows, failures


def _arm(method: str, size: Size) -> Arm:
    plans = {"n_candidates": size.O} if method.startswith("nocta-") else {}
    label = f"{method} n_candidates={size.O}" if plans else method
    return Arm(method, {}, {**plans, **SHORT.get(method, {})}, label)


def write_cohort(size: Size, directory: Path, scale: Scale = FULL) -> DataSource:
    """Write a simulated cohort of this size as a table with a schema and an assigned split."""
    data, schema = directory / "cohort.csv", directory / "schema.toml"
    if not schema.is_file():
        write_atomically(data, _draw(size, scale).to_csv(index=False, lineterminator="\n"))
        features = "".join(f"\n[features.f{m}]\ncost = 1.0\n" for m in range(size.M))
        head = 'name = "complexity"\nsubject = "subject"\nvisit = "visit"\nlabel = "label"\n'
        write_atomically(schema, head + 'split = "split"\n' + features)  # last: then both are whole
    return DataSource(str(data), schema=str(schema))


def _draw(size: Size, scale: Scale) -> pd.DataFrame:
    import pandas as pd

    rng = np.random.default_rng(SEED)
    n = size.n + scale.n_val + scale.n_test
    risk = rng.normal(size=(n, size.L)).cumsum(axis=1) / np.sqrt(np.arange(1, size.L + 1))
    values = risk[..., None] + rng.normal(size=(n, size.L, size.M))
    splits = np.repeat(["train", "val", "test"], [size.n, scale.n_val, scale.n_test])
    frame = pd.DataFrame(values.reshape(-1, size.M), columns=[f"f{m}" for m in range(size.M)])
    frame.insert(0, "subject", np.repeat(np.arange(n), size.L))
    frame.insert(1, "visit", np.tile(np.arange(size.L), n))
    frame["label"] = (risk.reshape(-1) > 0).astype(int)
    frame["split"] = np.repeat(splits, size.L)
    return frame


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log time over log size."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _growth(times: pd.DataFrame, orders: dict[str, dict[str, Any]]) -> Sheet:
    lines = []
    for (method, axis), rows in times.groupby(["method", "axis"], sort=False):
        rows = rows.sort_values("size")
        first, last = rows.iloc[0], rows.iloc[-1]
        lines.append(
            {
                "method": method,
                "grows_with": SYMBOLS.get(axis, axis),
                "from_to": f"{first['size']} to {last['size']}",
                "paper_exponent": int(orders[method][axis]),
                "measured": exponent(rows["size"].to_list(), rows["milliseconds"].to_list()),
                "first_ms": float(first["milliseconds"]),
                "last_ms": float(last["milliseconds"]),
            }
        )
    lines.sort(key=lambda line: [*orders].index(str(line["method"])))
    note = "Milliseconds per subject, first visit to last; exponents are slopes of log time."
    return Sheet("", "Measured growth beside the paper's orders", lines, note)
