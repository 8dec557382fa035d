"""Paired differences between methods, as squares of marks and as a list of tests."""

from __future__ import annotations

import math
from typing import Any

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.report.paired import paired_test
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import Table, label, number, with_error
from nocta.report.view import ReportView
from nocta.runs.summary import side_by_side

#: A difference is marked if its corrected p-value is below this.
SIGNIFICANT = 0.05
#: Methods that are the ends of every other method's curve.
_ENDS = ("nothing", "everything")


def difference_tables(view: ReportView) -> list[tuple[str, Table]]:
    """Name and paired differences of every metric that is shown side by side."""
    shown = side_by_side(view.comparison.quality)
    found = [(METRIC_LABELS[name], difference_table(view, name)) for name in shown]
    return [(name, table) for name, table in found if table is not None]


def difference_table(view: ReportView, quality: str) -> Table | None:
    """Paired differences, row minus column: a text and its mark (`ahead`, `behind` or none)."""
    table = view.comparison.summary
    table = table[(table["quality"] == quality) & (table["versus"] != "")]
    if table.empty:
        return None
    better = -1 if quality in LOWER_IS_BETTER else 1
    found = {(row.method, row.versus): row for row in table.itertuples()}
    methods = [m for m in view.methods if m in set(table["method"])]

    def cell(row: Any) -> tuple[str, str]:
        if row is None or math.isnan(row.mean):
            return "", ""
        test = paired_test(view, row.method, row.versus, quality)
        clear = test is not None and test.p < SIGNIFICANT  # not if p is NaN
        mark = "ahead" if row.mean * better > 0 else "behind"
        return with_error(row.mean, row.standard_error, sign=True), mark if clear else ""

    rows = [(label(m), [cell(found.get((m, other))) for other in methods]) for m in methods]
    return Table([label(method) for method in methods], rows)


def paired_tests(view: ReportView) -> Table | None:
    """NOCTA (or else the first method) against every other, in each metric shown side by side.

    `None` if no pair has two seeds.
    """
    ours = [m for m in view.methods if m.startswith("nocta-")] or view.methods[:1]
    rows = [
        row
        for method in ours
        for other in view.methods
        if other not in (method, *_ENDS)
        for row in _rows(view, method, other)
    ]
    head = ["method", "against", "metric", "difference", "ahead in", "p"]
    return Table(head, rows, grouped=True, prose=(2,)) if rows else None


def _rows(view: ReportView, method: str, other: str) -> list[list[str]]:
    """One row per metric; none with fewer than two seeds."""
    rows = []
    for quality in side_by_side(view.comparison.quality):
        found = paired_test(view, method, other, quality)
        if found is not None:
            difference = with_error(found.mean, found.standard_error, sign=True)
            shown = "< 0.001" if found.p < 0.001 else number(found.p)
            wins = f"{found.wins} of {found.n}"
            names = [label(method), label(other), METRIC_LABELS[quality]]
            rows.append([*names, difference, wins, shown])
    return rows
