"""Tables of the report: who gets which test, promises, classes, subgroups, marks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.report.acquisition import MAX_VISITS, heat_table
from nocta.report.build import render
from nocta.report.classes import class_table
from nocta.report.differences import difference_table, paired_tests
from nocta.report.plots.dynamics import Dynamics, TimeAxis
from nocta.report.plots.promises import Kept, promise_figure
from nocta.report.promises import kept_promises, promise_table
from nocta.report.subgroups import subgroup_table
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.record import JobRecord, Subgroup


def changed(record: JobRecord, **fields: object) -> JobRecord:
    return replace(record, details=[replace(d, **fields) for d in record.details])  # type: ignore[arg-type]


def entry(acquired: np.ndarray) -> Dynamics:
    names = tuple(f"f{m}" for m in range(acquired.shape[1]))
    zeros = np.zeros(len(acquired))
    return Dynamics("static", zeros, np.append(zeros, 1.0), acquired, names)


def test_shares_of_subjects_by_test_and_visit() -> None:
    acquired = np.array([[1.0, 0.0, 0.25], [0.5, 0.0, 0.0]])
    found = heat_table(entry(acquired), TimeAxis((0.0, 0.5), "years"))
    assert found.head == ["0", "0.5"]
    assert [(name, [c.text for c in cells], total) for name, cells, total in found.rows] == [
        ("f0", ["100%", "50%"], "1.50"),
        ("f2", ["25%", ""], "0.25"),
    ]
    assert [cell.is_dark for cell in found.rows[0][1]] == [True, False]
    assert found.never == ["f1"]


def test_many_visits_become_ranges_that_keep_the_total() -> None:
    n = 3 * MAX_VISITS + 1
    found = heat_table(entry(np.full((n, 1), 0.5)), TimeAxis(tuple(map(float, range(n)))))
    assert len(found.head) == MAX_VISITS
    assert found.head[0] == "0–3"
    cells = found.rows[0][1]
    assert sum(float(cell.text) for cell in cells) == pytest.approx(n / 2)
    assert {cell.shade for cell in cells} == {0.5}


def test_the_page_has_the_heat_map_and_no_arrows(comparison: Comparison) -> None:
    text = render(comparison)
    assert "Share of subjects who acquire each feature at each visit" in text
    assert "background-color: rgba(0, 72, 122, " in text
    assert "an arrow" not in text


def test_sensitivity_and_specificity_of_the_positive_class(comparison: Comparison) -> None:
    records = [changed(r, confusion=[[8, 2], [1, 3]]) for r in comparison.records]
    records = [replace(r, cohort=replace(r.cohort, classes=["no", "yes"])) for r in records]
    table = class_table(ReportView(replace(comparison, records=records)))
    assert table is not None
    assert table.rows[0] == ["static subset", "yes", "0.750 ± 0.000", "0.800 ± 0.000"]
    assert len(table.rows) == 3
    old = [changed(r, confusion=[]) for r in comparison.records]
    assert class_table(ReportView(replace(comparison, records=old))) is None


def test_promises_are_held_against_what_happened(comparison: Comparison) -> None:
    def promised(record: JobRecord, loss: float, cost: float) -> JobRecord:
        rows = [
            replace(row, expected_loss=loss, realized_loss=2.0, expected_cost=cost * row.cost)
            for row in record.rows
        ]
        return replace(record, rows=rows)

    records = [promised(r, 1.6, 1.0) for r in comparison.records if r.job.label == "static"]
    silent = [promised(r, float("nan"), 1.0) for r in comparison.records if r.job.label != "static"]
    view = ReportView(replace(comparison, records=records + silent))
    table = promise_table(view)
    assert table is not None
    assert [row[4] for row in table.rows] == ["+25 %"] * len(table.rows)
    assert {row[7] for row in table.rows} == {"0 %"}
    n = len(table.rows)
    assert f"the loss was within 5 % of what was expected at 0 of {n}" in table.notes["verdict"]
    assert f"the charge was within 5 % of what was expected at {n} of {n}" in table.notes["verdict"]
    assert table.notes["silent"] == "random, nothing"
    assert "Promise kept?" not in render(replace(comparison, records=silent))
    assert len(kept_promises(view)) == n


def test_kept_promises_lie_on_the_diagonal() -> None:
    found = [Kept("static", 1, 1.0, 1.0, 5.0, 5.0), Kept("random", 1, 2.0, 1.0, 9.0, 3.0)]
    loss, cost = promise_figure(found, "$").axes
    assert [line.get_xydata().tolist() for line in cost.lines[:2]] == [[[5.0, 5.0]], [[9.0, 3.0]]]
    assert loss.get_xlim() == loss.get_ylim()
    assert cost.get_xlabel() == "expected charge per subject ($)"


def test_subgroups_are_averaged_over_seeds(comparison: Comparison) -> None:
    def group(name: str, value: float) -> Subgroup:
        found = (value, value - 0.1, value + 0.1)
        return Subgroup(
            name=name, n_subjects=12, n_labels=20, cost=found, quality=found, calibration=found
        )

    nan = float("nan")
    few = replace(group("site = B", 0.0), quality=(nan, nan, nan))
    values = iter((0.4, 0.6))
    records = [
        changed(r, subgroups=[group("site = A", next(values)), few])
        if r.job.label == "static"
        else r
        for r in comparison.records
    ]
    view = ReportView(replace(comparison, records=records))
    table = subgroup_table(view)
    assert table is not None
    assert table.rows[0][:2] == ["site = A", "12"]
    assert table.rows[0][3:] == ["0.500 (0.400 to 0.600)", "+0.500 (+0.400 to +0.600)"]
    assert table.rows[1][3] == "too few"
    assert "site = A" in render(view.comparison)
    assert subgroup_table(ReportView(comparison)) is None


@pytest.mark.parametrize(("spread", "marked"), [(0.001, True), (0.06, False)])
def test_a_win_is_marked_only_if_the_corrected_test_agrees(
    comparison: Comparison, spread: float, marked: bool
) -> None:
    """Both times the difference exceeds one standard error."""
    records = []
    for record in comparison.records:
        for seed in range(3):
            ahead = 0.08 + spread * (seed - 1) if record.job.label == "static" else 0.0
            rows = [replace(row, seed=seed, accuracy=0.6 + ahead) for row in record.rows]
            if record.job.seed == 0:
                job = replace(record.job, seed=seed)
                records.append(replace(record, job=job, rows=rows))
    view = ReportView(replace(comparison, records=records))
    table, tests = difference_table(view, view.comparison.quality), paired_tests(view)
    assert table is not None
    assert tests is not None
    (text, mark) = table.rows[0][1][1]
    assert text.startswith("+0.080")
    assert mark == ("ahead" if marked else "")
    p = float(tests.rows[0][5].removeprefix("< "))
    assert (p < 0.05) == marked
