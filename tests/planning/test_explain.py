"""Why this test, now: numbers that belong together, and words for them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.model.nocta import NOCTA
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.explain import Recommendation, recommend
from nocta.planning.scoring import score_histories
from nocta.planning.search import FoundPlans
from nocta.tables.history_table import HistoryTable
from small_models import ESTIMATORS, WEIGHT, Parts


@pytest.fixture
def newcomer(tiny_parts: Parts) -> History:
    return History.empty(tiny_parts[2].catalog, tiny_parts[2].context[:1])


def seen_until(parts: Parts, time: int, row: int = 0) -> History:
    cohort = parts[2].subset(np.array([row]))
    asked = np.zeros(cohort.recorded.shape, dtype=bool)
    asked[:, : time + 1, 0] = True
    return History.of(cohort, asked)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_recommendation_is_the_first_part_of_its_plan(
    name: str, tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    found = tiny_models[name].decide(newcomer, WEIGHT)
    assert not found.stop
    assert found.time == min(found.plan.visits)
    assert found.features == found.plan.visits[found.time]
    assert 0 < found.cost <= found.plan.cost
    assert sum(found.prediction) == pytest.approx(1.0, abs=1e-5)


def test_the_plan_is_worth_its_cost(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    found = tiny_models["amortized"].decide(newcomer, WEIGHT)
    assert found.plan.objective < found.stopping.objective
    assert found.plan.expected_loss < found.stopping.expected_loss
    assert found.stopping.visits == {}
    assert found.stopping.cost == 0.0
    assert found.stopping.expected_loss == found.stopping.objective


def test_loss_and_charge_are_told_apart(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    model = tiny_models["amortized"]
    cheap, dear = model.decide(newcomer, 0.0), model.decide(newcomer, WEIGHT)
    assert cheap.plan.objective == pytest.approx(cheap.plan.expected_loss)
    # What is unavailable is not charged, whatever a unit of cost is worth.
    assert 0 < cheap.plan.expected_charge < cheap.plan.cost
    charge = (dear.plan.objective - dear.plan.expected_loss) / WEIGHT
    assert dear.plan.expected_charge == pytest.approx(charge)


def test_the_runner_up_is_another_plan_and_no_better(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    found = tiny_models["amortized"].decide(newcomer, WEIGHT)
    assert found.runner_up is not None
    assert found.runner_up.visits != found.plan.visits
    assert found.runner_up.objective >= found.plan.objective


@pytest.mark.parametrize("budget", [0.0, 1.5, 3.0])
def test_nothing_proposed_is_over_the_budget(
    budget: float, tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    found = tiny_models["amortized"].decide(newcomer, 0.0, remaining=budget)
    assert found.cost <= found.plan.cost <= budget
    assert found.stop == (budget == 0.0)
    if found.runner_up is not None:
        assert found.runner_up.cost <= budget


def test_it_stops_when_nothing_is_worth_its_cost(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    found = tiny_models["amortized"].decide(newcomer, 1e6)
    assert found == Recommendation(
        stop=True,
        time=None,
        features=[],
        cost=0.0,
        plan=found.plan,
        stopping=found.stopping,
        runner_up=found.runner_up,
        prediction=found.prediction,
        cost_weight=1e6,
        stop_reason="not worth its cost",
        cheapest=found.cheapest,
    )
    assert found.plan == found.stopping


def test_stopping_has_its_own_reason(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, newcomer: History
) -> None:
    model = tiny_models["amortized"]
    catalog = model.catalog_
    single = [np.zeros_like(catalog.open_slots) for _ in np.argwhere(catalog.open_slots)]
    for plan, (time, feature) in zip(single, np.argwhere(catalog.open_slots), strict=True):
        plan[time, feature] = True
    cheapest = min(float(catalog.cost_of(plan)) for plan in single)
    below, enough = (model.decide(newcomer, 0.0, remaining=cheapest - d) for d in (0.01, 0.0))
    assert (below.stop, below.stop_reason) == (True, "budget")
    assert below.cheapest == pytest.approx(cheapest)
    assert enough.stop_reason != "budget"
    assert model.decide(newcomer, 0.0).stop_reason is None
    once = replace(catalog, features=tuple(replace(f, at=(0,)) for f in catalog.features))
    nothing = recommend(model.policy(0.0), seen_until(tiny_parts, 2), once)
    assert (nothing.stop_reason, nothing.cheapest) == ("nothing left", None)
    assert model.decide(seen_until(tiny_parts, 3), 0.0).stop_reason == "last visit"


def test_an_estimate_below_zero_is_shown_as_zero(
    tiny_models: dict[str, NOCTA], newcomer: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_models["amortized"]
    before = model.decide(newcomer, WEIGHT)
    best_plans = PlanningPolicy.best_plans

    def lower(self: PlanningPolicy, observation: Observation) -> FoundPlans:
        return best_plans(self, observation).shifted(np.full(len(observation), -1e3))

    monkeypatch.setattr(PlanningPolicy, "best_plans", lower)
    found = model.decide(newcomer, WEIGHT)
    assert (found.time, found.features) == (before.time, before.features)
    for plan in (found.plan, found.stopping, found.runner_up):
        assert plan is not None
        assert plan.expected_loss == 0.0
        assert plan.expected_charge >= 0
    assert found.plan.objective == pytest.approx(before.plan.objective - 1e3)
    assert found.stopping.objective == pytest.approx(before.stopping.objective - 1e3)
    assert found.plan.expected_charge == pytest.approx(before.plan.expected_charge)
    table = HistoryTable(newcomer, np.array(["new"]), np.array([-1]), ())
    row = score_histories(model, table, WEIGHT).to_pylist()[0]
    assert (row["expected_loss"], row["expected_gain"]) == (0.0, 0.0)
    assert row["objective"] == pytest.approx(found.plan.objective)
    assert row["features"] == found.features


def test_time_is_the_last_visit_with_anything_asked_for(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model = tiny_models["amortized"]
    history = seen_until(tiny_parts, 1)
    assert model.decide(history, 0.0) == model.decide(history, 0.0, time=1)
    found = model.decide(history, 0.0, time=2)
    assert found.time == 3


def test_what_came_after_the_time_is_forgotten(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model = tiny_models["amortized"]
    assert model.decide(seen_until(tiny_parts, 3), 0.0, time=0) == model.decide(
        seen_until(tiny_parts, 0), 0.0, time=0
    )


def test_after_the_last_visit_there_is_nothing_to_decide(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    found = tiny_models["amortized"].decide(seen_until(tiny_parts, 3), 0.0)
    assert found.stop
    assert found.runner_up is None
    assert sum(found.prediction) == pytest.approx(1.0, abs=1e-5)


def test_it_is_for_one_subject_at_a_time_that_exists(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, newcomer: History
) -> None:
    model = tiny_models["amortized"]
    with pytest.raises(ConfigError, match="the history has 3"):
        model.decide(History.empty(tiny_parts[2].catalog, tiny_parts[2].context[:3]))
    with pytest.raises(ConfigError, match="use 0 to 3, or -1 before"):
        model.decide(newcomer, time=4)


def test_it_can_be_written_as_json(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    found = tiny_models["amortized"].decide(newcomer, WEIGHT).to_dict()
    again = json.loads(json.dumps(found))
    assert again["features"] == found["features"]
    assert again["plan"]["cost"] == found["plan"]["cost"]
