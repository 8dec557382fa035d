"""New data against training: nothing moves by chance, and what moved is named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.runs.drift import Drift, compare_with_training
from nocta.runs.training_summary import TrainingSummary, bin_shares, summarize_training
from nocta.testing import tiny_cohort


@pytest.fixture(scope="module")
def training() -> TrainingSummary:
    return summarize_training(tiny_cohort(300, seed=0))


def moved(drift: Drift) -> dict[str, str]:
    return {column.name: column.level for column in drift.moved}


def test_the_same_population_still_fits(training: TrainingSummary) -> None:
    for seed, n in ((1, 30), (2, 100), (3, 300)):
        drift = compare_with_training(training, tiny_cohort(n, seed))
        assert moved(drift) == {}
        assert drift.verdict.startswith("The model still fits these data")


def test_the_training_subjects_themselves_have_no_drift(training: TrainingSummary) -> None:
    drift = compare_with_training(training, tiny_cohort(300, seed=0))
    assert max(column.psi for column in drift.columns) < 1e-4


def change(cohort: Cohort, what: str) -> Cohort:
    values, labels, context = cohort.values.copy(), cohort.labels.copy(), cohort.context
    if what == "shift":
        values[..., 0] += 3
    elif what == "missing":
        values[::2, :, 0] = np.nan
    elif what == "label":
        labels[labels == 0] = 1
    elif what == "context":
        context = context + 25
    return replace(cohort, values=values, labels=labels, context=context)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("shift", "outside the usual range"),
        ("missing", "missing 5"),
        ("label", "label (PSI"),
        ("context", "PSI"),
    ],
)
def test_what_moved_is_named(training: TrainingSummary, what: str, said: str) -> None:
    cohort = tiny_cohort(100, seed=1)
    drift = compare_with_training(training, change(cohort, what))
    name = {"label": "label", "context": cohort.catalog.context[0]}.get(
        what, cohort.catalog.columns[0]
    )
    assert list(moved(drift)) == [name]
    assert not drift.fits
    assert drift.verdict.startswith("The model may not fit these data. Different from training: ")
    assert said in drift.verdict
    assert name in drift.verdict


def test_the_summary_is_small_plain_and_holds_no_extreme_value(training: TrainingSummary) -> None:
    data = json.loads(json.dumps(training.to_dict(), allow_nan=False))
    assert TrainingSummary.from_dict(data) == training
    cohort = tiny_cohort(300, seed=0)
    first = next(c for c in training.columns if c.name == cohort.catalog.columns[0])
    assert first.high < np.nanmax(cohort.values[..., 0])
    assert first.low > np.nanmin(cohort.values[..., 0])
    assert len(json.dumps(data)) < 2000 * len(training.columns)
    assert training.columns[-1].role == "label"


def test_an_empty_column_is_summarized_and_compared() -> None:
    cohort = tiny_cohort(40)
    values = cohort.values.copy()
    values[..., 0] = np.nan
    empty = summarize_training(replace(cohort, values=values))
    again = TrainingSummary.from_dict(json.loads(json.dumps(empty.to_dict(), allow_nan=False)))
    drift = compare_with_training(again, cohort)
    assert moved(drift)[cohort.catalog.columns[0]] == "moved a lot"


def test_equal_decimals_stay_in_one_bin() -> None:
    stored = np.array([4.4, 4.5, 4.6], dtype=np.float32).astype(float)
    assert bin_shares(stored, [4.5, 4.6]) == pytest.approx([1 / 3] * 3, abs=1e-5)
