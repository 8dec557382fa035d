"""Theorem 3.1 and Proposition 3.2, on tasks drawn at random and on tasks made to be strict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nocta.exact import (
    FiniteTask,
    TheoryCheck,
    build_graph,
    check_theory,
    lower_bound_gaps,
    noct_policies,
    optimal_policy,
    planning_is_not_enough_task,
    random_task,
    replanning_gaps,
    replanning_pays_task,
)


def rows(draw, n_rows, n_columns):
    """Probability rows from small whole numbers, so that certainty and ties are common."""
    row = st.lists(st.integers(0, 3), min_size=n_columns, max_size=n_columns)
    table = np.array([draw(row.filter(any)) for _ in range(n_rows)], dtype=float)
    return table / table.sum(axis=1, keepdims=True)


@st.composite
def finite_tasks(draw):
    n_states, horizon, n_features = (draw(st.integers(1, k)) for k in (3, 4, 2))
    rule = draw(st.lists(st.integers(0, 2), min_size=n_states, max_size=n_states))
    additive = draw(st.booleans())
    cost = st.sampled_from([0.0, 0.1, 0.25, 1.0])
    costs = draw(st.lists(cost, min_size=n_features * horizon, max_size=n_features * horizon))
    return FiniteTask(
        initial=rows(draw, 1, n_states)[0],
        transition=rows(draw, n_states, n_states),
        emissions=tuple(rows(draw, n_states, 2) for _ in range(n_features)),
        costs=np.reshape(costs, (horizon, n_features)),
        horizon=horizon,
        n_classes=2 * horizon + 1,
        increments=rule if additive else None,
        state_labels=None if additive else rule,
    )


losses = st.sampled_from(["error", "cross-entropy"])
weights = st.sampled_from([0.0, 0.05, 0.3, 1.0, 3.0])


@settings(max_examples=60, deadline=None)
@given(task=finite_tasks(), weight=weights, loss=losses)
def test_minus_noct_never_exceeds_the_optimal_value(task, weight, loss):
    graph = build_graph(task)
    gaps = lower_bound_gaps(graph, weight, loss)
    assert len(gaps) == task.horizon + 1
    for per_level in gaps:
        assert [len(g) for g in per_level] == [level.n_nodes for level in graph.levels]
        assert min(g.min() for g in per_level) >= -1e-8
    # Without a round to spend, both predict with what they have.
    assert max(np.abs(g).max() for g in gaps[0]) <= 1e-8


@settings(max_examples=60, deadline=None)
@given(task=finite_tasks(), weight=weights, loss=losses)
def test_replanning_is_never_worse_than_committing(task, weight, loss):
    assert min(g.min() for g in replanning_gaps(build_graph(task), weight, loss)) >= -1e-7


@pytest.mark.parametrize("loss", ["error", "cross-entropy"])
def test_lower_bound_is_strict_where_adapting_pays(loss):
    graph = build_graph(planning_is_not_enough_task())
    gaps = lower_bound_gaps(graph, 1.0, loss)
    assert gaps[2][0][0] > 0.05


def test_replanning_falls_short_of_the_optimum():
    graph = build_graph(planning_is_not_enough_task())
    (noct,) = noct_policies(graph, [1.0], "error")
    replanned, best = (p.values(1.0, "error")[0][0] for p in (noct, optimal_policy(graph, 1.0)))
    assert best > replanned + 0.05


def test_lower_bound_gap_worked_by_hand():
    # Optimal: risk (.01), then illness (.2) for half, so 1.75 - .11; the best plan: 1.75 - .2.
    gaps = lower_bound_gaps(build_graph(planning_is_not_enough_task()), 1.0, "error")
    assert [g[0][0] for g in gaps] == pytest.approx([0.0, 0.0, 0.09])


def test_replanning_gain_worked_by_hand():
    # Half of the subjects are spared the second acquisition, which costs .2.
    gaps = replanning_gaps(build_graph(replanning_pays_task()), 1.0, "error")
    assert gaps[0][0] == pytest.approx(0.1)
    assert np.allclose(gaps[1], 0.0)


def test_replanning_gain_is_strict_for_cross_entropy():
    gaps = replanning_gaps(build_graph(replanning_pays_task()), 1.0, "cross-entropy")
    assert gaps[0][0] == pytest.approx(0.1)


def test_summary_holds_and_can_fail():
    check = check_theory(build_graph(random_task(np.random.default_rng(0))), 0.2)
    assert check.holds()
    assert check.n_comparisons == check.n_beliefs * 4
    assert check.bound_largest >= check.bound_smallest
    assert not TheoryCheck(1, 1, -0.1, 0.0, 0.0, 0.0).holds()
    assert not TheoryCheck(1, 1, 0.0, 0.0, -0.1, 0.0).holds()
