"""The report: what was read, what was dropped, and why."""

from __future__ import annotations

import pytest

from nocta.datasets import LoadLog, LoadReport
from nocta.testing import tiny_cohort


def test_report_counts_what_the_cohort_holds() -> None:
    cohort = tiny_cohort(12)
    log = LoadLog()
    log.read("a/file.csv")
    report = LoadReport.of(cohort, log)
    assert report.n_subjects == 12
    assert report.n_visits == cohort.visits.sum()
    assert report.n_labels == cohort.labelled.sum()
    offered = cohort.visits.sum() * cohort.catalog.n_features
    assert report.missing == pytest.approx(1 - cohort.recorded.sum() / offered)
    assert "read a/file.csv" in str(report)


def test_same_reason_adds_up() -> None:
    log = LoadLog()
    for count in (2, 3, 0):
        log.drop(count, "visits", "too late")
    log.drop(1, "visits", "too early")
    assert [str(d) for d in log.drops] == ["5 visits: too late", "1 visits: too early"]


def test_short_form_tells_what_was_read_in_one_line() -> None:
    cohort = tiny_cohort(12)
    log = LoadLog()
    log.read("a/file.csv")
    short = LoadReport.of(cohort, log).short()
    assert short.startswith(f"tiny: 12 subjects, {cohort.visits.sum()} visits in 4 slots, ")
    assert short.endswith("; read from a/file.csv.")
    assert LoadReport.of(cohort, LoadLog()).short().endswith("features missing.")
