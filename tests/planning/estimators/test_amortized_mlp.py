import numpy as np
import pytest
import torch

from nocta.core.errors import NotFittedError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.random_plans import uniform_plans
from nocta.planning.estimators.amortized_mlp import AmortizedMLPEstimator, _random_plans
from nocta.planning.limits import Limits
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort, tiny_counter_cohort

QUICK = TrainingConfig(epochs=4, batch_size=20, check_every=1)


@pytest.fixture(scope="module")
def cohorts():
    return tiny_cohort(60, seed=0), tiny_cohort(30, seed=1)


@pytest.fixture(scope="module")
def predictor(cohorts):
    return MLPPredictor(training=QUICK).fit(*cohorts)


@pytest.fixture(scope="module")
def estimator(cohorts, predictor):
    return AmortizedMLPEstimator(training=QUICK).fit(predictor, *cohorts)


def observe(cohort, time, seed=0):
    asked = np.random.default_rng(seed).uniform(size=cohort.recorded.shape) < 0.6
    asked[:, time + 1 :] = False
    n = len(cohort)
    return Observation(
        history=History.of(cohort, asked),
        time=np.full(n, time),
        remaining=np.full(n, np.inf),
        catalog=cohort.catalog,
        rows=np.arange(n),
    )


def later_plans(cohort, time, n_plans=12):
    later = np.arange(cohort.n_times)[:, None] > time
    rng = np.random.default_rng(0)
    return uniform_plans(n_plans, cohort.catalog.open_slots & later, rng)


@pytest.mark.parametrize("time", [-1, 0, 2])
def test_shared_plans_score_like_plans_of_ones_own(estimator, cohorts, time):
    observation, plans = observe(cohorts[1], time), later_plans(cohorts[1], time)
    shared = estimator.score_plans(observation, plans)
    own = estimator.score_plans(observation, np.repeat(plans[None], len(observation), axis=0))
    assert shared.shape == (30, len(plans))
    torch.testing.assert_close(shared, own)


def test_scores_do_not_depend_on_company(estimator, cohorts):
    observation, plans = observe(cohorts[1], 1), later_plans(cohorts[1], 1)
    together = estimator.score_plans(observation, plans)
    some = AmortizedMLPEstimator.from_state(*estimator.state(), estimator.predictor_)
    some.set_params(limits=Limits(gain_units=7 * len(plans) * 10))
    torch.testing.assert_close(some.score_plans(observation, plans), together)


def test_pinned_stopping_scores_zero(estimator, cohorts):
    observation, plans = observe(cohorts[1], 0), later_plans(cohorts[1], 0)
    free = estimator.score_plans(observation, plans)
    pinned = AmortizedMLPEstimator.from_state(*estimator.state(), estimator.predictor_)
    pinned.pin_stopping = True
    scores = pinned.score_plans(observation, plans)
    assert (scores[:, 0] == 0).all()
    assert torch.equal(scores[:, 1:], free[:, 1:])
    assert not torch.equal(scores[:, 0], free[:, 0])


def test_fine_tuning_leaves_the_given_predictor_alone(estimator, predictor, cohorts):
    history = observe(cohorts[1], 2).history
    before = MLPPredictor(training=QUICK).fit(*cohorts).predict_proba(history)
    np.testing.assert_array_equal(predictor.predict_proba(history), before)
    assert not np.array_equal(estimator.predictor_.predict_proba(history), before)


def test_without_fine_tuning_the_predictor_stays(predictor, cohorts):
    fitted = AmortizedMLPEstimator(fine_tune=False, training=QUICK).fit(predictor, *cohorts)
    history = observe(cohorts[1], 2).history
    np.testing.assert_array_equal(
        fitted.predictor_.predict_proba(history), predictor.predict_proba(history)
    )


def test_saved_estimator_scores_the_same(estimator, cohorts):
    observation, plans = observe(cohorts[1], 0), later_plans(cohorts[1], 0)
    restored = AmortizedMLPEstimator.from_state(*estimator.state(), estimator.predictor_)
    assert torch.equal(
        restored.score_plans(observation, plans), estimator.score_plans(observation, plans)
    )
    assert restored.get_params() == estimator.get_params()


def test_unfitted_estimator_says_so(cohorts):
    with pytest.raises(NotFittedError, match="call `fit`"):
        AmortizedMLPEstimator().score_plans(observe(cohorts[0], 0), later_plans(cohorts[0], 0))


def test_random_plans_keep_to_open_slots_and_have_every_size():
    rng = np.random.default_rng(0)
    open_slots = rng.uniform(size=(3000, 3, 2)) < 0.7
    plans = _random_plans(open_slots, rng)
    assert not (plans & ~open_slots).any()
    all_open = open_slots.all(axis=(1, 2))
    sizes = np.bincount(plans[all_open].sum(axis=(1, 2)), minlength=7) / all_open.sum()
    np.testing.assert_allclose(sizes, 1 / 7, atol=0.06)


def test_it_learns_what_plans_gain():
    # Before the first visit, acquiring everything saves much of the loss; one late digit little.
    train, val = tiny_counter_cohort(500, seed=0), tiny_counter_cohort(200, seed=1)
    training = TrainingConfig(epochs=40, batch_size=50, learning_rate=1e-2, check_every=10)
    predictor = MLPPredictor(hidden=32, training=training).fit(train, val)
    fitted = AmortizedMLPEstimator(training=training).fit(predictor, train, val)
    plans = np.zeros((3, 4, 2), dtype=bool)
    plans[1, 3, 0] = True
    plans[2] = True
    nothing, late, everything = fitted.score_plans(observe(val, -1), plans).mean(0).tolist()
    assert everything < late - 0.5
    assert everything < nothing - 0.5
    assert abs(nothing) < 0.5
