"""Risks, their p-values by hand, and which of several points may be offered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from nocta.core.errors import ConfigError
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.detection import Positive, detect, threshold_at
from nocta.evaluation.risk import (
    RISKS,
    UnitRisk,
    binomial_p_value,
    check_risk,
    controlled,
    hoeffding_bentkus_p_value,
    subjects_needed,
)
from nocta.methods.fixed import RandomPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort


@pytest.fixture(scope="module")
def done() -> Rollout:
    """Two subjects, three visits: the first is positive twice, the second never."""
    found = rollout(RandomPolicy(0.5, RunningMeanPredictor(2)), tiny_cohort(2))
    n_times = found.labels.shape[1]
    labels, chances = np.full((2, n_times), -1), np.full((2, n_times), 0.5)
    labels[:, :3] = [[1, 1, 0], [0, 0, 0]]
    chances[:, :3] = [[0.9, 0.4, 0.1], [0.6, 0.2, 0.2]]
    both = np.stack([1 - chances, chances], axis=2).astype(np.float32)
    return replace(found, labels=labels, probabilities=both)


def test_risks_are_shares_of_the_visits_of_a_subject(done: Rollout) -> None:
    assert RISKS["miss-rate"](done, Positive()).values.tolist() == [0.5]  # one subject counts
    assert RISKS["false-alarm-rate"](done, Positive()).values == pytest.approx([0, 1 / 3])
    assert RISKS["error"](done, Positive()).values == pytest.approx([1 / 3, 1 / 3])
    lower = Positive(threshold=0.3)
    assert RISKS["miss-rate"](done, lower).values.tolist() == [0.0]


def test_subjects_of_a_group_are_one_unit(done: Rollout) -> None:
    grouped = replace(done, groups=np.array(["a", "a"]))
    assert RISKS["error"](grouped, Positive()).values == pytest.approx([1 / 3])


@pytest.mark.parametrize(("wrong", "n", "limit"), [(0, 20, 0.1), (3, 50, 0.1), (5, 5, 0.5)])
def test_the_exact_p_value_is_a_sum_of_chances(wrong: int, n: int, limit: float) -> None:
    by_hand = sum(binom.pmf(k, n, limit) for k in range(wrong + 1))
    assert binomial_p_value(wrong, n, limit) == pytest.approx(by_hand)


def test_hoeffding_bentkus_by_hand() -> None:
    n, mean, limit = 100, 0.05, 0.1
    entropy = 0.05 * np.log(0.05 / 0.1) + 0.95 * np.log(0.95 / 0.9)
    hoeffding, bentkus = np.exp(-n * entropy), np.e * binom.cdf(5, n, limit)
    found = hoeffding_bentkus_p_value(mean, n, limit)
    assert found == pytest.approx(min(hoeffding, bentkus))
    assert hoeffding_bentkus_p_value(0.0, 50, 0.1) == pytest.approx(0.9**50)
    assert hoeffding_bentkus_p_value(0.2, 50, 0.1) == 1.0


def test_losses_of_zero_and_one_use_the_exact_test() -> None:
    zeros = UnitRisk(np.zeros(30))
    assert zeros.p_value(0.1) == binomial_p_value(0, 30, 0.1)
    shares = UnitRisk(np.full(30, 0.05))
    assert shares.p_value(0.1) == hoeffding_bentkus_p_value(0.05, 30, 0.1)
    assert UnitRisk(np.zeros(0)).p_value(0.1) == 1.0


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_p_values_are_small_no_more_often_than_they_say(n: int, share: float) -> None:
    """At the limit itself, p <= u happens in at most a share u of many repetitions."""
    rng = np.random.default_rng(0)
    losses = rng.binomial(1, 0.2 / share, size=(800, n)) * share  # true risk 0.2
    p_values = np.array([UnitRisk(row).p_value(0.2) for row in losses])
    for level in (0.05, 0.1, 0.3):
        assert np.mean(p_values <= level) <= binom.ppf(0.999, 800, level) / 800


def test_a_fixed_sequence_stops_at_the_first_failure() -> None:
    p_values = [0.01, 0.2, 0.001]
    assert controlled(p_values, 0.1, "fixed-sequence").tolist() == [True, False, False]
    assert controlled(p_values, 0.1, "bonferroni").tolist() == [True, False, True]
    assert not controlled([], 0.1, "fixed-sequence").any()


def test_the_number_of_subjects_needed_is_the_smallest() -> None:
    assert subjects_needed(0.0, 0.1, 0.1, binary=True) == 22
    assert 0.9**22 <= 0.1 < 0.9**21
    needed = subjects_needed(0.05, 0.1, 0.1, binary=False)
    assert needed is not None
    assert hoeffding_bentkus_p_value(0.05, needed, 0.1) <= 0.1
    assert hoeffding_bentkus_p_value(0.05, needed - 2, 0.1) > 0.1
    assert subjects_needed(0.2, 0.1, 0.1, binary=True) is None


def test_a_misspelt_risk_is_met_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"no risk 'mis-rate'\. Did you mean 'miss-rate'"):
        check_risk("mis-rate")


def test_the_threshold_keeps_the_specificity() -> None:
    negatives = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    for level in (0.0, 0.4, 0.8, 1.0):
        below = (negatives < threshold_at(negatives, level)).mean()
        assert below >= level
    truth = np.array([[True, False], [True, False]])
    scores = np.array([[0.5, 0.1], [0.05, 0.4]])
    found = detect(truth, scores, np.ones((2, 2), dtype=bool), 0.5)
    assert (found.sensitivity, found.cases) == (0.5, 0.5)


def test_positive_classes_have_names() -> None:
    classes = ("stable", "worse", "dead")
    assert Positive.named(["dead", "worse"], classes).classes == (1, 2)
    assert Positive.named(None, classes[:2]).classes == (1,)
    for names, said in (
        (None, "3 classes .* say which are positive"),
        (["ded"], "No class 'ded'. Did you mean 'dead'"),
        (list(classes), "Every class is positive"),
    ):
        with pytest.raises(ConfigError, match=said):
            Positive.named(names, classes)
