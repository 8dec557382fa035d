"""When a visit's results are shown: after it, or at once to policies that act within visits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.environment import Environment, Results
from nocta.core.errors import BudgetTooSmall, ConfigError, PlanError
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.rollout import rollout
from nocta.methods.fixed import RandomPolicy
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots
from nocta.testing import LEAKY_POLICIES, RunningMeanPredictor, check_policy, tiny_cohort

BLOOD, SCAN, NOTHING = [True, False], [False, True], [False, False]


class OneByOne(Policy):
    """Orders the first slot that is open and affordable, one after the other."""

    acts_within_visit = True

    def __init__(self) -> None:
        self.predictor = RunningMeanPredictor(2)

    def decide(self, observation: Observation) -> Decision:
        takes = affordable_slots(observation).reshape(len(observation), -1)
        return acquire_slot(np.where(takes.any(axis=1), takes.argmax(axis=1), -1), observation)


@pytest.fixture
def cohort() -> Cohort:
    return tiny_cohort(12)


def go(env: Environment, time: int, features: list[bool]) -> Observation:
    """Everybody goes to a slot and acquires the same; what is seen next."""
    seen = env.observe()
    n = len(seen)
    env.step(seen, Decision(np.full(n, time), np.tile(features, (n, 1))), within_visit=True)
    return env.observe()


def test_results_are_pending_until_the_visit_is_ended(cohort: Cohort) -> None:
    env = Environment(cohort)
    seen = go(env, 1, BLOOD)
    assert seen.waiting.all()
    assert seen.pending is not None
    assert seen.pending[:, 1, 0].all()
    assert np.isnan(seen.history.values).all()
    assert not seen.history.requested.any()
    assert seen.open_slots[:, 1].tolist() == [[False, True]] * 12
    seen = go(env, 1, NOTHING)
    assert not seen.waiting.any()
    assert np.array_equal(seen.history.acquired[:, 1, 0], cohort.recorded[:, 1, 0])
    assert not seen.open_slots[:, 1].any()


def test_moving_on_shows_the_results_too(cohort: Cohort) -> None:
    env = Environment(cohort)
    go(env, 0, BLOOD)
    seen = go(env, 2, SCAN)
    assert np.array_equal(seen.history.acquired[:, 0, 0], cohort.recorded[:, 0, 0])
    assert not seen.history.requested[:, 2].any()


def test_results_at_once_are_shown_within_the_visit(cohort: Cohort) -> None:
    seen = go(Environment(cohort, results="at-once"), 1, BLOOD)
    assert not seen.waiting.any()
    assert np.array_equal(seen.history.acquired[:, 1, 0], cohort.recorded[:, 1, 0])
    assert seen.open_slots[:, 1, 1].all()


def test_a_visit_that_was_ended_stays_closed(cohort: Cohort) -> None:
    env = Environment(cohort)
    go(env, 1, BLOOD)
    go(env, 1, NOTHING)
    with pytest.raises(PlanError, match="goes back to slot 1"):
        go(env, 1, SCAN)


def test_what_is_pending_is_not_ordered_twice(cohort: Cohort) -> None:
    env = Environment(cohort)
    go(env, 1, BLOOD)
    with pytest.raises(PlanError, match="requests 'blood' at slot 1"):
        go(env, 1, BLOOD)


def test_the_last_visit_ends_the_episode(cohort: Cohort) -> None:
    env = Environment(cohort)
    go(env, 3, BLOOD)
    assert env.active.all()
    go(env, 3, NOTHING)
    assert not env.active.any()


def test_pending_results_count_as_paid_whether_they_exist_or_not(cohort: Cohort) -> None:
    assert not cohort.recorded[:, 1, 0].all()
    env = Environment(cohort, budget=4.0)
    seen = go(env, 1, BLOOD)
    assert (seen.remaining == 4.0 - 1.5).all()
    with pytest.raises(BudgetTooSmall, match=r"costs 3, but only 2\.5 is left"):
        go(env, 1, SCAN)
    seen = go(env, 1, NOTHING)
    assert np.array_equal(seen.remaining, np.where(cohort.recorded[:, 1, 0], 2.5, 4.0))


def test_fees_of_a_visit_are_due_once_while_it_is_pending(cohort: Cohort) -> None:
    dear = replace(cohort, catalog=replace(cohort.catalog, visit_fee=10.0))
    env = Environment(dear, budget=14.5)
    assert (go(env, 0, BLOOD).remaining == 3.0).all()
    assert (go(env, 0, SCAN).remaining == 0.0).all()


def test_missing_results_may_be_charged(cohort: Cohort) -> None:
    env = Environment(cohort, budget=4.0, charge_missing=True)
    go(env, 1, BLOOD)
    assert (go(env, 1, NOTHING).remaining == 2.5).all()


def test_predictions_and_the_bill_know_everything_in_the_end(cohort: Cohort) -> None:
    found = rollout(OneByOne(), cohort)
    assert np.array_equal(found.history.acquired, cohort.recorded)
    np.testing.assert_allclose(found.costs, cohort.catalog.cost_of(cohort.recorded))
    assert found.results == "after-visit"


def test_whoever_does_not_act_within_visits_does_not_notice(cohort: Cohort) -> None:
    policy = RandomPolicy(0.5, RunningMeanPredictor(2))
    after, at_once = (
        rollout(policy, cohort, budget=7.0, results=r, seed=3) for r in ("after-visit", "at-once")
    )
    assert np.array_equal(after.probabilities, at_once.probabilities)
    assert np.array_equal(after.cost_per_visit, at_once.cost_per_visit)
    assert np.array_equal(after.n_decisions, at_once.n_decisions)
    assert np.array_equal(after.history.requested, at_once.history.requested)


def test_a_policy_that_acts_within_visits_keeps_the_contract(cohort: Cohort) -> None:
    check_policy(lambda _: OneByOne(), cohort, n_alone=2)


def test_the_contract_refuses_a_look_at_pending_results(cohort: Cohort) -> None:
    with pytest.raises(ValueError, match="a result that is pending"):
        check_policy(LEAKY_POLICIES["result"], tiny_cohort(40))


def test_an_unknown_rule_says_what_is_known(cohort: Cohort) -> None:
    wrong: Results = "soon"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="use 'after-visit' or 'at-once'"):
        Environment(cohort, results=wrong)
