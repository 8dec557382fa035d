"""Paired tests over splits, against values worked out elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import t, ttest_1samp

from nocta.report.paired import paired_p_value, paired_tests
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.setup import DataSource

GAPS = [0.02, 0.05, -0.01, 0.03, 0.04]


def test_without_overlap_it_is_the_paired_t_test() -> None:
    assert paired_p_value(GAPS) == pytest.approx(ttest_1samp(GAPS, 0.0).pvalue)


def test_shared_subjects_make_it_more_careful() -> None:
    # The statistic shrinks by sqrt((1/5) / (1/5 + 1/4)).
    shrunk = ttest_1samp(GAPS, 0.0).statistic * math.sqrt(0.2 / 0.45)
    assert paired_p_value(GAPS, 0.25) == pytest.approx(2 * t.sf(shrunk, 4))


def test_equal_differences_have_no_p_value() -> None:
    assert math.isnan(paired_p_value([0.1, 0.1]))
    assert math.isnan(paired_p_value([0.1]))


def test_every_other_method_has_its_line(comparison: Comparison) -> None:
    found = paired_tests(ReportView(comparison))
    assert found is not None
    metrics = ["accuracy", "average precision", "ROC AUC", "cross-entropy (nats)"]
    assert [row[:3] for row in found.rows] == [["static subset", "random", m] for m in metrics]
    assert found.rows[0][4] in ("0 of 2", "1 of 2", "2 of 2")


def test_splits_of_one_cohort_are_tested_with_the_correction(comparison: Comparison) -> None:
    source = DataSource("synthetic", data_options={"seed": 0})  # the same for every seed
    split = replace(comparison, setup=replace(comparison.setup, source=source))
    drawn, shared = (paired_tests(ReportView(c)) for c in (comparison, split))
    assert drawn is not None
    assert shared is not None
    assert float(shared.rows[0][5]) > float(drawn.rows[0][5].removeprefix("< "))


def test_one_seed_has_no_test(comparison: Comparison) -> None:
    one = [record for record in comparison.records if record.job.seed == 0]
    assert paired_tests(ReportView(replace(comparison, records=one))) is None
