"""Searches find the best plan there is, and never one that cannot be carried out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.random_plans import uniform_plans
from nocta.model.nocta import NOCTA
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.search import FoundPlans, beam_search, sample_search
from nocta.planning.space import ActionTable
from small_models import Parts


def observe(cohort: Cohort, time: int, budget: float = np.inf, seed: int = 0) -> Observation:
    """Subjects at one slot, about whom something random is known."""
    rng = np.random.default_rng(seed)
    asked = rng.uniform(size=cohort.recorded.shape) < 0.5
    asked[:, time + 1 :] = False
    return Observation(
        history=History.of(cohort, asked),
        time=np.full(len(cohort), time),
        remaining=np.full(len(cohort), budget),
        catalog=cohort.catalog,
        rows=np.arange(len(cohort)),
    )


def all_plans(observation: Observation) -> np.ndarray:
    later = np.arange(observation.catalog.n_times)[:, None] > observation.time[0]
    open_slots = observation.catalog.open_slots & later
    return uniform_plans(2 ** int(open_slots.sum()), open_slots, np.random.default_rng(0))


def charges_of(plans: np.ndarray, actions: ActionTable) -> np.ndarray:
    """Expected charge of whole plans, looked up visit by visit."""
    total = np.zeros(len(plans))
    for t, (subsets, charges) in enumerate(zip(actions.subsets, actions.charges, strict=True)):
        match = (plans[:, t, None] == subsets[None]).all(-1)
        total += charges[match.argmax(axis=1)]
    return total


@pytest.fixture(scope="module")
def estimator(tiny_models: dict[str, NOCTA]) -> SequentialEstimator:
    return tiny_models["amortized"].planner_.estimator  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def actions(tiny_models: dict[str, NOCTA]) -> ActionTable:
    return tiny_models["amortized"].planner_.actions  # type: ignore[no-any-return]


def beam(estimator, observation, actions, weight, width, n_best=2) -> FoundPlans:  # type: ignore[no-untyped-def]
    weights = np.full(len(observation), weight)
    return beam_search(estimator, observation, actions, weights, width, width, n_best)


@pytest.mark.parametrize("time", [-1, 0, 2])
@pytest.mark.parametrize("budget", [np.inf, 6.0])
def test_a_wide_beam_finds_what_exhaustive_search_finds(
    estimator: SequentialEstimator,
    actions: ActionTable,
    tiny_parts: Parts,
    time: int,
    budget: float,
) -> None:
    observation = observe(tiny_parts[2], time, budget)
    plans = all_plans(observation)
    weights = np.full(len(observation), 0.05)
    full = sample_search(estimator, observation, plans, charges_of(plans, actions), weights)
    found = beam(estimator, observation, actions, 0.05, width=4096)
    np.testing.assert_allclose(found.scores, full.scores, atol=2e-5)
    np.testing.assert_allclose(found.stopping, full.stopping, atol=2e-5)
    clear = full.scores[:, 1] - full.scores[:, 0] > 1e-4
    assert clear.any()
    np.testing.assert_array_equal(found.plans[clear, 0], full.plans[clear, 0])


def test_a_narrow_beam_never_beats_a_wide_one(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts
) -> None:
    observation = observe(tiny_parts[2], -1)
    best = [beam(estimator, observation, actions, 0.05, width).scores[:, 0] for width in (2, 4096)]
    assert (best[0] >= best[1] - 2e-5).all()


def test_stopping_is_always_a_candidate(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts
) -> None:
    observation = observe(tiny_parts[2], 0)
    for width in (1, 3):
        found = beam(estimator, observation, actions, 1e6, width)
        assert not found.plans[:, 0].any()
        np.testing.assert_allclose(found.scores[:, 0], found.stopping)
    empty = np.zeros((1, *observation.catalog.open_slots.shape), dtype=bool)
    alone = estimator.score_plans(observation, empty)[:, 0]
    np.testing.assert_allclose(found.stopping, alone, atol=2e-5)


@pytest.mark.parametrize("budget", [0.0, 1.0, 1.5, 4.6, 9.0])
def test_no_plan_goes_over_the_budget(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts, budget: float
) -> None:
    observation = observe(tiny_parts[2], -1, budget)
    for search in ("beam", "sample"):
        if search == "beam":
            found = beam(estimator, observation, actions, 0.0, 16, n_best=8)
        else:
            plans = all_plans(observation)
            charges = charges_of(plans, actions)
            weights = np.zeros(len(observation))
            found = sample_search(estimator, observation, plans, charges, weights, n_best=8)
        assert (observation.catalog.cost_of(found.plans) <= budget + 1e-9).all()
        assert (found.scores < 1e6).all()


def test_expected_loss_and_charge_add_up_to_the_score(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts
) -> None:
    observation = observe(tiny_parts[2], 0)
    for weight in (0.0, 0.2):
        found = beam(estimator, observation, actions, weight, 16)
        charges = charges_of(found.plans[:, 0], actions)
        np.testing.assert_allclose(found.charges[:, 0], charges)
        np.testing.assert_allclose(found.scores[:, 0], found.losses[:, 0] + weight * charges)


def test_what_is_known_to_be_missing_is_not_planned(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts
) -> None:
    cohort = tiny_parts[2]
    observation = replace(observe(cohort, -1), available=cohort.recorded)
    weights = np.zeros(len(observation))
    plans = all_plans(observation)
    for found in (
        beam(estimator, observation, actions, 0.0, 16),
        sample_search(estimator, observation, plans, charges_of(plans, actions), weights),
    ):
        assert found.plans.any()
        assert not (found.plans & ~cohort.recorded[:, None]).any()


def test_higher_cost_weights_never_buy_more_expensive_plans(
    estimator: SequentialEstimator, actions: ActionTable, tiny_parts: Parts
) -> None:
    observation = observe(tiny_parts[2], -1)
    bought = [
        charges_of(beam(estimator, observation, actions, w, 4096).plans[:, 0], actions)
        for w in (0.0, 0.02, 0.05, 0.1, 0.5)
    ]
    for cheap, dear in zip(bought[1:], bought[:-1], strict=True):
        assert (cheap <= dear + 1e-9).all()


@pytest.mark.parametrize("name", ["amortized", "contrastive", "ensemble"])
def test_plans_score_the_same_in_a_tree_and_alone(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    estimator = tiny_models[name].planner_.estimator
    observation = observe(tiny_parts[2].subset(np.arange(4)), 0)
    plans = all_plans(observation)[::7]
    together = estimator.score_plans(observation, plans)
    alone = torch.cat([estimator.score_plans(observation, plan[None]) for plan in plans], dim=1)
    np.testing.assert_allclose(together, alone, atol=2e-5)
    own = np.repeat(plans[None], len(observation), axis=0)
    np.testing.assert_allclose(together, estimator.score_plans(observation, own), atol=2e-5)


def test_batches_that_found_fewer_plans_are_filled_up() -> None:
    def found(n_best: int, score: float) -> FoundPlans:
        losses, plans = np.full((1, n_best), score), np.zeros((1, n_best, 2, 1), bool)
        return FoundPlans(plans, losses, np.zeros((1, n_best)), np.ones(1), np.zeros(1))

    both = FoundPlans.concatenate([found(1, 3.0), found(2, 4.0)])
    assert both.plans.shape == (2, 2, 2, 1)
    assert both.scores.tolist() == [[3.0, 3.0], [4.0, 4.0]]
    assert both.take(np.array([1])).losses.tolist() == [[4.0, 4.0]]
