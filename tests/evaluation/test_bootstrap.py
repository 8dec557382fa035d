"""Bootstrap bands: subjects are resampled, fast and slow ways agree, seeds decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.core.metrics import ALL_METRICS, METRICS, evaluate_pairs
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.bootstrap import bootstrap_bands
from nocta.methods.fixed import RandomPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort


@pytest.fixture(scope="module")
def rollouts():
    cohort = tiny_cohort(40)
    return [rollout(RandomPolicy(p, RunningMeanPredictor(2)), cohort) for p in (0.2, 0.8)]


@pytest.mark.parametrize("metric", ALL_METRICS)
def test_bands_hold_the_point_itself(rollouts, metric):
    bands = bootstrap_bands(rollouts, metric, n_resamples=40, seed=0)
    expected = [evaluate_pairs(r.labels, r.probabilities)[metric] for r in rollouts]
    assert bands.qualities == pytest.approx(expected)
    assert (bands.quality_low <= bands.quality_high).all()
    assert (bands.cost_low <= bands.costs).all()
    assert (bands.costs <= bands.cost_high).all()
    assert bands.samples.shape == (2, 40)


@pytest.mark.parametrize("metric", ["accuracy", "cross_entropy", "brier"])
def test_resampled_means_equal_the_metric_of_resampled_subjects(rollouts, metric):
    bands = bootstrap_bands(rollouts, metric, n_resamples=5, seed=3)
    ranking = bootstrap_bands(rollouts, "ap", n_resamples=5, seed=3)
    done, n = rollouts[0], len(rollouts[0])
    rng = np.random.default_rng(3)
    draws = rng.integers(0, n, size=(5, n))
    for i, rows in enumerate(draws):
        chosen = done.labels[rows] >= 0
        pairs = done.labels[rows][chosen], done.probabilities[rows][chosen]
        assert bands.samples[0, i] == pytest.approx(METRICS[metric](*pairs), rel=1e-5)
        assert ranking.samples[0, i] == pytest.approx(METRICS["ap"](*pairs))


def test_same_seed_same_bands(rollouts):
    first, again, other = (
        bootstrap_bands(rollouts, "accuracy", n_resamples=30, seed=seed).samples
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_undefined_resamples_are_left_out(rollouts):
    labels = np.full_like(rollouts[0].labels, -1)
    labels[:2, 0] = [0, 1]  # most resamples lack a class
    done = replace(rollouts[0], labels=labels)
    bands = bootstrap_bands([done], "roc_auc", n_resamples=60, seed=0)
    assert np.isnan(bands.samples).any()
    assert np.isfinite(bands.quality_low).all()
    nothing = replace(done, labels=np.full_like(labels, -1))
    assert np.isnan(bootstrap_bands([nothing], "accuracy", n_resamples=5).quality_low).all()


def test_more_subjects_give_narrower_bands():
    widths = []
    for n in (30, 480):
        done = rollout(RandomPolicy(0.5, RunningMeanPredictor(2)), tiny_cohort(n))
        bands = bootstrap_bands([done], "accuracy", n_resamples=200)
        widths.append(float(bands.quality_high[0] - bands.quality_low[0]))
    assert widths[1] < widths[0] / 2


def test_twins_in_groups_give_the_bands_of_their_singles_and_without_groups_narrower_ones():
    """Every subject four times tells nothing new, and only the groups say so."""
    singles, policy = tiny_cohort(30), RandomPolicy(1.0, RunningMeanPredictor(2))
    rows = np.tile(np.arange(30), 4)
    copies = replace(singles.subset(rows), subjects=np.arange(120))
    grouped = replace(copies, groups=np.array([f"g{i:02d}" for i in rows]))
    widths, cost_widths = {}, {}
    for metric in ("accuracy", "ap", "tail_loss"):
        bands = bootstrap_bands([rollout(policy, c) for c in (singles, copies, grouped)], metric)
        widths[metric] = bands.quality_high - bands.quality_low
        cost_widths[metric] = bands.cost_high - bands.cost_low
        assert bands.samples[2] == pytest.approx(bands.samples[0], abs=0.03)
    for width in (*widths.values(), *cost_widths.values()):
        alone, apart, together = width
        assert together == pytest.approx(alone, rel=0.1)
        assert together > 1.5 * apart


def test_groups_of_unequal_size_are_drawn_whole(rollouts):
    sizes = np.arange(1, 9)  # of 36 subjects; 4 more in the last group
    groups = np.append(np.repeat(np.arange(8), sizes), [7] * 4)[::-1]
    done = replace(rollouts[0], groups=groups)
    bands = bootstrap_bands([done], "accuracy", n_resamples=5, seed=3)
    ranking = bootstrap_bands([done], "ap", n_resamples=5, seed=3)
    draws = np.random.default_rng(3).integers(8, size=(5, 8))
    for i, draw in enumerate(draws):
        rows = np.concatenate([np.flatnonzero(groups == g) for g in draw])
        pairs = evaluate_pairs(done.labels[rows], done.probabilities[rows])
        assert bands.samples[0, i] == pytest.approx(pairs["accuracy"])
        assert ranking.samples[0, i] == pytest.approx(pairs["ap"])


def test_pieces_of_a_rollout_keep_their_groups():
    cohort = replace(tiny_cohort(6), groups=np.array(list("aabbcc")))
    policy = RandomPolicy(0.5, RunningMeanPredictor(2))
    pieces = [rollout(policy, cohort.subset(np.arange(i, i + 3))) for i in (0, 3)]
    assert Rollout.concatenate(pieces).units.tolist() == [0, 0, 1, 1, 2, 2]
    plain = [replace(piece, groups=None) for piece in pieces]
    assert Rollout.concatenate(plain).units.tolist() == list(range(6))


def test_one_group_cannot_be_resampled(rollouts):
    with pytest.raises(ConfigError, match="two groups"):
        bootstrap_bands([replace(rollouts[0], groups=np.zeros(40))])


def test_one_subject_cannot_be_resampled(rollouts):
    cohort = tiny_cohort(3).subset(np.array([0]))
    done = rollout(RandomPolicy(0.5, RunningMeanPredictor(2)), cohort)
    with pytest.raises(ConfigError, match="at least two subjects"):
        bootstrap_bands([done])
