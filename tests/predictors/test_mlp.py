import numpy as np
import pytest
import torch

from nocta.core.errors import NotFittedError
from nocta.core.history import History
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.mlp import MLPNet, MLPPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort, tiny_counter_cohort

QUICK = TrainingConfig(
    epochs=30, batch_size=32, learning_rate=1e-2, schedule="constant", check_every=10
)


@pytest.fixture(scope="module")
def cohort():
    return tiny_cohort(60, seed=1)


@pytest.fixture(scope="module")
def predictor(cohort):
    return MLPPredictor(training=QUICK).fit(cohort, tiny_cohort(40, seed=2))


def some_requests(cohort, seed=0):
    return np.random.default_rng(seed).uniform(size=cohort.recorded.shape) < 0.5


def test_running_sum_equals_one_plain_layer_per_time(cohort, predictor):
    inputs = predictor.encode(History.of(cohort, some_requests(cohort)))
    net = predictor.net_
    width, length = net.slot_width, inputs.shape[1]
    for k in range(length):
        slots = inputs[..., :width].clone()
        slots[:, k + 1 :] = 0
        indicator = torch.zeros(len(inputs), length)
        indicator[:, k] = 1
        context = inputs[:, k, width + length :]
        whole = torch.cat([slots.flatten(1), indicator, context], dim=1)
        weight = torch.cat([net.slots.flatten(0, 1), net.time, net.context])
        hidden = torch.relu(net.upper[0](torch.relu(whole @ weight)))
        torch.testing.assert_close(net.head(hidden), net(inputs)[:, k])


def test_prediction_ignores_everything_later(cohort, predictor):
    history = History.of(cohort, some_requests(cohort))
    whole = predictor.predict_proba(history)
    for k in range(cohort.n_times):
        np.testing.assert_array_equal(predictor.predict_proba(history.up_to(k))[:, k], whole[:, k])


def test_prediction_uses_what_was_acquired(cohort, predictor):
    nothing = predictor.predict_proba(History.of(cohort, np.zeros_like(cohort.recorded)))
    everything = predictor.predict_proba(History.of(cohort, np.ones_like(cohort.recorded)))
    assert np.abs(nothing - everything).max() > 0.05


def test_plans_scored_together_equal_plans_scored_alone(cohort, predictor):
    rng = np.random.default_rng(3)
    time = 1
    later = np.arange(cohort.n_times)[:, None] > time
    known = some_requests(cohort) & ~later
    plans = (rng.uniform(size=(7, *later.shape[:1], cohort.catalog.n_features)) < 0.5) & later
    data = EncodedCohort(predictor.encoder_, cohort)
    index = np.arange(len(cohort))
    together = predictor.plan_log_proba(
        data.inputs(index, known), data.slots, torch.from_numpy(plans), start=time + 1
    )
    assert together.shape == (len(cohort), 7, cohort.n_times - time - 1, cohort.n_classes)
    for p, plan in enumerate(plans):
        alone = predictor.log_proba(data.inputs(index, known | plan))[:, time + 1 :]
        torch.testing.assert_close(together[:, p], alone)


def test_saved_predictor_predicts_the_same(cohort, predictor):
    history = History.of(cohort, some_requests(cohort))
    config, arrays = predictor.state()
    restored = MLPPredictor.from_state(config, arrays)
    np.testing.assert_array_equal(restored.predict_proba(history), predictor.predict_proba(history))
    assert config["kind"] == "mlp"
    assert restored.get_params() == predictor.get_params()


def test_same_seed_gives_same_network(cohort):
    short = TrainingConfig(epochs=2, batch_size=32, check_every=1)
    val = tiny_cohort(20, seed=2)
    first, second, other = (
        MLPPredictor(training=short, seed=s).fit(cohort, val).state()[1]["net.slots"]
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_hidden_layers_are_as_many_as_asked():
    net = MLPNet(slot_width=3, context_width=2, n_times=4, hidden=5, n_outputs=2, n_layers=4)
    inputs = torch.randn(6, 4, 3 + 4 + 2)
    assert len(net.upper) == 3
    assert net.states(inputs).shape == (6, 4, 5)
    assert net(inputs).shape == (6, 4, 2)


def test_unfitted_predictor_says_so(cohort):
    with pytest.raises(NotFittedError, match="call `fit"):
        MLPPredictor().predict_proba(History.of(cohort, np.ones_like(cohort.recorded)))


def test_it_learns_the_counter_task():
    train, val = tiny_counter_cohort(600, seed=0), tiny_counter_cohort(200, seed=1)
    fitted = MLPPredictor(training=QUICK).fit(train, val)
    proba = fitted.predict_proba(History.of(val, np.ones_like(val.recorded)))
    prior = np.stack([np.bincount(train.labels[:, k]).argmax() for k in range(val.n_times)])
    assert (proba.argmax(2) == val.labels).mean() > (prior == val.labels).mean() + 0.15
