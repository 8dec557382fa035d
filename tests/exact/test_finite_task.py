"""FiniteTask: shapes and rules are checked, samples follow the tables."""

import numpy as np
import pytest

from nocta.exact import FiniteTask, synthetic_task


def two_state_task(**changes):
    arguments = {
        "initial": [0.5, 0.5],
        "transition": [[0.9, 0.1], [0.2, 0.8]],
        "emissions": ([[1, 0], [0.25, 0.75]],),
        "costs": [1.0],
        "horizon": 3,
        "n_classes": 2,
        "state_labels": [0, 1],
    }
    return FiniteTask(**(arguments | changes))


def test_synthetic_labels_add_digits_at_zero():
    values, labels = synthetic_task().sample(500, np.random.default_rng(0))
    digit, counter = values[..., 0], values[..., 1]
    np.testing.assert_array_equal(labels, np.where(counter == 0, digit, 0).cumsum(axis=1))


def test_synthetic_counter_counts_down():
    values, _ = synthetic_task(n_starts=4).sample(2000, np.random.default_rng(1))
    before, after = values[:, :-1, 1], values[:, 1:, 1]
    assert np.all(after[before > 0] == before[before > 0] - 1)
    restarts = np.bincount(after[before == 0].astype(int)) / (before == 0).sum()
    np.testing.assert_allclose(restarts, 0.25, atol=0.02)


def test_variants_change_what_they_say():
    task = synthetic_task(n_digits=2, n_starts=4, horizon=5, costs=(1, 3), n_useless=2)
    assert (task.n_states, task.n_features, task.n_classes) == (8, 4, 6)
    assert task.cost_table()[2].tolist() == [1, 3, 1, 1]
    assert task.feature_names == ("digit", "counter", "useless0", "useless1")
    values, _ = task.sample(3000, np.random.default_rng(0))
    assert abs(np.corrcoef(values[:, 0, 0], values[:, 0, 2])[0, 1]) < 0.05


def test_costs_may_change_over_time():
    costs = np.arange(10.0).reshape(5, 2)
    task = synthetic_task(horizon=5, costs=costs, n_useless=1, useless_cost=7)
    np.testing.assert_array_equal(task.cost_table()[:, :2], costs)
    assert np.all(task.cost_table()[:, 2] == 7)


def test_samples_follow_time_varying_tables():
    flip, stay = np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)
    task = two_state_task(
        initial=[1.0, 0.0],
        transition=[flip, stay],
        emissions=(np.stack([np.full((2, 2), 0.5), np.eye(2), np.eye(2)[::-1]]),),
    )
    values, labels = task.sample(400, np.random.default_rng(0))
    assert np.all(labels == [0, 1, 1])
    assert np.all(values[:, 1:, 0] == [1, 0])
    assert 0.4 < values[:, 0].mean() < 0.6


def test_same_seed_same_subjects():
    task = synthetic_task()
    one, two = (task.sample(20, np.random.default_rng(3))[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"initial": [0.5, 0.6]}, "initial is not made of probabilities"),
        ({"transition": np.eye(3)}, r"transition has shape \(3, 3\), expected \(2, 2\)"),
        ({"costs": [1.0, 2.0]}, r"costs has shape \(2,\), expected \(1,\) or \(3, 1\)"),
        ({"costs": [-1.0]}, "costs must be finite and not negative"),
        ({"state_labels": [0, 2]}, "labels reach from 0 to 2, outside the 2 declared classes"),
        ({"increments": [0, 1]}, "give exactly one of increments and state_labels"),
        ({"state_labels": None, "increments": [0, -1]}, "increments must not be negative"),
        ({"state_labels": None, "increments": [0, 1]}, "labels reach from 3 to 3"),
        ({"horizon": 0}, "horizon is 0"),
        ({"feature_names": ("a", "b")}, "2 feature_names for 1 features"),
    ],
)
def test_impossible_tasks_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        two_state_task(**changes)


def test_all_problems_are_named_together():
    with pytest.raises(ValueError, match=r"initial .*; costs"):
        two_state_task(initial=[0.5, 0.6], costs=[np.inf])
