"""Retrieval: who votes, with what weight, and on what evidence."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.random_plans import uniform_plans
from nocta.model.nocta import NOCTA
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.remembered_votes import CountedContrastive, voting_estimator
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.limits import Limits
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig
from small_models import Parts, linear_members


@pytest.fixture(scope="module")
def fitted(tiny_models: dict[str, NOCTA]) -> ContrastiveEstimator:
    return tiny_models["contrastive"].planner_.contrastive  # type: ignore[no-any-return]


def observe(cohort, time: int, density: float = 0.5, seed: int = 0) -> Observation:  # type: ignore[no-untyped-def]
    asked = np.random.default_rng(seed).uniform(size=cohort.recorded.shape) < density
    asked[:, time + 1 :] = False
    return Observation(
        history=History.of(cohort, asked),
        time=np.full(len(cohort), time),
        remaining=np.full(len(cohort), np.inf),
        catalog=cohort.catalog,
        rows=np.arange(len(cohort)),
    )


def bank(parts: Parts, predictor: CrossFittedPredictor, **options: object) -> NeighborBank:
    encoder = predictor.members[0].encoder_
    return NeighborBank(parts[0], "values", encoder=encoder, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("time", [-1, 0, 2])
@pytest.mark.parametrize("expected", [True, False])
def test_growing_a_plan_equals_scoring_it_whole(
    fitted: ContrastiveEstimator,
    tiny_parts: Parts,
    tiny_predictor: CrossFittedPredictor,
    time: int,
    expected: bool,
) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, tiny_predictor.members, tiny_predictor.fold, expected=expected)
    estimator = ContrastiveEstimator(fitted.bank, targets)
    observation = observe(tiny_parts[2].subset(np.arange(5)), time)
    later = np.arange(4)[:, None] > time
    plans = uniform_plans(12, train.catalog.open_slots & later, np.random.default_rng(0))
    whole = estimator.score_plans(observation, plans)
    grown = SequentialEstimator.score_plans(estimator, observation, plans)
    np.testing.assert_allclose(whole, grown, atol=1e-4)


@pytest.fixture(scope="module", params=["summary", "mixed"])
def walking(request: pytest.FixtureRequest, tiny_parts: Parts) -> CrossFittedPredictor:
    return linear_members(request.param, tiny_parts)


@pytest.mark.parametrize("time", [-1, 0, 2])
@pytest.mark.parametrize("hindsight", [0.0, 0.9])
def test_any_predictor_that_goes_slot_by_slot_grows_plans(
    fitted: ContrastiveEstimator,
    tiny_parts: Parts,
    walking: CrossFittedPredictor,
    time: int,
    hindsight: float,
) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, walking.members, walking.fold, hindsight=hindsight)
    estimator = voting_estimator(fitted.bank, targets)
    assert isinstance(estimator, CountedContrastive) == isinstance(
        walking.members[0], SummaryPredictor
    )
    observation = observe(tiny_parts[2].subset(np.arange(5)), time)
    later = np.arange(4)[:, None] > time
    plans = uniform_plans(12, train.catalog.open_slots & later, np.random.default_rng(0))
    whole = estimator.score_plans(observation, plans)
    grown = SequentialEstimator.score_plans(estimator, observation, plans)
    assert float(whole.std(dim=1).max()) > 1e-3
    np.testing.assert_allclose(whole, grown, atol=1e-4)


@pytest.mark.parametrize("units", [1, 1 << 24])
def test_prefixes_kept_by_a_beam_go_on_from_where_they_stood(
    fitted: ContrastiveEstimator,
    tiny_parts: Parts,
    walking: CrossFittedPredictor,
    units: int,
) -> None:
    """Every subject keeps prefixes of its own, not in order, some twice, over three slots."""
    targets = LossTargets(tiny_parts[0], walking.members, walking.fold)
    limits = Limits(voter_units=units, lookup_units=units)
    estimator = voting_estimator(fitted.bank, targets, limits=limits)
    observation = observe(tiny_parts[2].subset(np.arange(4)), 0)
    subsets = torch.tensor([[False, False], [True, False], [False, True], [True, True]])
    rng = np.random.default_rng(1)
    state, n, q = estimator.start(observation), 4, 3
    plans = np.zeros((n, 1, 4, 2), dtype=bool)  # the prefixes so far, `(n, prefixes, L, M)`
    total = torch.zeros(n, 1)
    for time in (1, 2, 3):
        parents = torch.from_numpy(rng.integers(plans.shape[1], size=(n, q)))
        state, losses = estimator.branch(state, time, parents, subsets)
        total = (total.gather(1, parents)[..., None] + losses).flatten(1)
        plans = np.take_along_axis(plans, parents.numpy()[..., None, None], axis=1)
        plans = np.repeat(plans, len(subsets), axis=1)
        plans[:, :, time] = np.tile(subsets.numpy(), (q, 1))
    for i in range(n):
        whole = estimator.score_plans(observe(tiny_parts[2].subset(np.arange(4)), 0), plans[i])[i]
        np.testing.assert_allclose(total[i], whole, atol=1e-4)


@pytest.mark.parametrize("labeled", [0, 9])
def test_looked_up_votes_are_the_votes(tiny_parts: Parts, labeled: int) -> None:
    """Also where few or none of the voters have a label at a slot."""
    train, val, test = tiny_parts
    labels = train.labels.copy()
    labels[labeled:, 2] = -1
    parts = replace(train, labels=labels), val, test
    predictor = linear_members("summary", parts)
    targets = LossTargets(parts[0], predictor.members, predictor.fold, hindsight=0.5)
    options = (bank(parts, predictor, n_neighbors=40, kernel="gaussian"), targets)
    looked_up, computed = CountedContrastive(*options), ContrastiveEstimator(*options)
    observation = observe(test.subset(np.arange(6)), 0)
    plans = uniform_plans(12, train.catalog.open_slots, np.random.default_rng(0))
    plans[:, 0] = False
    one, other = (
        SequentialEstimator.score_plans(estimator, observation, plans)
        for estimator in (looked_up, computed)
    )
    assert float(other.std(dim=1).min()) > 1e-3
    np.testing.assert_allclose(one, other, atol=1e-5)
    kept = pickle.loads(pickle.dumps(looked_up))
    assert not kept.tables._slots  # computed again
    assert not kept.bank._cache
    again = SequentialEstimator.score_plans(kept, observation, plans)
    np.testing.assert_array_equal(again, one)


def test_voters_are_judged_by_a_network_that_never_saw_them(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, tiny_predictor.members, tiny_predictor.fold)
    asked = np.ones_like(train.recorded)
    for who, fold in ((3, 1), (4, 0)):
        own = LossTargets(train, [tiny_predictor.members[fold]])
        assert tiny_predictor.fold[who] == fold
        np.testing.assert_array_equal(
            targets(np.array([who]), asked[:1]), own(np.array([who]), asked[:1])
        )


def test_the_nearest_neighbor_of_a_training_subject_is_itself(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train = tiny_parts[0]
    found = bank(tiny_parts, tiny_predictor, n_neighbors=3).nearest(observe(train, 3, 1.0))
    distance = found.distance[:, 0]
    assert float(distance.max()) < 1e-2
    full = train.recorded.all(axis=(1, 2))
    np.testing.assert_array_equal(found.subjects[full, 0], np.flatnonzero(full))


def test_what_is_kept_of_a_bank_is_bounded_in_bytes(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    member, observation = tiny_predictor.members[0], observe(tiny_parts[2], 2)

    def fresh_bank(limits: Limits) -> NeighborBank:
        return NeighborBank(
            tiny_parts[0], "predictor", encoder=member.encoder_, predictor=member, limits=limits
        )

    free = fresh_bank(Limits())
    expected = free.nearest(observation)
    most = 3 * next(iter(free._cache.values())).nbytes
    bounded = fresh_bank(Limits(bank_bytes=most))
    for found, wanted in zip(bounded.nearest(observation), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    kept = sum(points.nbytes for points in bounded._cache.values())
    assert 0 < kept <= most < sum(p.nbytes for p in free._cache.values())
    assert kept == bounded._cached_bytes


def test_a_bank_is_encoded_once_however_large(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    assert bank(tiny_parts, tiny_predictor).data.most_held == np.inf


def test_neighbors_are_masked_like_the_query(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train, _, test = tiny_parts
    observation = observe(test.subset(np.arange(1)), 1, 0.0)
    observation.history.acquired[0, 0, 0] = True
    observation.history.values[0, 0, 0] = train.values[7, 0, 0]
    found = bank(tiny_parts, tiny_predictor, n_neighbors=4).nearest(observation)
    shown = np.nan_to_num(train.values[:, 0, 0], nan=np.inf)
    order = np.argsort(np.abs(shown - train.values[7, 0, 0]), kind="stable")
    assert set(found.subjects[0, :2].tolist()) <= set(order[:6].tolist())
    assert 7 in found.subjects[0].tolist()


@pytest.mark.parametrize("kernel", ["uniform", "gaussian"])
def test_votes_sum_to_one_and_fade_with_distance(
    kernel: str, tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    found = bank(tiny_parts, tiny_predictor, n_neighbors=6, kernel=kernel).nearest(
        observe(tiny_parts[2], 1)
    )
    np.testing.assert_allclose(found.weight.sum(dim=1), 1.0, atol=1e-6)
    steps = found.weight[:, :-1] - found.weight[:, 1:]
    assert bool((steps >= -1e-7).all())
    assert bool((steps.abs() < 1e-7).all()) == (kernel == "uniform")


def test_within_a_radius_only_the_near_vote(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    found = bank(tiny_parts, tiny_predictor, n_neighbors=10, radius=1.0).nearest(
        observe(tiny_parts[2], 2, 0.8)
    )
    far = found.distance > 1.0
    far[:, 0] = False
    assert bool(far.any())
    assert float(found.weight[far].abs().max()) == 0.0
    np.testing.assert_allclose(found.weight.sum(dim=1), 1.0, atol=1e-6)


def test_equal_voting_estimator_everybody_are_the_mean(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train = tiny_parts[0]
    targets = LossTargets(train, tiny_predictor.members, tiny_predictor.fold)
    everybody = bank(tiny_parts, tiny_predictor, n_neighbors=len(train))
    observation = observe(tiny_parts[2].subset(np.arange(1)), -1)
    plan = np.ones((1, 4, 2), dtype=bool)
    scored = ContrastiveEstimator(everybody, targets).score_plans(observation, plan)
    losses = targets(np.arange(len(train)), np.ones_like(train.recorded))[..., 0].sum(dim=1)
    assert float(scored[0, 0]) == pytest.approx(float(losses.mean()), abs=1e-4)


def test_a_smaller_bank_leaves_subjects_out(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    found = bank(tiny_parts, tiny_predictor, n_neighbors=9, size=10).nearest(
        observe(tiny_parts[2], 0)
    )
    assert len(torch.unique(found.subjects)) <= 10


def test_impossible_settings_are_refused(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor, fitted: ContrastiveEstimator
) -> None:
    encoder = tiny_predictor.members[0].encoder_
    with pytest.raises(ConfigError, match="use 'embedding', 'predictor' or 'values'"):
        NeighborBank(tiny_parts[0], "cosine", encoder=encoder)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs the embedding"):
        NeighborBank(tiny_parts[0], "embedding", encoder=encoder)
    with pytest.raises(ConfigError, match="at least one subject"):
        bank(tiny_parts, tiny_predictor, n_neighbors=0)
    mean = ContrastiveEstimator(fitted.bank, fitted.targets, reduction="mean")
    with pytest.raises(ConfigError, match="loss_reduction='sum'"):
        mean.start(observe(tiny_parts[2], 0))


def test_growing_plans_needs_a_predictor_that_goes_slot_by_slot(
    fitted: ContrastiveEstimator, tiny_parts: Parts
) -> None:
    train, val, test = tiny_parts
    paper = MLPPredictor(hidden=4, training=TrainingConfig(epochs=1)).fit(train, val)
    estimator = ContrastiveEstimator(fitted.bank, LossTargets(train, [paper]))
    with pytest.raises(ConfigError, match="needs a predictor whose network can walk; MLP"):
        estimator.start(observe(test, 0))
