"""Goals take the point they promise to take, from roll-outs with known costs and qualities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.core.rollout import Rollout, rollout
from nocta.methods.fixed import RandomPolicy
from nocta.model.choice.choose import choose_point, make_goal
from nocta.model.choice.default import RULE, saved_default
from nocta.model.choice.goals import stairs
from nocta.model.nocta import NOCTA
from nocta.testing import RunningMeanPredictor, tiny_cohort
from small_models import Parts

CLASSES = ("stable", "worse")
COSTS = (1.0, 10.0, 20.0, 50.0)
#: Share of the subjects whose visits are all predicted rightly, by point.
RIGHT = (0.6, 0.8, 0.95, 0.96)
SETTINGS = [{"cost_weight": 1.0 / cost} for cost in COSTS]


def points(n: int = 400) -> list[Rollout]:
    done = rollout(RandomPolicy(0.5, RunningMeanPredictor(2)), tiny_cohort(n))
    found = []
    for cost, right in zip(COSTS, RIGHT, strict=True):
        truth = np.eye(2)[np.maximum(done.labels, 0)]
        good = (np.arange(n) % 100 < 100 * right)[:, None, None]
        chances = np.where(good, 0.1 + 0.8 * truth, 0.9 - 0.8 * truth).astype(np.float32)
        costs = np.zeros_like(done.cost_per_visit)
        costs[:, 0] = cost
        found.append(replace(done, probabilities=chances, cost_per_visit=costs))
    return found


@pytest.fixture(scope="module")
def rollouts() -> list[Rollout]:
    return points()


@pytest.mark.parametrize(
    ("asked", "cost"),
    [
        ({"at_most_cost": 25.0}, 20.0),
        ({"within": 0.02, "metric": "accuracy"}, 20.0),
        ({"within": 0.0, "metric": "accuracy"}, 50.0),
        ({"within": 0.5, "metric": "cross_entropy"}, 20.0),
        ({"sensitivity": 0.75, "specificity": 0.7}, 10.0),
        ({"cost_per_case": 1e6, "specificity": 0.5}, 50.0),
        ({"risk": "error", "at_most": 0.1}, 20.0),
        ({"risk": "miss-rate", "at_most": 0.3}, 10.0),
        ({"risk": "false-alarm-rate", "at_most": 0.1, "control": "bonferroni"}, 20.0),
    ],
)
def test_each_goal_takes_its_point(
    rollouts: list[Rollout], asked: dict[str, Any], cost: float
) -> None:
    found = choose_point(SETTINGS, rollouts, make_goal(CLASSES, **asked))
    assert found.setting == {"cost_weight": 1.0 / cost}, found.reason
    assert found.reason in found.point.reason
    assert found.cost.low[found.index] <= cost <= found.cost.high[found.index]
    assert found.to_dict()["measured"]["cost"]["value"] == cost


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"at_most_cost": 0.5}, "every point costs more than 0.50; the cheapest 1.00"),
        ({"sensitivity": 0.999}, "no point reaches 100% sensitivity"),
        ({"risk": "error", "at_most": 0.01}, "more subjects would not help"),
        ({"risk": "error", "at_most": 0.045}, "about .* subjects that count it could be promised"),
    ],
)
def test_what_cannot_be_had_is_said_with_what_is_needed(
    rollouts: list[Rollout], asked: dict[str, Any], why: str
) -> None:
    found = choose_point(SETTINGS, rollouts, make_goal(CLASSES, **asked))
    assert found.setting is None
    with pytest.raises(ConfigError, match=why):
        _ = found.point


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Ask for one of --sensitivity.*found none of them"),
        ({"within": 0.1, "at_most_cost": 3.0}, "found --at-most-cost and --within"),
        ({"sensitivity": 90.0}, "sensitivity is 90; use a share from 0 to 1"),
        ({"risk": "error"}, "--risk needs --at-most"),
        ({"risk": "error", "at_most": 0.1, "confidence": 1.0}, "nothing is certain"),
        ({"risk": "error", "at_most": 0.1, "control": "none"}, "use 'fixed-sequence'"),
        ({"within": 0.1, "metric": "app"}, "no metric 'app'"),
        ({"at_most_cost": -1.0}, "use a number of at least 0"),
    ],
)
def test_impossible_requests_are_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_goal(CLASSES, **asked)


def test_fewer_subjects_promise_less(rollouts: list[Rollout]) -> None:
    goal = make_goal(CLASSES, risk="error", at_most=0.1)
    few = choose_point(SETTINGS, points(100), goal)
    assert few.index is None or few.index >= choose_point(SETTINGS, rollouts, goal).index


def test_steps_that_a_mixture_beats_are_passed_over() -> None:
    costs, gains = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 0.1, 0.6, 0.7])
    assert stairs(costs, gains) == [0, 2, 3]


def test_a_model_without_a_default_says_how_to_get_one() -> None:
    with pytest.raises(ConfigError, match=r"model\.choose\(val, within=0\.01\)"):
        saved_default({})


def test_folders_of_earlier_versions_use_their_middle_point() -> None:
    found = saved_default({"cost_weights": [4.0, 3.0, 2.0, 1.0]})
    assert found.cost_weight == 3.0
    assert "nocta choose" in found.note


def test_python_uses_the_default_point_and_choose_changes_it(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model = NOCTA(**tiny_models["amortized"].get_params())
    model.__dict__ |= tiny_models["amortized"].__dict__
    val, test = tiny_parts[1:]
    before = model.default_point
    assert before.reason == RULE
    assert before.cost_weight in model.record_["cost_weights"]
    same = model.rollout(test, before.cost_weight, budget=3.0)
    plain = model.rollout(test, budget=3.0)
    np.testing.assert_array_equal(plain.history.requested, same.history.requested)
    found = model.choose(val, within=0.0, metric="cross_entropy")
    assert model.default_point.setting == found.setting
    assert model.policy().cost_weight == found.setting["cost_weight"]
    nothing = model.choose(val, risk="error", at_most=0.001)
    assert nothing.setting is None
    assert model.default_point.setting == found.setting  # as it was
