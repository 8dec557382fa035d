"""Every built-in method obeys constraints, whatever it learned."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from short_fits import fitted

from nocta.core.cohort import Cohort
from nocta.core.constraints import Constraints
from nocta.core.environment import Environment
from nocta.core.errors import BudgetTooSmall
from nocta.core.history import History
from nocta.methods.registry import METHODS
from nocta.methods.saving import SavedMethod
from nocta.model.nocta import NOCTA
from nocta.predictors.cross_fitted import CrossFittedPredictor
from obedience import broken
from small_models import QUICK, WEIGHT, Parts

OWN = [
    "never scan at 0",
    "at most 3 blood",
    "2 apart scan",
    "at most 3 visits",
    "always blood at 1",
]
#: Neighbors vote, which takes longer; these are fitted once for all tests.
SLOW = ("nocta-contrastive", "nocta-ensemble")
PER_CALL = (
    ["together blood, scan", "always scan at 2"],
    ["scan after blood", "at most 2 visits"],
)


@pytest.mark.parametrize("name", [n for n in METHODS if n not in SLOW])
def test_every_method_obeys(
    name: str, clinic: list[Cohort], predictor: CrossFittedPredictor
) -> None:
    parts = [part.constrained(OWN) for part in clinic]
    quick = {"options": QUICK} if name == "nocta-amortized" else {}
    saved = fitted(name, parts, predictor, **quick)
    for setting in [*saved.settings[:1], *saved.settings[-1:]]:
        _check(saved, setting, parts[2])
        for given in PER_CALL:
            _check(saved, setting, clinic[2].constrained(given))


@pytest.mark.parametrize("name", SLOW)
def test_a_model_fitted_without_constraints_obeys_those_of_a_call(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    saved = SavedMethod.of_model(tiny_models[name.removeprefix("nocta-")])
    for given in (OWN, *PER_CALL):
        _check(saved, {"cost_weight": WEIGHT}, tiny_parts[2].constrained(given))


@pytest.mark.parametrize("given", [OWN, *PER_CALL])
@pytest.mark.parametrize("search", ["beam", "guided"])
def test_whole_plans_are_allowed(
    given: list[str], search: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    planner: Any = copy(tiny_models["amortized"].planner_)
    planner.options = planner.options.model_copy(update={"search": search, "n_candidates": 50})
    planner.worth = np.ones((4, 2))
    cohort = tiny_parts[2].constrained(given)
    found = planner.policy(WEIGHT).best_plans(Environment(cohort, 14.0).observe())
    rules = cohort.catalog.rules
    assert rules is not None
    assert rules.allow(found.plans).all()
    assert cohort.catalog.cost_of(found.plans).max() <= 14.0


def test_a_recommendation_names_what_is_always_acquired(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    cohort = tiny_parts[2]
    history = History.empty(cohort.catalog, cohort.context[:1])
    given = ["always scan at 2", "scan after blood", "always blood at 1"]
    model = tiny_models["amortized"]
    found = model.decide(history, 50.0, constraints=given)
    assert (found.time, found.features, found.stop) == (1, ["blood"], False)
    assert found.plan.visits == found.stopping.visits == {1: ["blood"], 2: ["scan"]}
    assert found.stopping.objective == pytest.approx(found.plan.objective)
    with pytest.raises(BudgetTooSmall, match=r"4 is left, but the constraints .* for 4.5"):
        model.decide(history, 50.0, remaining=4.0, constraints=given)


def _check(saved: SavedMethod, setting: dict[str, float], cohort: Cohort) -> None:
    everything = cohort.catalog.price_of_everything
    for budget in (None, max(0.5 * everything, cohort.catalog.price_of_required)):
        limited = (
            setting if budget is None or "budget" in setting else {**setting, "budget": budget}
        )
        done = saved.rollout(cohort, limited)
        assert not broken(cohort.catalog.constraints, cohort.catalog, done.history)
        assert done.costs.max() <= limited.get("budget", np.inf) + 1e-9


@pytest.mark.parametrize("name", ["static", "periodic", "first-visit", "everything"])
def test_references_choose_schedules_that_are_allowed(
    name: str, clinic: list[Cohort], predictor: CrossFittedPredictor
) -> None:
    parts = [part.constrained(OWN) for part in clinic]
    method = fitted(name, parts, predictor).method
    rules = parts[0].catalog.rules
    assert rules is not None
    rhythms = [rhythm.plan for rhythm in getattr(method, "rhythms_", [])]
    plans = method.path_.plans if hasattr(method, "path_") else rhythms
    assert all(rules.allow(plan) for plan in plans)


def test_a_static_plan_grows_while_it_is_allowed(
    clinic: list[Cohort], predictor: CrossFittedPredictor
) -> None:
    given = Constraints.read(["at most 1 blood", "scan after blood"])
    parts = [part.constrained(given) for part in clinic]
    path = fitted("static", parts, predictor).method.path_  # type: ignore[attr-defined]
    assert not path.plans[0].any()
    last = path.plans[-1]
    assert last[:, 0].sum() == 1
    assert not last[: last[:, 0].argmax() + 1, 1].any()
    assert last[last[:, 0].argmax() + 1 :, 1].all()
