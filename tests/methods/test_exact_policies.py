"""The exact policies in the environment do what the belief graph says they do."""

from __future__ import annotations

import numpy as np
import pytest
from exact_policies import ExactNoctPolicy, OptimalPolicy

from nocta.core.rollout import rollout
from nocta.exact import build_graph, synthetic_task
from nocta.testing import check_policy, tiny_counter_cohort


@pytest.fixture(scope="module")
def graph():
    return build_graph(synthetic_task(horizon=4))


@pytest.fixture(scope="module")
def cohort():
    return tiny_counter_cohort(3000)


@pytest.mark.parametrize("kind", [OptimalPolicy, ExactNoctPolicy])
def test_exact_policies_keep_the_contract(kind, graph):
    check_policy(lambda _: kind(graph, 0.1), tiny_counter_cohort(24))


@pytest.mark.parametrize("cost_weight", [0.05, 0.3, 0.6])
@pytest.mark.parametrize("kind", [OptimalPolicy, ExactNoctPolicy])
def test_a_rollout_reaches_the_exact_expectation(kind, cost_weight, graph, cohort):
    policy = kind(graph, cost_weight, loss="error")
    expected = policy.graph_policy.evaluate()
    done = rollout(policy, cohort)
    found = done.summary()
    assert found["cost"] == pytest.approx(expected.cost, abs=0.12)
    assert found["accuracy"] == pytest.approx(expected.accuracy, abs=0.02)
    assert found["cross_entropy"] == pytest.approx(expected.cross_entropy, abs=0.04)


def test_a_higher_cost_weight_never_spends_more(graph, cohort):
    costs = [rollout(OptimalPolicy(graph, w), cohort).cost for w in (0.01, 0.2, 0.5, 5.0)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0.0


def test_committing_is_not_replanning(graph, cohort):
    committed = rollout(ExactNoctPolicy(graph, 0.3, "error", replan=False), cohort)
    requested = committed.history.requested
    assert (requested == requested[0]).all()
    assert not (
        rollout(ExactNoctPolicy(graph, 0.3, "error"), cohort).history.requested == requested
    ).all()


def test_missing_values_are_passed_through(graph):
    cohort = tiny_counter_cohort(40)
    cohort.values[:, 0] = np.nan
    for rule in ("on-arrival", "known"):
        done = rollout(OptimalPolicy(graph, 0.01), cohort, availability=rule)
        assert done.history.acquired[:, 1:].any()


def test_a_task_may_be_given_in_place_of_its_graph(cohort):
    policy = OptimalPolicy(synthetic_task(horizon=4), 0.3)
    assert rollout(policy, cohort.subset(slice(0, 20))).cost > 0
