"""What the report draws is averaged over seeds at about the same cost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nocta.report.build import render, save_figures
from nocta.report.tables import difference_tables, effort_table, points_table
from nocta.report.text import failure_lines, summary_table
from nocta.report.view import ReportView, _merge_bins
from nocta.runs.compare import Comparison
from nocta.runs.record import CalibrationCurve


@pytest.fixture
def view(comparison: Comparison) -> ReportView:
    return ReportView(comparison)


def test_methods_without_a_point_near_the_reference_are_named(view: ReportView) -> None:
    named = view.far_from_reference()
    for method, entries in view.chosen.items():
        if method in ("nothing", "everything"):
            assert method not in named
            continue
        cost = sum(entry.cost for entry in entries) / len(entries)
        assert (method in named) == (abs(cost / view.reference_cost - 1) > 0.25)


def test_the_reference_cost_is_within_reach(view: ReportView) -> None:
    results = view.comparison.results
    low, high = results["cost"].min(), results["cost"].max()
    assert low < view.reference_cost < high


def test_the_nearest_operating_point_is_chosen(view: ReportView) -> None:
    for record in view.comparison.records:
        chosen = view.chosen[record.job.label]
        gaps = [abs(d.cost - view.reference_cost) for d in record.details]
        assert min(gaps) in [abs(d.cost - view.reference_cost) for d in chosen]


def test_dynamics_account_for_every_subject_and_every_cost(view: ReportView) -> None:
    dynamics = view.dynamics()
    assert [d.method for d in dynamics] == ["static", "random"]
    for entry in dynamics:
        assert entry.stop_share.sum() == pytest.approx(1.0)
        spent = np.mean([d.cost for d in view.chosen[entry.method]])
        assert entry.cost == pytest.approx(spent)


def test_the_ledger_lists_what_was_paid_for(view: ReportView) -> None:
    methods, rows = view.ledger()
    assert methods == ["static", "random"]
    assert {item for item, _ in rows} == {"digit", "counter"}
    total = sum(spent[0] for _, spent in rows)
    assert total == pytest.approx(np.mean([d.cost for d in view.chosen["static"]]))


def test_reliability_curves_are_pooled_by_their_counts() -> None:
    one = CalibrationCurve([0.25], [0.0], [1])
    other = CalibrationCurve([0.21, 0.95], [1.0, 1.0], [3, 2])
    stated, observed = _merge_bins([one, other])
    assert stated.tolist() == pytest.approx([0.22, 0.95])
    assert observed.tolist() == pytest.approx([0.75, 1.0])


def test_quality_over_time_starts_where_the_task_is_easiest(view: ReportView) -> None:
    mean, error = view.over_time("accuracy")["nothing"]
    assert mean.shape == error.shape == (10,)
    assert mean[0] > mean[-1]


def test_figures_are_written_as_png_and_svg(comparison: Comparison, tmp_path: Path) -> None:
    written = save_figures(comparison, tmp_path)
    assert [p.name for p in written] == [
        "frontier.png",
        "frontier.svg",
        "dynamics.png",
        "dynamics.svg",
    ]
    assert written[0].read_bytes().startswith(b"\x89PNG")


def test_the_terminal_shows_every_operating_point(view: ReportView) -> None:
    shown = summary_table(view.comparison)
    assert shown.row_count == len(points_table(view).rows) == 11
    heads = [str(column.header) for column in shown.columns]
    assert heads[2:6] == ["accuracy", "average precision", "ROC AUC", "cross-entropy (nats)"]


def test_differences_are_shown_in_every_metric(view: ReportView) -> None:
    names = [name for name, _ in difference_tables(view)]
    assert names == ["accuracy", "average precision", "ROC AUC", "cross-entropy (nats)"]


def test_acquisitions_and_detection_are_shown_if_known(view: ReportView) -> None:
    found = effort_table(view)
    assert found is not None
    assert found.head == ["method", "point", "cost", "tests", "visits", "seeds"]  # 21 classes
    everything = next(row for row in found.rows if row[0] == "nothing")
    assert everything[3] == "0.0 ± 0.0"
    records = [
        replace(r, rows=[replace(x, threshold=0.14, detection_delay=1.25) for x in r.rows])
        for r in view.comparison.records
    ]
    two_classes = replace(view.comparison, records=records)
    table = effort_table(ReportView(two_classes))
    assert table is not None
    assert table.head[-2] == "detection delay"
    assert table.rows[0][-2] == "1.250 ± 0.000"
    assert "positive probability above 0.140" in render(two_classes)
    old = [
        replace(r, rows=[replace(x, tests=math.nan, visits=math.nan) for x in r.rows])
        for r in view.comparison.records
    ]
    assert effort_table(ReportView(replace(view.comparison, records=old))) is None


def test_failures_say_where_to_look(comparison: Comparison) -> None:
    lines = failure_lines(comparison)
    assert lines[0] == "1 job(s) failed; run the same command to try them again."
    assert lines[1] == "  difa, seed 1: RuntimeError: a < b & c"
