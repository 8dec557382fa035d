"""Detection delay: worked by hand, and each edge of its definition."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.detection import find_alarms, prevalence
from nocta.core.rollout import rollout
from nocta.methods.fixed import FixedPlanPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort

NAN = np.nan


def alarms(labels: list[list[int]], positive: list[list[float]], threshold: float = 0.5):
    p = np.asarray(positive, dtype=float)
    return find_alarms(np.asarray(labels), np.stack([1 - p, p], axis=-1), threshold)


@pytest.mark.parametrize(
    ("labels", "positive", "delay", "missed"),
    [
        ([0, 1, 1, 1], [0.1, 0.9, 0.1, 0.1], 0, False),  # at the onset
        ([0, 1, 1, 1], [0.1, 0.1, 0.1, 0.9], 2, False),  # later
        ([0, 1, 1, 1], [0.1, 0.1, 0.5, 0.9], 2, False),  # .5 does not exceed .5
        ([0, 1, 1, 1], [0.9, 0.1, 0.1, 0.9], 2, False),  # an earlier alarm shortens nothing
        ([0, 1, 1, 1], [0.9, 0.9, 0.1, 0.1], 0, False),  # unless it lasts until the onset
        ([0, 1, 1, 1], [0.9, 0.1, 0.1, 0.1], 3, True),  # never from then on
        ([0, 1, 1, -1], [0.1, 0.1, 0.1, 0.9], 2, True),  # no label, no alarm: ends after slot 2
        ([0, 1, -1, 1], [0.1, 0.1, 0.9, 0.9], 2, False),
        ([0, 1, 0, 0], [0.1, 0.1, 0.9, 0.1], 1, False),  # the label may turn back
        ([0, 0, 0, 0], [0.9, 0.9, 0.9, 0.9], NAN, False),  # no onset
        ([-1, -1, -1, -1], [0.9, 0.9, 0.9, 0.9], NAN, False),
    ],
)
def test_delay_runs_from_onset_to_the_first_alarm(
    labels: list[int], positive: list[float], delay: float, missed: bool
) -> None:
    found = alarms([labels], [positive])
    np.testing.assert_array_equal(found.delay, [delay])
    assert found.missed.tolist() == [missed]


def test_means_are_over_subjects_with_an_onset() -> None:
    labels = [[0, 1, 1], [0, 1, 1], [0, 0, -1]]
    found = alarms(labels, [[0.9, 0.1, 0.9], [0.1, 0.1, 0.1], [0.1, 0.9, 0.9]]).summary()
    assert found == {"detection_delay": 1.5, "detected": 0.5, "false_alarms": 0.5}
    assert alarms(labels, [[0.9] * 3] * 3, threshold=0.95).summary()["detected"] == 0


def test_nothing_is_defined_without_onset_or_with_other_classes() -> None:
    none = alarms([[0, 0]], [[0.1, 0.9]]).summary()
    assert np.isnan(none["detection_delay"])
    assert np.isnan(none["detected"])
    assert none["false_alarms"] == 0.5
    many = find_alarms(np.array([[0, 1]]), np.full((1, 2, 3), 1 / 3), 0.5).summary()
    assert np.isnan(list(many.values())).all()


def test_prevalence_is_the_share_of_positive_labels() -> None:
    assert prevalence(np.array([[0, 1, -1], [0, 0, -1]]), 2) == 0.25
    assert np.isnan(prevalence(np.array([[0, 1]]), 3))
    assert np.isnan(prevalence(np.array([[-1]]), 2))


def test_rollout_counts_tests_and_visits() -> None:
    cohort = tiny_cohort(12)
    plan = np.zeros_like(cohort.catalog.open_slots)
    plan[0, :2] = plan[2, 0] = True
    done = rollout(FixedPlanPolicy(plan, RunningMeanPredictor(2)), cohort)
    found = done.summary(threshold=0.3)
    recorded = cohort.recorded & plan
    assert found["tests"] == pytest.approx(recorded.sum() / 12)
    assert found["visits"] == pytest.approx(recorded.any(axis=2).sum() / 12)
    assert found["threshold"] == 0.3
    expected = find_alarms(done.labels, done.probabilities, 0.3).summary()
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert done.summary()["threshold"] == 0.5
