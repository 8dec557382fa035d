"""The contract itself: it passes what is honest and fails what is not, each for its reason."""

from __future__ import annotations

import numpy as np
import pytest

import nocta.testing
from nocta.core.errors import BudgetTooSmall, LeakageError, PlanError
from nocta.core.history import History
from nocta.core.policy import Decision
from nocta.core.rollout import rollout
from nocta.methods.fixed import FixedPlanPolicy, RandomPolicy
from nocta.testing import (
    LEAKY_POLICIES,
    NonCausalPredictor,
    OraclePredictor,
    RunningMeanPredictor,
    check_policy,
    check_predictor,
    tiny_cohort,
    tiny_counter_cohort,
)

PREDICTOR = RunningMeanPredictor(2)


@pytest.fixture
def cohort():
    return tiny_cohort()


def everything(cohort, kind=FixedPlanPolicy, predictor=PREDICTOR):
    return lambda _: kind(cohort.catalog.open_slots, predictor)


# -- tiny cohorts ------------------------------------------------------------------------


def test_the_tiny_cohort_has_every_kind_of_trouble():
    cohort = tiny_cohort(60)
    assert not cohort.visits.all()
    assert (cohort.labels < 0).any()
    assert (~cohort.recorded & cohort.visits[..., None]).any()
    half = np.isnan(cohort.values[..., 2]) & ~np.isnan(cohort.values[..., 1])
    assert half.any()
    assert cohort.catalog.group_fees
    assert cohort.context.shape == (60, 1)
    assert set(np.unique(cohort.labels)) == {-1, 0, 1}


def test_tiny_cohorts_follow_their_seed():
    for make in (tiny_cohort, tiny_counter_cohort):
        first, again, other = make(9, seed=1), make(9, seed=1), make(9, seed=2)
        assert np.array_equal(first.values, again.values, equal_nan=True)
        assert not np.array_equal(first.values, other.values, equal_nan=True)


def test_acquiring_tells_something_about_the_tiny_label():
    cohort = tiny_cohort(300)
    losses = [
        rollout(FixedPlanPolicy(plan, PREDICTOR), cohort).summary()["roc_auc"]
        for plan in (cohort.catalog.open_slots, np.zeros((4, 2), bool))
    ]
    assert losses[0] > 0.75 > losses[1]


def test_the_oracle_is_right_when_everything_is_known():
    cohort = tiny_counter_cohort(30, n_times=5)
    known = History.of(cohort, cohort.catalog.open_slots)
    predicted = OraclePredictor(n_times=5).predict_proba(known)
    assert (predicted.argmax(axis=2) == cohort.labels).all()


def test_everything_public_is_listed():
    for name in nocta.testing.__all__:
        assert getattr(nocta.testing, name) is not None


# -- policies ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEAKY_POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_every_leaking_policy_fails(kind, seed):
    with pytest.raises(LeakageError, match="leaks"):
        check_policy(LEAKY_POLICIES[kind], tiny_cohort(seed=seed), seed=seed)


def test_a_leak_of_label_existence_fails(cohort):
    def look(world, rows, time):
        later = np.arange(world.n_times) > time[:, None]
        return ((world.labels[rows] >= 0) & later).any(axis=1)

    with pytest.raises(LeakageError, match="which later values, visits or labels exist"):
        check_policy(lambda world: nocta.testing.LeakyPolicy(world, look), cohort)


def test_honest_policies_pass(cohort):
    check_policy(everything(cohort), cohort)
    check_policy(lambda _: RandomPolicy(0.4, PREDICTOR), cohort)


def test_a_non_causal_predictor_fails_with_its_policy(cohort):
    with pytest.raises(LeakageError, match="its prediction"):
        check_policy(everything(cohort, predictor=NonCausalPredictor(2)), cohort)


class SharedStream(RandomPolicy):
    """One stream for all: what a subject gets depends on who else is in the batch."""

    def begin(self, n_subjects, seed):
        self.rng = np.random.default_rng(seed)

    def _rows(self, observation):
        return self.rng.random(observation.open_slots.shape)


def test_a_stream_shared_by_the_batch_fails(cohort):
    with pytest.raises(AssertionError, match="decides differently for a subject alone"):
        check_policy(lambda _: SharedStream(0.5, PREDICTOR), cohort)


class Forgetful(RandomPolicy):
    """Draws from a stream that no seed reaches."""

    stream = np.random.default_rng(0)

    def begin(self, n_subjects, seed):
        super().begin(n_subjects, int(self.stream.integers(1 << 30)))


def test_randomness_without_the_seed_fails(cohort):
    with pytest.raises((AssertionError, LeakageError)):
        check_policy(lambda _: Forgetful(0.5, PREDICTOR), cohort)


class Spendthrift(FixedPlanPolicy):
    def decide(self, observation):
        return Decision.from_plans(self.plan & observation.open_slots)


def test_a_policy_that_ignores_its_budget_fails(cohort):
    with pytest.raises(BudgetTooSmall, match=r"but only .* is left"):
        check_policy(everything(cohort, Spendthrift), cohort)


class Backwards(FixedPlanPolicy):
    def decide(self, observation):
        n = len(observation)
        return Decision(np.zeros(n, dtype=np.int64), np.ones((n, 2), dtype=bool))


def test_a_policy_that_goes_back_in_time_fails(cohort):
    with pytest.raises(PlanError, match="time runs forward"):
        check_policy(everything(cohort, Backwards), cohort, budget_shares=[None])


class Scribbler(FixedPlanPolicy):
    def decide(self, observation):
        decision = super().decide(observation)
        observation.history.values[:] = 0.0
        return decision


def test_a_policy_that_writes_into_its_observation_fails(cohort):
    with pytest.raises(AssertionError, match="changes the observation"):
        check_policy(everything(cohort, Scribbler), cohort)


class Saved(FixedPlanPolicy):
    """Loses half of its plan when saved."""

    faithful = True

    def save(self, path):
        path.mkdir()
        np.save(path / "plan.npy", self.plan if self.faithful else self.plan & (np.arange(2) == 0))

    @classmethod
    def load(cls, path):
        return cls(np.load(path / "plan.npy"), PREDICTOR)


class BadlySaved(Saved):
    faithful = False


def test_saving_must_keep_the_policy(cohort):
    check_policy(everything(cohort, Saved), cohort)
    with pytest.raises(AssertionError, match="not the same after saving"):
        check_policy(everything(cohort, BadlySaved), cohort, budget_shares=[None])


# -- predictors --------------------------------------------------------------------------


def test_honest_predictors_pass(cohort):
    check_predictor(PREDICTOR, cohort)
    check_predictor(OraclePredictor(), tiny_counter_cohort())


def test_a_non_causal_predictor_fails(cohort):
    with pytest.raises(LeakageError, match="is not causal: a prediction at or before time 0"):
        check_predictor(NonCausalPredictor(2), cohort)


class BatchNormed(RunningMeanPredictor):
    def predict_proba(self, history):
        found = super().predict_proba(history)
        crowd = found.mean(axis=0, keepdims=True)
        return (found + crowd) / 2


def test_a_predictor_that_mixes_subjects_fails(cohort):
    with pytest.raises(LeakageError, match=r"mixes subjects|not causal"):
        check_predictor(BatchNormed(2), cohort)


class Restless(RunningMeanPredictor):
    rng = np.random.default_rng(0)

    def predict_proba(self, history):
        share = self.rng.random((*history.values.shape[:2], 1)).astype(np.float32)
        return np.concatenate([1 - share, share], axis=2)


def test_a_predictor_with_dice_fails(cohort):
    with pytest.raises(AssertionError, match="differently for the same history"):
        check_predictor(Restless(2), cohort)


class Unnormalized(RunningMeanPredictor):
    def predict_proba(self, history):
        return super().predict_proba(history) * 2


class Filler(RunningMeanPredictor):
    def predict_proba(self, history):
        found = super().predict_proba(history)
        np.nan_to_num(history.values, copy=False)
        return found


class Transposed(RunningMeanPredictor):
    def predict_proba(self, history):
        return super().predict_proba(history).swapaxes(1, 2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Unnormalized, "sum to one"),
        (Filler, "changes the history"),
        (Transposed, "expected"),
    ],
)
def test_a_careless_predictor_fails(kind, message, cohort):
    with pytest.raises(AssertionError, match=message):
        check_predictor(kind(2), cohort)


class Stateful(RunningMeanPredictor):
    def state(self):
        return {"n_classes": self.n_classes_}, {}

    @classmethod
    def from_state(cls, config, arrays):
        return cls(config["n_classes"])


class BadlyStateful(Stateful):
    @classmethod
    def from_state(cls, config, arrays):
        return NonCausalPredictor(config["n_classes"])


def test_state_must_restore_the_predictor(cohort):
    check_predictor(Stateful(2), cohort)
    with pytest.raises(AssertionError, match="not the same after saving"):
        check_predictor(BadlyStateful(2), cohort)
