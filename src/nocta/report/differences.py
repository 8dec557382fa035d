"""Paired differences between methods, as a square of marks and as a list of tests."""

from __future__ import annotations

import math
from typing import Any

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.report.paired import paired_test
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import Table, label, number, with_error
from nocta.report.view import ReportView

#: A difference is marked if its corrected p-value is below this.
SIGNIFICANT = 0.05


def difference_table(view: ReportView) -> Table | None:
    """Paired differences, row minus column: a text and its mark (`ahead`, `behind` or none)."""
    comparison = view.comparison
    table = comparison.summary
    table = table[(table["quality"] == comparison.quality) & (table["versus"] != "")]
    if table.empty:
        return None
    better = -1 if comparison.quality in LOWER_IS_BETTER else 1
    found = {(row.method, row.versus): row for row in table.itertuples()}
    methods = [m for m in view.methods if m in set(table["method"])]

    def cell(row: Any) -> tuple[str, str]:
        if row is None or math.isnan(row.mean):
            return "", ""
        test = paired_test(view, row.method, row.versus)
        clear = test is not None and test.p < SIGNIFICANT  # not if p is NaN
        mark = "ahead" if row.mean * better > 0 else "behind"
        return with_error(row.mean, row.standard_error, sign=True), mark if clear else ""

    rows = [(label(m), [cell(found.get((m, other))) for other in methods]) for m in methods]
    return Table([label(method) for method in methods], rows)


def paired_tests(view: ReportView) -> Table | None:
    """NOCTA (or else the first method) against every other; `None` if no pair has two seeds."""
    ours = [m for m in view.methods if m.startswith("nocta-")] or view.methods[:1]
    rows = []
    for method in ours:
        for other in view.methods:
            found = None if other == method else paired_test(view, method, other)
            if found is not None:
                difference = with_error(found.mean, found.standard_error, sign=True)
                shown = "< 0.001" if found.p < 0.001 else number(found.p)
                wins = f"{found.wins} of {found.n}"
                rows.append([label(method), label(other), difference, wins, shown])
    head = ["method", "against", METRIC_LABELS[view.comparison.quality], "ahead in", "p"]
    return Table(head, rows, grouped=True) if rows else None
