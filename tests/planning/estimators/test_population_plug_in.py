"""The mean over the training subjects is counted right, whatever is remembered of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nocta
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.random_plans import random_requests, uniform_plans
from nocta.model.nocta import NOCTA
from nocta.planning.estimators.population_plug_in import PopulationPlugIn
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.limits import Limits
from nocta.planning.objective import PlanningLoss
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.runs.model_card import _privacy, _shares
from small_models import QUICK, Parts


@pytest.fixture(scope="module")
def linear(tiny_parts: Parts) -> CrossFittedPredictor:
    """Three linear models, each of which never saw a third of the training subjects."""
    train, val, _ = tiny_parts
    fold = np.arange(len(train)) % 3
    members = [
        SummaryPredictor((0.1,), seed=f).fit(train.subset(np.flatnonzero(fold != f)), val)
        for f in range(3)
    ]
    return CrossFittedPredictor(members, fold)


def observation_at(time: int, parts: Parts, seed: int = 0) -> Observation:
    """A few test subjects at one slot, each asked for something else."""
    some = parts[2].subset(np.arange(5))
    asked = random_requests(5, some.catalog.open_slots, np.random.default_rng(seed))
    asked[:, time + 1 :] = False
    return Observation(
        history=History.of(some, asked),
        time=np.full(5, time),
        remaining=np.full(5, np.inf),
        catalog=some.catalog,
        rows=np.arange(5),
    )


@pytest.mark.parametrize("kind", ["cross-entropy", "error"])
@pytest.mark.parametrize("hindsight", [0.0, 0.9])
@pytest.mark.parametrize("time", [-1, 1])
def test_it_is_the_mean_loss_of_the_training_subjects(
    linear: CrossFittedPredictor,
    tiny_parts: Parts,
    kind: PlanningLoss,
    hindsight: float,
    time: int,
) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, linear.members, linear.fold, hindsight=hindsight)
    estimator = PopulationPlugIn(train, targets, kind)
    observation = observation_at(time, tiny_parts)
    later = np.arange(train.n_times)[:, None] > time
    open_slots = train.catalog.open_slots & later
    plans = uniform_plans(7, open_slots, np.random.default_rng(1))
    found = estimator.score_plans(observation, plans)
    again = estimator.score_plans(observation, plans)  # from memory
    everybody = np.arange(len(train))
    for i, past in enumerate(observation.history.requested):
        for j, plan in enumerate(plans):
            asked = np.broadcast_to(past | plan, train.recorded.shape).copy()
            losses = targets(everybody, asked)[..., targets.kinds.index(kind)]
            expected = losses[:, time + 1 :].sum(dim=1).mean()
            assert found[i, j] == pytest.approx(float(expected), abs=2e-5)
    assert torch.equal(found, again)


def test_nobodys_own_values_matter(linear: CrossFittedPredictor, tiny_parts: Parts) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, linear.members, linear.fold)
    estimator = PopulationPlugIn(train, targets)
    observation = observation_at(1, tiny_parts)
    alike = History.of(tiny_parts[2].subset(np.arange(5, 10)), observation.history.requested.copy())
    other = Observation(
        history=alike,
        time=observation.time,
        remaining=observation.remaining,
        catalog=observation.catalog,
        rows=observation.rows,
    )
    plans = np.zeros((1, *train.catalog.open_slots.shape), dtype=bool)
    assert torch.equal(
        estimator.score_plans(observation, plans), estimator.score_plans(other, plans)
    )


def test_forgetting_changes_nothing(linear: CrossFittedPredictor, tiny_parts: Parts) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, linear.members, linear.fold)
    plans = uniform_plans(30, train.catalog.open_slots, np.random.default_rng(2))
    observation = observation_at(-1, tiny_parts)
    usual = PopulationPlugIn(train, targets).score_plans(observation, plans)
    limits = Limits(remembered_prefixes=3, lookup_units=1, table_units=1)
    short = PopulationPlugIn(train, targets, limits=limits).score_plans(observation, plans)
    torch.testing.assert_close(short, usual)


@pytest.mark.parametrize("labeled", [0, 4])
def test_slots_that_hardly_anybody_has_a_label_at_are_no_obstacle(
    tiny_parts: Parts, labeled: int
) -> None:
    train, val, test = tiny_parts
    labels = train.labels.copy()
    labels[labeled:, -1] = -1  # some folds have nobody there
    thin = replace(train, labels=labels)
    fold = np.arange(len(train)) % 5
    members = [
        SummaryPredictor((0.1,)).fit(thin.subset(np.flatnonzero(fold != f)), val) for f in range(5)
    ]
    predictor = CrossFittedPredictor(members, fold)
    estimator = PopulationPlugIn(thin, LossTargets(thin, members, fold))
    state, parents = estimator.start(observation_at(2, tiny_parts)), torch.zeros(5, 1).long()
    subsets = torch.tensor([[False, False], [True, True]])
    _, losses = estimator.branch(state, train.n_times - 1, parents, subsets)
    assert losses.shape == (5, 1, 2)
    assert bool((losses > 0).all()) == (labeled > 0)
    model = NOCTA(options={**QUICK, "individual_share": 0.5}).fit(thin, val, predictor=predictor)
    assert model.rollout(test, model.planner_.cost_scale * 0.3).cost > 0


def test_an_offer_is_not_taken_for_a_shorter_one(
    linear: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    train = tiny_parts[0]
    estimator = PopulationPlugIn(train, LossTargets(train, linear.members, linear.fold))
    state, parents = estimator.start(observation_at(0, tiny_parts)), torch.zeros(5, 1).long()
    for n_offered in (1, 2, 3):
        subsets = torch.zeros(n_offered, 2, dtype=torch.bool)
        assert estimator.branch(state, 1, parents, subsets)[1].shape == (5, 1, n_offered)


def test_a_saved_model_plans_the_same(
    linear: CrossFittedPredictor, tiny_parts: Parts, tmp_path: Path
) -> None:
    train, val, test = tiny_parts
    options = {**QUICK, "individual_share": 0.3}
    model = NOCTA(options=options).fit(train, val, predictor=linear)
    model.save(tmp_path / "model")
    again = nocta.load(tmp_path / "model")
    assert again.planner_.individual_share == 0.3
    for weight in (0.2, 0.6):
        before, after = (m.rollout(test, m.planner_.cost_scale * weight) for m in (model, again))
        np.testing.assert_array_equal(before.history.requested, after.history.requested)
        np.testing.assert_array_equal(before.probabilities, after.probabilities)


def test_networks_are_refused(tiny_parts: Parts, tiny_predictor: CrossFittedPredictor) -> None:
    targets = LossTargets(tiny_parts[0], tiny_predictor.members, tiny_predictor.fold)
    with pytest.raises(ConfigError, match="additive"):
        PopulationPlugIn(tiny_parts[0], targets)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_share_draws_decisions_to_the_population(
    linear: CrossFittedPredictor, tiny_parts: Parts, share: float
) -> None:
    """With no weight of its own, everybody of whom the same was asked gets the same plan."""
    train, val, test = tiny_parts
    options = {**QUICK, "individual_share": share}
    model = NOCTA(options=options).fit(train, val, predictor=linear)
    done = model.rollout(test, model.planner_.cost_scale * 0.3).history
    seen = ~done.unavailable.any(axis=(1, 2))  # others replan after a missing value
    same = done.requested[seen]
    assert bool((same == same[0]).all()) == (share == 0.0)


def test_the_card_says_that_subjects_are_kept(
    linear: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    counted = NOCTA(options={**QUICK, "individual_share": 0.5}).fit(
        tiny_parts[0], tiny_parts[1], predictor=linear
    )
    assert "Guard it like the data" in _privacy(counted)
    assert "counts 50% and the mean over all training subjects 50%" in _shares(counted)
    counted.planner_.individual_share = 0.0  # type: ignore[attr-defined]
    assert _shares(counted).endswith("get the same plan.")
    network = SimpleNamespace(estimator="amortized", planner_=SimpleNamespace(population=None))
    assert "no subject's data" in _privacy(network)  # type: ignore[arg-type]
    assert _shares(network) == ""  # type: ignore[arg-type]
