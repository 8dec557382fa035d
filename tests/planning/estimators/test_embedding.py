import numpy as np
import pytest
import torch

from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.history import History
from nocta.core.random_plans import uniform_plans
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.estimators.targets import LossTargets, plan_losses
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort, tiny_counter_cohort

QUICK = TrainingConfig(epochs=3, batch_size=20, check_every=1)


@pytest.fixture(scope="module")
def parts():
    train, val = tiny_cohort(60, seed=0), tiny_cohort(30, seed=1)
    predictor = MLPPredictor(training=QUICK).fit(train, val)
    return train, LossTargets(train, [predictor]), val, LossTargets(val, [predictor])


@pytest.fixture(scope="module", params=["mlp", "recurrent"])
def embedding(request, parts):
    return Embedding(
        network=request.param, n_dimensions=6, n_candidates=20, n_validation_masks=4, training=QUICK
    ).fit(*parts, cost_weights=[0.01, 0.1])


def embed(embedding: Embedding, history: History, time: int) -> torch.Tensor:
    """Points of subjects with this history at a slot."""
    return embedding.embed(embedding.encoder_.encode(history.up_to(time)), time)


def known_at(cohort, time, seed=0):
    asked = np.random.default_rng(seed).uniform(size=cohort.recorded.shape) < 0.6
    asked[:, time + 1 :] = False
    return History.of(cohort, asked)


@pytest.mark.parametrize("time", [-1, 0, 2])
def test_one_point_per_subject(embedding, parts, time):
    points = embed(embedding, known_at(parts[2], time), time)
    assert points.shape == (30, 6)
    assert torch.isfinite(points).all()


def test_points_depend_on_what_is_known_only(embedding, parts):
    val = parts[2]
    whole = History.of(val, np.ones_like(val.recorded))
    torch.testing.assert_close(embed(embedding, whole, 1), embed(embedding, whole.up_to(1), 1))
    assert not torch.equal(embed(embedding, whole, 1), embed(embedding, whole.up_to(0), 1))


def test_saved_embedding_gives_the_same_points(embedding, parts):
    history = known_at(parts[2], 1)
    restored = Embedding.from_state(*embedding.state())
    assert torch.equal(embed(restored, history, 1), embed(embedding, history, 1))
    assert restored.get_params() == embedding.get_params()


def test_kept_weights_are_the_best_on_validation(embedding):
    losses = embedding.log_.validation_losses
    assert embedding.log_.best_epoch == embedding.log_.epochs[int(np.argmin(losses))]


def test_same_seed_gives_same_points(parts):
    history = known_at(parts[2], 1)
    points = [
        embed(Embedding(n_candidates=10, training=QUICK, seed=s).fit(*parts, [0.1]), history, 1)
        for s in (0, 0, 1)
    ]
    assert torch.equal(points[0], points[1])
    assert not torch.equal(points[0], points[2])


@pytest.mark.parametrize("weights", [[], [-0.1]])
def test_cost_weights_are_checked(parts, weights):
    with pytest.raises(ConfigError, match="cost_weights"):
        Embedding().fit(*parts, cost_weights=weights)


def test_unfitted_embedding_says_so(parts):
    with pytest.raises(NotFittedError, match="call `fit`"):
        Embedding().embed(torch.zeros(1, 4, 3), 1)


def test_it_tells_apart_those_who_need_other_digits():
    # A counter of 0 now or 2 now ask for quite different digits later; which digit was seen with
    # a counter of 2 changes nothing, because it does not count.
    train, val = tiny_counter_cohort(400, seed=0), tiny_counter_cohort(300, seed=1)
    training = TrainingConfig(epochs=30, batch_size=40, learning_rate=1e-2, check_every=10)
    predictor = MLPPredictor(hidden=32, training=training).fit(train, val)
    targets = [LossTargets(c, [predictor], kinds=("cross-entropy",)) for c in (train, val)]
    embedding = Embedding(
        n_candidates=60,
        similarity_scale=8.0,
        training=TrainingConfig(epochs=20, batch_size=40, check_every=5),
    )
    embedding.fit(train, targets[0], val, targets[1], [0.2])
    asked = np.zeros_like(val.recorded)
    asked[:, 0] = True
    points = embed(embedding, History.of(val, asked), 0)
    digit, counter = val.values[:, 0, 0], val.values[:, 0, 1]

    def center(d, c):
        return points[torch.from_numpy((digit == d) & (counter == c))].mean(0)

    same_need = (center(0, 2) - center(2, 2)).norm()
    other_need = (center(0, 2) - center(0, 0)).norm()
    assert other_need > 2 * same_need


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_plan_losses_agree_with_one_request_at_a_time(parts, reduction):
    train, targets = parts[:2]
    time, index = 0, np.array([3, 1, 4, 1, 5])
    later = np.arange(train.n_times)[:, None] > time
    plans = uniform_plans(9, train.catalog.open_slots & later, np.random.default_rng(0))
    known = train.catalog.open_slots & ~later
    found = plan_losses(targets, index, known, plans, time, reduction)
    assert found.shape == (5, len(plans), 2)
    for p, plan in enumerate(plans):
        alone = targets(index, np.repeat((known | plan)[None], 5, axis=0))[:, time + 1 :].sum(1)
        if reduction == "mean":
            alone = alone / targets.labeled[index, time + 1 :].sum(1).clamp(min=1)[:, None]
        torch.testing.assert_close(found[:, p], alone)


def test_plan_losses_are_the_same_for_any_predictor(parts):
    train = parts[0]
    predictor = RecurrentPredictor(hidden=8, training=QUICK).fit(train, parts[2])
    targets = LossTargets(train, [predictor])
    plans = uniform_plans(5, train.catalog.open_slots, np.random.default_rng(0))
    index = np.arange(6)
    found = plan_losses(targets, index, np.zeros_like(plans[0]), plans, -1)
    alone = targets(index, np.repeat(plans[3][None], 6, axis=0)).sum(1)
    torch.testing.assert_close(found[:, 3], alone)
