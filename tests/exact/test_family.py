"""The family of tasks, and what exact NOCT and the optimum reach on it."""

from __future__ import annotations

import dataclasses
from typing import get_args

import numpy as np
import pytest

from nocta.exact import (
    NAMED_TASKS,
    Loss,
    accuracy_at,
    build_graph,
    family_member,
    noct_curve,
    optimal_frontier,
    optimal_policy,
    solve_yardstick,
    synthetic_task,
    yardstick_on,
)
from nocta.exact.graph import BeliefGraph


@pytest.fixture(scope="module")
def late() -> BeliefGraph:
    return build_graph(family_member("late-starts").task)


def test_late_starts_need_far_more_with_open_loop_plans(late: BeliefGraph) -> None:
    """Two digits, countdowns from 1, 2 or 3, costs 1 and .5, horizon 8: the numbers to beat."""
    optimum = optimal_frontier(late)
    assert (optimum.cost[-1], optimum.accuracy[-1]) == pytest.approx((3.735, 1.0), abs=1e-3)
    for loss, full in {"error": 5.019, "cross-entropy": 5.537}.items():
        curve = noct_curve(late, loss)
        assert (curve.cost[-1], curve.accuracy[-1]) == pytest.approx((full, 1.0), abs=1e-3)
        middle = (curve.cost > 2.9) & (curve.cost < 4.1)
        share = curve.accuracy[middle] / accuracy_at(optimum, curve.cost[middle])
        assert middle.any()
        assert ((share > 0.9) & (share < 0.96)).all()


@pytest.mark.parametrize("weight", [0.5, 0.7, 0.9])
def test_open_loop_plans_give_up_where_the_optimum_gains_a_lot(
    late: BeliefGraph, weight: float
) -> None:
    assert noct_curve(late).cost_weight.max() < 0.5  # above it, nothing is acquired
    best, nothing = optimal_policy(late, weight).evaluate(), optimal_frontier(late).accuracy[0]
    assert 0.25 < best.accuracy - nothing < 0.36


def test_a_useless_feature_changes_nothing(late: BeliefGraph) -> None:
    plain = solve_yardstick(late)
    noisy = solve_yardstick(NAMED_TASKS["late-starts-useless"].task)
    for ours, theirs in zip(plain.curves, noisy.curves, strict=True):
        np.testing.assert_allclose(ours.cost, theirs.cost, atol=1e-9)
        np.testing.assert_allclose(ours.accuracy, theirs.accuracy, atol=1e-9)


@pytest.mark.parametrize("loss", get_args(Loss))
@pytest.mark.parametrize("number", [4, 6, 7, 9])
def test_exact_noct_begins_and_ends_with_the_optimum_and_never_beats_it(
    number: int, loss: Loss
) -> None:
    yardstick = solve_yardstick(family_member(number).task)
    best, noct = yardstick.curve("optimum", loss), yardstick.curve("noct", loss)
    name = "accuracy" if loss == "error" else "cross_entropy"
    ours, theirs = getattr(noct, name), np.interp(noct.cost, best.cost, getattr(best, name))
    assert noct.cost[0] == best.cost[0] == 0.0
    assert ours[[0, -1]] == pytest.approx(getattr(best, name)[[0, -1]])
    assert ((ours - theirs) * (1 if loss == "error" else -1) <= 1e-4).all()


def test_the_cross_entropy_frontier_is_no_worse_than_policies_for_either_loss() -> None:
    graph = build_graph(synthetic_task(horizon=4))
    frontier = optimal_frontier(graph, loss="cross-entropy")
    for loss in get_args(Loss):
        for weight in (0.05, 0.3, 0.6):
            found = optimal_policy(graph, weight, loss).evaluate()
            best = np.interp(found.cost, frontier.cost, frontier.cross_entropy)
            assert found.cross_entropy >= best - 1e-4


def test_a_yardstick_on_subjects_is_what_they_would_have_seen(late: BeliefGraph) -> None:
    expected = solve_yardstick(late)
    values, labels = late.task.sample(4000, np.random.default_rng(0))
    measured = yardstick_on(expected, late, values, labels)
    for ours, theirs in zip(measured.curves, expected.curves, strict=True):
        assert (ours.policy, ours.loss) == (theirs.policy, theirs.loss)
        assert ours.cost[0] == 0.0
        assert ours.accuracy[-1] == 1.0
        np.testing.assert_allclose(ours.cost, theirs.cost, atol=0.05)
        np.testing.assert_allclose(ours.accuracy, theirs.accuracy, atol=0.015)
        np.testing.assert_allclose(ours.cross_entropy, theirs.cross_entropy, atol=0.03)
        assert (ours.accuracy != theirs.accuracy).any()
    # Followed step by step, the policy acquires the same.
    policy = optimal_policy(late, 0.5)
    acquired = policy.acquired_of(values[:1])
    times, features = policy.next_acquisitions(values[:1], acquired, 0)
    assert acquired[0, 0].tolist() == [False, True]
    assert acquired[0, times[0]].tolist() == features[0].tolist()
    assert not acquired[0, 1 : times[0]].any()


def test_numbered_tasks_are_drawn_once_and_differ() -> None:
    members = [family_member(number) for number in range(10)]
    assert members == [family_member(number) for number in range(10)]
    assert len(set(members)) == 10
    for field in ("n_digits", "starts", "horizon", "costs", "n_useless"):
        assert len({getattr(member, field) for member in members}) > 1, field
    first = str(members[0])
    assert first.startswith("2 digits (cost 1.5), countdowns from 0, 1 or 2 (cost 0.5)")


def test_the_description_of_a_member_is_what_is_sampled() -> None:
    member = dataclasses.replace(NAMED_TASKS["late-starts"], starts=(2, 4))
    values, labels = member.task.sample(200, np.random.default_rng(0))
    counters = values[..., 1]
    assert set(counters[:, 0]) == {2.0, 4.0}
    after_zero = counters[:, 1:][counters[:, :-1] == 0]
    assert set(after_zero) == {2.0, 4.0}
    np.testing.assert_array_equal(labels, np.where(counters == 0, values[..., 0], 0).cumsum(axis=1))


def test_a_task_where_nothing_pays_has_a_curve_of_one_point() -> None:
    curve = noct_curve(synthetic_task(n_digits=1, horizon=2))
    assert (curve.cost.tolist(), curve.accuracy.tolist()) == ([0.0], [1.0])
