"""Reference methods: each one keeps the contract, and spends what it was asked to spend."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.history import History
from nocta.core.operating_points import (
    CurveEnds,
    cost_and_loss,
    cost_of_everything,
    positions_on_curve,
)
from nocta.core.rollout import rollout
from nocta.evaluation.frontier import Frontier
from nocta.methods.reference.greedy import greedy_path, slot_blocks
from nocta.methods.reference.method import Static
from nocta.methods.registry import method_class
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.testing import (
    OraclePredictor,
    RunningMeanPredictor,
    check_policy,
    tiny_cohort,
    tiny_counter_cohort,
)
from small_models import Parts

NAMES = ("nothing", "everything", "first-visit", "periodic", "random", "static")
WITH_KNOB = NAMES[2:]


@pytest.fixture(scope="module")
def clinic():
    return tiny_cohort(90).split((0.4, 0.3, 0.3), seed=0)


@pytest.fixture(scope="module")
def counter():
    return tiny_counter_cohort(600).split((0.4, 0.3, 0.3), seed=0)


def fitted(name, parts, predictor, seed=0):
    return method_class(name)().fit(parts[0], parts[1], seed=seed, predictor=predictor)


@pytest.mark.parametrize("name", NAMES)
def test_reference_policies_keep_the_contract(name, clinic):
    method = fitted(name, clinic, RunningMeanPredictor(2))
    for setting in method.settings(clinic[1], 3):
        check_policy(lambda _, s=setting: method.policy(s), clinic[2])


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_plain_data(name, clinic):
    method = fitted(name, clinic, RunningMeanPredictor(2))
    settings = method.settings(clinic[1], 4)
    assert 1 <= len(settings) <= 4
    assert json.loads(json.dumps(settings)) == settings


@pytest.mark.parametrize("name", WITH_KNOB)
def test_settings_go_from_cheap_to_dear(name, counter):
    method = fitted(name, counter, OraclePredictor())
    costs = [rollout(method.policy(s), counter[1]).cost for s in method.settings(counter[1], 5)]
    assert len(costs) > 1
    assert costs == sorted(costs)


@pytest.mark.parametrize("name", ["random", "static"])
def test_operating_points_spread_along_the_curve(name, counter):
    method = fitted(name, counter, OraclePredictor())
    val = counter[1]
    points = [cost_and_loss(rollout(method.policy(s), val)) for s in method.settings(val, 6)]
    ends = CurveEnds.of(OraclePredictor(), val)
    found, length = positions_on_curve(*zip(*points, strict=True), ends)
    assert len(points) == 6
    gaps = np.diff([0.0, *found, length])
    assert gaps.max() <= 2.5 * length / 7


def test_random_is_matched_to_the_cost_on_other_subjects(counter):
    method = fitted("random", counter, OraclePredictor())
    for setting in method.settings(counter[1], 4):
        on_val, on_test = (rollout(method.policy(setting), part).cost for part in counter[1:])
        assert on_test == pytest.approx(on_val, abs=0.4)


def test_nothing_costs_nothing_and_everything_costs_most(clinic):
    nothing, everything = (fitted(n, clinic, RunningMeanPredictor(2)) for n in NAMES[:2])
    assert rollout(nothing.policy({}), clinic[2]).cost == 0.0
    done = rollout(everything.policy({}), clinic[2])
    assert done.cost == pytest.approx(cost_of_everything(clinic[2]))


def test_static_beats_random_at_equal_cost(counter):
    frontiers = []
    for name in ("static", "random"):
        method = fitted(name, counter, OraclePredictor())
        done = [rollout(method.policy(s), counter[2]) for s in method.settings(counter[1], 6)]
        frontiers.append(Frontier.of(done, "cross_entropy", name))
    low, high = max(f.costs.min() for f in frontiers), min(f.costs.max() for f in frontiers)
    static, random = (f.area(low, high) for f in frontiers)
    assert static < random - 0.1


def test_static_acquires_the_same_slots_for_everybody(counter):
    method = fitted("static", counter, OraclePredictor())
    requested = rollout(method.policy({"n_slots": 3}), counter[2]).history.requested
    assert (requested == requested[0]).all()
    assert requested[0].sum() == 3


def test_static_under_a_budget_buys_the_best_of_a_visit(counter):
    method = fitted("static", counter, OraclePredictor())
    done = rollout(method.policy({"n_slots": 8}), counter[2], budget=3.0)
    assert done.costs.max() == 3.0


def test_periodic_keeps_its_rhythm(counter):
    method = fitted("periodic", counter, OraclePredictor())
    policy = method.policy({"every": 2, "features": ["counter"]})
    requested = rollout(policy, counter[2]).history.requested
    assert requested[0].tolist() == [[False, True], [False, False], [False, True], [False, False]]


def test_periodic_never_offers_a_beaten_set(counter):
    method = fitted("periodic", counter, OraclePredictor())
    losses = [r.loss for r in method.rhythms_]
    assert losses == sorted(losses, reverse=True)


def test_first_visit_is_one_visit(clinic):
    method = fitted("first-visit", clinic, RunningMeanPredictor(2))
    for setting in method.settings(clinic[1], 5):
        visits = rollout(method.policy(setting), clinic[2]).history.acquired.any(axis=2)
        assert (visits.sum(axis=1) <= 1).all()


@pytest.mark.parametrize("name", ["static", "periodic", "random"])
def test_same_seed_same_method(name, clinic):
    first, again = (fitted(name, clinic, RunningMeanPredictor(2), seed=4) for _ in range(2))
    assert first.settings(clinic[1], 4) == again.settings(clinic[1], 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_without_a_predictor_says_so(name, clinic):
    with pytest.raises(ConfigError, match=f"'{name}' acquires for a predictor and got none"):
        method_class(name)().fit(clinic[0], clinic[1], seed=0)


@pytest.mark.parametrize("name", NAMES)
def test_an_unfitted_method_says_so(name, clinic):
    with pytest.raises(NotFittedError, match=f"'{name}' is not fitted yet"):
        method_class(name)().settings(clinic[1], 3)
    with pytest.raises(NotFittedError, match="call fit"):
        method_class(name)().policy({})


def test_static_may_choose_on_training_subjects_whom_the_judge_never_saw(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train, val, test = tiny_parts
    static = Static(choose_on="training").fit(train, val, seed=0, predictor=tiny_predictor)
    judge, cohort = static._judges(train, val)
    assert len(cohort) == len(train)
    rows = np.tile(np.arange(len(train)), 2)
    twice = History.of(train.subset(rows), np.ones_like(train.recorded)[rows])
    found = judge.predict_proba(twice)
    for fold, member in enumerate(tiny_predictor.members):
        own = np.flatnonzero(tiny_predictor.fold[rows] == fold)
        np.testing.assert_allclose(found[own], member.predict_proba(twice.subset(own)), atol=1e-6)
    on_train = greedy_path(judge, train, slot_blocks(train.catalog.open_slots), seed=0)
    np.testing.assert_array_equal(static.path_.plans, on_train.plans)
    check_policy(lambda _: static.policy(static.settings(val, 3)[1]), test)


def test_static_does_not_choose_on_subjects_its_judge_has_seen(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    with pytest.raises(ConfigError, match="never saw the subjects they judge"):
        Static(choose_on="training").fit(train, val, seed=0, predictor=RunningMeanPredictor(2))
    with pytest.raises(ConfigError, match="use 'validation' or 'training'"):
        Static(choose_on="test").check_options()  # type: ignore[arg-type]
