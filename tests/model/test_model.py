"""The facade: fit once, then roll out, trace, choose and decide."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import nocta
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, NotFittedError
from nocta.core.history import History
from nocta.core.rollout import Rollout
from nocta.model.nocta import NOCTA, planner_class
from nocta.tables.schema import Schema
from small_models import WEIGHT, Parts


def test_fit_returns_itself_and_remembers_the_data(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model = tiny_models["amortized"]
    assert model.catalog_ == tiny_parts[0].catalog
    assert model.classes_ == ("stable", "worse")
    schema = Schema.model_validate(model.schema_)
    assert schema.catalog() == model.catalog_
    assert list(schema.features) == ["blood", "scan"]


def test_parameters_follow_scikit_learn(tiny_models: dict[str, NOCTA]) -> None:
    model = tiny_models["contrastive"]
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "planner_")
    assert copy.set_params(seed=4).seed == 4


def test_a_model_that_is_not_fitted_says_so(tiny_parts: Parts) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        NOCTA().rollout(tiny_parts[2])


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf])
def test_cost_weights_are_numbers_of_at_least_zero(
    weight: float, tiny_models: dict[str, NOCTA]
) -> None:
    with pytest.raises(ConfigError, match="cost_weight"):
        tiny_models["amortized"].policy(weight)


def test_a_class_that_training_never_shows_is_refused(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    labels = np.where(train.labels == 1, -1, train.labels)
    with pytest.raises(DataError, match="class 'worse'"):
        NOCTA().fit(replace(train, labels=labels), val)


def test_the_frontier_has_a_point_per_cost_weight(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    frontier = tiny_models["amortized"].frontier(tiny_parts[2], [0.0, WEIGHT, 100.0])
    assert len(frontier) == 3
    assert sorted(frontier.costs)[0] == 0.0


def test_suggested_weights_spread_over_cost(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model, val = tiny_models["amortized"], tiny_parts[1]
    weights = model.suggest_cost_weights(val, n_points=4)
    assert 2 <= len(weights) <= 4
    costs = [model.rollout(val, w).cost for w in weights]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]
    assert weights == model.suggest_cost_weights(val, n_points=4)


def test_weights_are_suggested_under_the_rule_they_are_meant_for(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    plain = NOCTA.rollout

    def noted(self: NOCTA, cohort: Cohort, weight: float, **options: Any) -> Rollout:
        found = plain(self, cohort, weight, **options)
        seen.append(found.availability)
        return found

    monkeypatch.setattr(NOCTA, "rollout", noted)
    tiny_models["amortized"].suggest_cost_weights(tiny_parts[1], 2, availability="known")
    assert set(seen) == {"known"}


def test_rolling_out_is_the_same_every_time(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    first, again = (tiny_models["amortized"].rollout(tiny_parts[2], WEIGHT) for _ in range(2))
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    np.testing.assert_array_equal(first.history.requested, again.history.requested)


def test_committing_plans_once(tiny_models: dict[str, NOCTA], tiny_parts: Parts) -> None:
    model, test = tiny_models["amortized"], tiny_parts[2]
    committed = model.rollout(test, WEIGHT, replan=False)
    assert committed.history.requested.any()
    # Before the first visit only context tells subjects apart; the plan is fixed from then on.
    alone = model.rollout(test.subset(np.arange(1)), WEIGHT, replan=False)
    np.testing.assert_array_equal(committed.history.requested[:1], alone.history.requested)


def test_one_subject_is_decided_as_in_the_roll_out(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model, test = tiny_models["amortized"], tiny_parts[2]
    done = model.rollout(test, WEIGHT)
    for row in range(4):
        asked = done.history.requested[row].any(axis=1)
        first = int(asked.argmax()) if asked.any() else None
        found = model.decide(History.empty(test.catalog, test.context[row : row + 1]), WEIGHT)
        assert found.time == first
        if first is not None:
            names = [
                test.catalog.names[m] for m in np.flatnonzero(done.history.requested[row, first])
            ]
            assert found.features == names


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(ConfigError, match="use 'default' or 'paper'"):
        planner_class("best")


def test_importing_the_package_stays_quick() -> None:
    code = (
        "import sys, nocta; assert 'torch' not in sys.modules; assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(nocta.__all__) <= set(dir(nocta))
