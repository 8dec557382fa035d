"""The exact NOCT policy: against enumeration and the known values."""

import numpy as np
import pytest

from nocta.exact import (
    build_graph,
    noct_policies,
    optimal_values,
    plan_tables,
    random_task,
    synthetic_task,
)


@pytest.mark.parametrize("loss", ["error", "cross-entropy"])
@pytest.mark.parametrize("seed", range(3))
def test_plans_and_replanning_equal_enumeration(enumerate_worlds, seed, loss):
    task = random_task(np.random.default_rng(seed), n_states=2, additive=seed % 2 == 0)
    graph = build_graph(task)
    worlds = enumerate_worlds(task, 0.15, loss)
    *_, root = plan_tables(graph, loss)
    best = worlds.best_plan(worlds.root)[0]
    assert root.values(0.15)[0] == pytest.approx(best, abs=1e-9)
    (dynamic,) = noct_policies(graph, [0.15], loss)
    assert dynamic.values(0.15, loss)[0][0] == pytest.approx(
        worlds.replanned(worlds.root), abs=1e-7
    )
    (committed,) = noct_policies(graph, [0.15], loss, replan=False)
    assert committed.values(0.15, loss)[0][0] == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_best_plan_in_few_rounds_equals_enumeration(enumerate_worlds, rounds):
    task = random_task(np.random.default_rng(9), n_states=2)
    *_, root = plan_tables(build_graph(task), prune=False)
    worlds = enumerate_worlds(task, 0.05, "error")
    expected = worlds.best_plan(worlds.root, rounds=rounds)[0]
    assert root.values(0.05, n_rounds=rounds)[0] == pytest.approx(expected, abs=1e-9)


def test_one_pass_serves_every_cost_weight(short_graph):
    weights = [0.05, 0.2, 0.35]
    together = noct_policies(short_graph, weights)
    for weight, policy in zip(weights, together, strict=True):
        (alone,) = noct_policies(short_graph, [weight])
        assert alone.evaluate() == policy.evaluate()


def test_committed_plan_ignores_values(short_graph):
    (policy,) = noct_policies(short_graph, [0.05], replan=False)
    values, _ = short_graph.task.sample(50, np.random.default_rng(0))
    acquired = np.ones(values.shape, dtype=bool)
    times, features = policy.next_acquisitions(values, acquired, 2)
    assert np.all(times == times[0])
    assert np.all(features == features[0])


def test_pruning_keeps_the_best_plan():
    graph = build_graph(synthetic_task(horizon=3, n_useless=1))
    *_, pruned = plan_tables(graph)
    *_, full = plan_tables(graph, prune=False)
    assert len(full.plans) == 8**3
    assert len(pruned.plans) <= 4**3
    for weight in (0.05, 0.2, 0.4):
        np.testing.assert_allclose(pruned.values(weight), full.values(weight), atol=1e-9)


def test_too_many_plans_are_refused(short_graph):
    with pytest.raises(ValueError, match="too many to try them all"):
        list(plan_tables(short_graph, max_entries=1000))


def test_unknown_loss_is_named(short_graph):
    with pytest.raises(ValueError, match="expected 'error' or 'cross-entropy'"):
        noct_policies(short_graph, [0.1], loss="hinge")


def test_replanning_lies_between_plan_and_optimum(short_graph):
    weight = 0.25
    *_, root = plan_tables(short_graph)
    (policy,) = noct_policies(short_graph, [weight])
    plan, replanned = root.values(weight)[0], policy.values(weight, "error")[0][0]
    assert plan < replanned <= optimal_values(short_graph, weight)[0][0] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "weights"),
    [("error", [0.3, 0.26, 0.18, 0.1]), ("cross-entropy", [0.8, 0.7, 0.5, 0.3])],
)
def test_paper_task_reaches_the_known_values(paper_graph, loss, weights):
    known = [(10.242, 0.9061), (11.549, 0.9579), (12.719, 0.9888), (13.724, 1.0)]
    policies = noct_policies(paper_graph, weights, loss)
    for policy, (cost, accuracy) in zip(policies, known, strict=True):
        found = policy.evaluate()
        assert found.cost == pytest.approx(cost, abs=5e-4)
        assert found.accuracy == pytest.approx(accuracy, abs=5e-5)
