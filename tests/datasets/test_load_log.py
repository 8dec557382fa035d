"""The summary: what was read, what was dropped, and why."""

from __future__ import annotations

import pytest

from nocta.datasets import LoadLog, LoadSummary
from nocta.testing import tiny_cohort


def test_report_counts_what_the_cohort_holds() -> None:
    cohort = tiny_cohort(12)
    log = LoadLog()
    log.read("a/file.csv")
    summary = LoadSummary.of(cohort, log)
    assert summary.n_subjects == 12
    assert summary.n_visits == cohort.visits.sum()
    assert summary.n_labels == cohort.labeled.sum()
    offered = cohort.visits.sum() * cohort.catalog.n_features
    assert summary.missing == pytest.approx(1 - cohort.recorded.sum() / offered)
    assert "read a/file.csv" in str(summary)


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
    short = LoadSummary.of(cohort, log).short()
    assert short.startswith(f"tiny: 12 subjects, {cohort.visits.sum()} visits in 4 slots, ")
    assert short.endswith("; read from a/file.csv.")
    assert LoadSummary.of(cohort, LoadLog()).short().endswith("values missing.")
