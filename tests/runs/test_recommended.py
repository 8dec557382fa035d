"""The recommended point is chosen on validation; test subjects have no say in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nocta.core.cohort import Cohort
from nocta.exact.task import synthetic_task
from nocta.model.choice.default import RULE, DefaultPoint
from nocta.predictors.bayes import BayesPredictor
from nocta.runs.job import FittedPredictor, run_job
from nocta.runs.recommended import best_looking_index, default_among, shown_index
from nocta.runs.record import Job, JobRecord
from nocta.runs.setup import DataSource, Setup


def run(setup: Setup, job: Job) -> JobRecord:
    return run_job(setup, job, FittedPredictor(BayesPredictor(synthetic_task()), 0.0))


def test_other_test_subjects_leave_the_recommended_point_as_it_is(
    small_setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = replace(small_setup, source=DataSource("synthetic", max_subjects=200))
    first = run(setup, Job("random", 0))
    split = DataSource.split

    def with_wrong_labels(self: DataSource, cohort: Cohort, seed: int) -> tuple[Cohort, ...]:
        train, val, test = split(self, cohort, seed)
        return train, val, replace(test, labels=(test.labels + 1) % test.n_classes)

    monkeypatch.setattr(DataSource, "split", with_wrong_labels)
    second = run(setup, Job("random", 0))
    assert first.recommended is not None
    assert first.recommended.reason == RULE
    assert first.recommended == second.recommended
    # By the test subjects, acquiring nothing would now be best.
    assert best_looking_index(second.details, "accuracy") != first.recommended.index
    assert shown_index(second, "accuracy") == first.recommended.index


def test_reference_points_are_not_recommended_and_old_records_fall_back(
    small_setup: Setup,
) -> None:
    record = run(small_setup, Job("static", 0))
    assert record.recommended is not None
    assert 0 < record.recommended.index < len(record.rows) - 1
    written = {k: v for k, v in record.to_dict().items() if k != "recommended"}
    old = JobRecord.read(written)
    assert old.recommended is None
    assert shown_index(old, "accuracy") == best_looking_index(old.details, "accuracy")
    assert JobRecord.read(record.to_dict()).recommended == record.recommended


def test_a_method_without_a_choice_shows_its_only_point(small_setup: Setup) -> None:
    found = run(small_setup, Job("nothing", 0)).recommended
    assert found is not None
    assert (found.index, found.reason) == (0, "the only operating point")


@pytest.mark.parametrize(
    ("settings", "index"),
    [
        ([{"cost_weight": 1.0}, {"cost_weight": 0.5}], 1),
        ([{"cost_weight": 1.0}], None),
        ([{"cost_weight": 0.5, "budget": b} for b in (5.0, 20.0, 10.0)], 1),
        ([{"acquire": "nothing", "at": {"cost_weight": 0.5}}, {"cost_weight": 0.5}], 1),
    ],
)
def test_the_default_of_a_saved_model_is_found(
    settings: list[dict[str, Any]], index: int | None
) -> None:
    found = default_among(settings, DefaultPoint({"cost_weight": 0.5}, "as asked"))
    assert (None if found is None else found.index) == index
