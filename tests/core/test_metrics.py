"""Metrics: numbers worked by hand, one decision on averaging, NaN where nothing is defined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from nocta.core import metrics
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.rollout import Rollout, rollout
from nocta.methods.fixed import FixedPlanPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort


def make_rollout(labels, probabilities, cost=0.0, stop_time=None) -> Rollout:
    labels, probabilities = np.asarray(labels), np.asarray(probabilities, dtype=np.float32)
    n, length = labels.shape
    cohort = tiny_cohort(max(n, 2)).subset(np.arange(n))
    return Rollout(
        history=History.empty(cohort.catalog, cohort.context),
        probabilities=probabilities,
        labels=labels,
        cost_per_visit=np.full((n, length), cost / length),
        stop_time=np.full(n, -1) if stop_time is None else np.asarray(stop_time),
        n_decisions=np.ones(n, dtype=int),
        classes=tuple("abcdefgh"[: probabilities.shape[2]]),
        subjects=np.arange(n),
        availability="on-arrival",
        seconds=0.0,
    )


def binary(p):
    p = np.asarray(p, dtype=float)
    return np.stack([1 - p, p], axis=-1)


def test_metrics_match_hand_worked_numbers():
    labels, predicted = np.array([0, 1, 1, 0]), binary([0.1, 0.8, 0.4, 0.6])
    assert metrics.accuracy(labels, predicted) == 0.5
    # Ranked .8(1) .6(0) .4(1) .1(0): precision 1 at the first hit, 2/3 at the second.
    assert metrics.average_precision(labels, predicted) == pytest.approx((1 + 2 / 3) / 2)
    # Three of the four pairs of a positive and a negative are in order.
    assert metrics.roc_auc(labels, predicted) == pytest.approx(0.75)
    expected = -np.log([0.9, 0.8, 0.4, 0.4]).mean()
    assert metrics.cross_entropy(labels, predicted) == pytest.approx(expected)
    assert metrics.brier(labels, predicted) == pytest.approx(
        np.mean([0.1**2, 0.2**2, 0.6**2, 0.6**2])
    )


def test_brier_sums_over_more_than_two_classes():
    predicted = np.array([[0.5, 0.3, 0.2]])
    assert metrics.brier(np.array([0]), predicted) == pytest.approx(0.25 + 0.09 + 0.04)


def test_brier_of_two_classes_accepts_a_single_class():
    assert metrics.brier(np.array([1, 1]), binary([0.5, 1.0])) == pytest.approx(0.125)


def test_calibration_error_is_zero_when_frequencies_match():
    labels = np.array([1, 0, 0, 0] * 5)
    assert metrics.calibration_error(labels, binary([0.25] * 20)) == pytest.approx(0.0)
    assert metrics.calibration_error(labels, binary([0.75] * 20)) == pytest.approx(0.5)


def test_calibration_of_many_classes_is_about_the_predicted_one():
    predicted = np.tile([0.1, 0.7, 0.2], (10, 1))
    labels = np.array([1] * 7 + [0] * 3)
    assert metrics.calibration_error(labels, predicted) == pytest.approx(0.0, abs=1e-6)


def test_macro_average_counts_only_classes_that_occur():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 2], size=40)  # class 1 never occurs
    predicted = rng.dirichlet([1, 1, 1], size=40)
    expected_ap = np.mean([average_precision_score(labels == c, predicted[:, c]) for c in (0, 2)])
    expected_auc = np.mean([roc_auc_score(labels == c, predicted[:, c]) for c in (0, 2)])
    assert metrics.average_precision(labels, predicted) == pytest.approx(expected_ap)
    assert metrics.roc_auc(labels, predicted) == pytest.approx(expected_auc)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_no_pair_gives_nan(name):
    assert math.isnan(metrics.METRICS[name](np.zeros(0, dtype=int), np.zeros((0, 3))))


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]])
def test_ranking_needs_both_classes(labels):
    predicted = binary([0.2, 0.5, 0.7])
    assert math.isnan(metrics.average_precision(np.array(labels), predicted))
    assert math.isnan(metrics.roc_auc(np.array(labels), predicted))


def test_pair_losses_agree_with_the_pooled_cross_entropy():
    rng = np.random.default_rng(1)
    labels = rng.integers(-1, 3, size=(6, 5))
    predicted = rng.dirichlet([1, 1, 1], size=(6, 5)).astype(np.float32)
    losses = pair_losses(labels, predicted)
    assert np.array_equal(np.isnan(losses), labels < 0)
    pooled = metrics.cross_entropy(labels[labels >= 0], predicted[labels >= 0])
    assert np.nanmean(losses) == pytest.approx(pooled)


def test_impossible_truth_costs_a_finite_loss():
    assert np.isfinite(pair_losses(np.array([1]), np.array([[1.0, 0.0]]))).all()


def test_tail_is_the_worst_tenth_of_subjects():
    losses = np.full((20, 2), 1.0)
    losses[3] = [9.0, np.nan]
    losses[7] = [5.0, 7.0]
    losses[9] = np.nan  # no label at all: not a subject of this metric
    assert metrics.tail_loss(losses) == pytest.approx((9.0 + 6.0) / 2)
    assert math.isnan(metrics.tail_loss(np.full((3, 2), np.nan)))


def test_summary_pools_over_pairs_and_reports_each_time():
    labels = np.array([[1, -1], [0, 1], [1, -1]])
    probabilities = binary([[0.9, 0.5], [0.2, 0.3], [0.4, 0.5]])
    found = metrics.summarize(make_rollout(labels, probabilities, 3.0, stop_time=[0, 1, -1]))
    assert found["accuracy"] == pytest.approx(2 / 4)
    assert found["per_time"]["accuracy"] == pytest.approx([2 / 3, 0.0])
    assert math.isnan(found["per_time"]["ap"][1])
    assert (found["n_subjects"], found["n_labels"]) == (3, 4)
    assert found["per_time"]["n_labels"] == [3, 1]
    assert found["cost"] == pytest.approx(3.0)
    assert found["per_time"]["cost"] == pytest.approx([1.5, 1.5])
    assert found["mean_stop_time"] == pytest.approx(0.5)
    assert found["stop_histogram"] == [1, 1, 1]


def test_summary_of_unlabeled_subjects_is_nan_not_an_error():
    found = metrics.summarize(make_rollout([[-1, -1]], binary([[0.5, 0.5]])))
    assert all(math.isnan(found[name]) for name in metrics.ALL_METRICS)
    assert math.isnan(found["mean_stop_time"])


def test_rollout_summary_is_the_same_thing():
    cohort = tiny_cohort(12)
    done = rollout(FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2)), cohort)
    assert done.summary()["cost"] == done.cost
    assert "per_time" not in metrics.summarize(done, per_time=False)


def test_predictions_of_unlabeled_cells_do_not_matter():
    cohort = tiny_cohort(12)
    done = rollout(FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2)), cohort)
    changed = done.probabilities.copy()
    changed[done.labels < 0] = [1.0, 0.0]
    again = metrics.summarize(replace(done, probabilities=changed))
    assert np.array_equal(
        [again[m] for m in metrics.ALL_METRICS], [done.summary()[m] for m in metrics.ALL_METRICS]
    )


def test_unknown_metric_is_met_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"no metric 'accurracy'\. Did you mean 'accuracy'"):
        metrics.check_metric("accurracy")
