"""The cheapest operating point that is as good as the best, up to one standard error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.one_error import (
    UnitLosses,
    cheapest_within_one_error,
    paired_excess,
    within_one_error,
)
from nocta.methods.fixed import RandomPolicy
from nocta.testing import RunningMeanPredictor, tiny_cohort


@pytest.fixture(scope="module")
def done() -> Rollout:
    return rollout(RandomPolicy(0.5, RunningMeanPredictor(2)), tiny_cohort(60))


def shifted(done: Rollout, chance: float, cost: float) -> Rollout:
    """The same subjects; the true class always gets this probability."""
    truth = np.eye(2)[np.maximum(done.labels, 0)]
    costs = np.zeros_like(done.cost_per_visit)
    costs[:, 0] = cost
    chances = np.where(truth > 0, chance, 1 - chance).astype(np.float32)
    return replace(done, probabilities=chances, cost_per_visit=costs)


def test_the_error_of_a_paired_difference_by_hand() -> None:
    first = UnitLosses(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]))
    second = UnitLosses(np.array([1.0, 1.0, 1.0]), np.array([2.0, 1.0, 1.0]))
    mean, error = paired_excess(first, second)
    assert mean == pytest.approx(3 / 4)
    spread = np.array([2.0, 0.0, 1.0]) - 0.75 * np.array([2.0, 1.0, 1.0])
    assert error == pytest.approx(np.sqrt(1.5 * (spread**2).sum()) / 4)


def test_equal_losses_cost_decides(done: Rollout) -> None:
    points = [shifted(done, 0.8, 9.0), shifted(done, 0.8, 2.0), shifted(done, 0.8, 5.0)]
    assert cheapest_within_one_error(points) == 1


def test_a_point_that_is_worse_for_everybody_is_not_taken(done: Rollout) -> None:
    points = [shifted(done, 0.79, 1.0), shifted(done, 0.8, 5.0)]
    assert cheapest_within_one_error(points) == 1


@pytest.mark.parametrize(("n_wrong", "taken"), [(1, 1), (6, 0)])
def test_a_difference_that_may_be_chance_is_ignored(
    done: Rollout, n_wrong: int, taken: int
) -> None:
    """One subject of sixty may be chance; six are not."""
    best, cheap = shifted(done, 0.8, 5.0), shifted(done, 0.8, 1.0)
    labeled = np.flatnonzero((done.labels >= 0).any(axis=1))[:n_wrong]
    cheap.probabilities[labeled] = 1 - cheap.probabilities[labeled]
    assert cheapest_within_one_error([best, cheap]) == taken
    assert within_one_error([best, cheap])[1] == 0


def test_subjects_of_a_group_count_as_one(done: Rollout) -> None:
    groups = np.repeat(np.arange(15), 4)
    whole = UnitLosses.of(replace(done, groups=groups))
    assert len(whole.sums) == 15
    assert whole.mean == pytest.approx(UnitLosses.of(done).mean)
