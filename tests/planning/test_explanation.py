"""Explanations: what each feature adds, ties, what a result would change, similar subjects."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import nocta
from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.model.explaining import likely_values
from nocta.model.nocta import NOCTA
from nocta.model.wording import Words, headline, reasons
from nocta.planning.estimators.committee import CommitteeEstimator
from nocta.planning.explain import observe
from nocta.planning.explanation import explain
from nocta.planning.plan_values import PlanValues, difference_variance
from small_models import ESTIMATORS, WEIGHT, Parts


@pytest.fixture
def newcomer(tiny_parts: Parts) -> History:
    return History.empty(tiny_parts[2].catalog, tiny_parts[2].context[:1])


class SomeError(PlanValues):
    """Values with a standard error that the test chooses."""

    error = 0.0

    def standard_error(self, observation: Observation, pair: NDArray[np.bool_]) -> float | None:
        return self.error


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_open_feature_of_the_next_visit_is_weighed(
    name: str, tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models[name]
    why = nocta.explain(model, newcomer, WEIGHT)
    found = why.recommendation
    assert sorted(e.feature for e in why.adds) == sorted(found.features)
    weighed = {e.feature for e in (*why.adds, *why.passed_over)}
    assert found.time is not None
    here = model.catalog_.open_slots[found.time]
    assert weighed == {model.catalog_.names[m] for m in np.flatnonzero(here)}
    for effect in (*why.adds, *why.passed_over):
        assert effect.worth == pytest.approx(effect.saves / WEIGHT)
        assert effect.cost >= 0
    assert why.saves == pytest.approx(found.stopping.expected_loss - found.plan.expected_loss)
    json.dumps(why.to_dict())


def test_what_a_feature_adds_is_what_the_plan_loses_without_it(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models["amortized"]
    why = nocta.explain(model, newcomer, WEIGHT)
    plan = np.zeros_like(model.catalog_.open_slots)
    for time, features in why.recommendation.plan.visits.items():
        plan[time, [model.catalog_.feature_index(f) for f in features]] = True
    best = why.adds[0]
    without = plan.copy()
    assert why.recommendation.time is not None
    without[why.recommendation.time, model.catalog_.feature_index(best.feature)] = False
    estimator = model.planner_.estimator  # type: ignore[attr-defined]
    with torch.no_grad():
        losses = estimator.score_plans(observe(newcomer, model.catalog_), np.stack([plan, without]))
    assert best.saves == pytest.approx(float(losses[0, 1] - losses[0, 0]), abs=1e-5)


def test_a_tie_goes_to_the_cheaper_plan(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    model = tiny_models["amortized"]
    values = model.values(WEIGHT)
    assert values is not None
    sure, unsure = (
        SomeError(values.estimator, values.actions),
        SomeError(values.estimator, values.actions),
    )
    object.__setattr__(sure, "error", 0.0)
    object.__setattr__(unsure, "error", 1e9)
    ranked = model.decide(newcomer, WEIGHT)
    assert ranked.runner_up is not None
    certain = explain(model.policy(WEIGHT), newcomer, model.catalog_, sure)
    assert certain.recommendation == ranked
    assert certain.tie is not None
    assert not certain.tie.tied
    tied = explain(model.policy(WEIGHT), newcomer, model.catalog_, unsure)
    assert tied.tie is not None
    assert tied.tie.tied
    cheaper = min(ranked.plan, ranked.runner_up, key=lambda plan: plan.expected_charge)
    assert tied.recommendation.plan == cheaper
    assert tied.tie.switched == (cheaper == ranked.runner_up)
    said = " ".join(reasons(tied, Words.of(model)))
    assert "practically tied" in said


def test_a_committee_tells_how_sure_it_is(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    model = tiny_models["amortized"]
    committee = model.planner_.amortized  # type: ignore[attr-defined]
    assert isinstance(committee, CommitteeEstimator)
    observation = observe(newcomer, model.catalog_)
    pair = np.zeros((2, *model.catalog_.open_slots.shape), dtype=bool)
    pair[0, 0, 0] = True
    by_hand = 0.0
    shares = (committee.individual_share, 1 - committee.individual_share)
    for share, group in zip(shares, (committee.individuals, committee.populations), strict=True):
        scores = torch.cat([m.score_plans(observation, pair) for m in group])
        gap = (scores[:, 0] - scores[:, 1]).double()
        if len(gap) > 1:
            by_hand += share**2 * float(gap.var()) / len(gap)
    assert difference_variance(committee, observation, pair) == pytest.approx(by_hand)
    assert by_hand > 0
    assert difference_variance(committee.individuals[0], observation, pair) is None


def test_neighbors_tell_how_sure_they_are_and_stay_unnamed(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models["contrastive"]
    why = nocta.explain(model, newcomer, WEIGHT)
    assert why.tie is not None
    assert why.tie.standard_error > 0
    assert why.evidence is not None
    assert 1 <= why.evidence.effective_number <= why.evidence.n_subjects + 1e-6
    assert sum(why.evidence.classes) == pytest.approx(1.0)
    assert "similar training subjects" in reasons(why, Words.of(model))[-1]
    assert nocta.explain(tiny_models["amortized"], newcomer, WEIGHT).evidence is None


def test_a_result_moves_the_prediction_of_its_visit(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models["amortized"]
    why = nocta.explain(model, newcomer, WEIGHT)
    found = why.recommendation
    assert found.time is not None
    first = why.results[0]
    m = model.catalog_.feature_index(found.features[0])
    values, acquired = newcomer.values.copy(), newcomer.acquired.copy()
    values[0, found.time, model.catalog_.columns.index(first.column)] = first.values[-1]
    acquired[0, found.time, m] = True
    after = replace(newcomer, values=values, acquired=acquired)
    expected = model.planner_.predictor.predict_proba(after)[0, found.time]
    assert first.predictions[-1] == pytest.approx(expected.tolist(), abs=1e-5)
    assert {c for f in found.features for c in feature_columns(model.catalog_, f)} == {
        r.column for r in why.results
    }


def feature_columns(catalog: Catalog, name: str) -> tuple[str, ...]:
    return catalog.features[catalog.feature_index(name)].columns


def test_likely_values_lie_where_the_training_values_do(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    for column, values in likely_values(tiny_models["amortized"]).items():
        d = tiny_parts[0].catalog.columns.index(column)
        seen = tiny_parts[0].values[:, :, d]
        low, high = np.nanmin(seen), np.nanmax(seen)
        assert all(low - 0.5 <= value <= high + 0.5 for value in values)
        assert values == sorted(values)


def test_other_prices_and_closed_features_are_obeyed(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models["amortized"]
    name = nocta.explain(model, newcomer, WEIGHT).recommendation.features[0]
    closed = tuple(replace(f, at=()) if f.name == name else f for f in model.catalog_.features)
    without = nocta.explain(
        model, newcomer, WEIGHT, catalog=replace(model.catalog_, features=closed)
    )
    assert all(name not in f for f in without.recommendation.plan.visits.values())
    dear = nocta.explain(model, newcomer, WEIGHT, catalog=model.catalog_.with_costs({name: 1e6}))
    assert name not in dear.recommendation.features


def test_without_values_only_the_policys_own_plans_are_compared(
    tiny_models: dict[str, NOCTA], newcomer: History
) -> None:
    model = tiny_models["amortized"]
    why = explain(model.policy(WEIGHT), newcomer, model.catalog_)
    assert (why.tie, why.adds, why.evidence) == (None, [], None)
    assert why.recommendation == model.decide(newcomer, WEIGHT)


def test_it_is_said_in_sentences(tiny_models: dict[str, NOCTA], newcomer: History) -> None:
    model = tiny_models["amortized"]
    words = Words.of(model)
    why = nocta.explain(model, newcomer, WEIGHT)
    assert headline(why.recommendation, words).startswith("At visit 1 of 4")
    said = reasons(why, words)
    assert "of the remaining prediction error" in said[0]
    assert said[1].startswith(f"Worth the price here: {why.adds[0].feature} (worth")
    nothing = nocta.explain(model, newcomer, 1e6)
    assert headline(nothing.recommendation, words).startswith("Acquire nothing more: no further")
    poor = nocta.explain(model, newcomer, 0.0, remaining=0.0)
    assert "the cheapest costs" in headline(poor.recommendation, words)
