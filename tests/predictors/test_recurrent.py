"""The recurrent predictor: causal, seeded, calibrated, and able to tell missing from not asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nocta.core.errors import NotFittedError
from nocta.core.history import History
from nocta.core.metrics import cross_entropy
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.gru import combine, input_half, state_half
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import OraclePredictor, check_predictor, tiny_cohort, tiny_counter_cohort
from small_models import Parts

SHORT = TrainingConfig(epochs=4, batch_size=32, check_every=2)


@pytest.fixture(scope="module")
def fitted(tiny_parts: Parts) -> RecurrentPredictor:
    training = TrainingConfig(epochs=20, batch_size=32, learning_rate=1e-2, check_every=5)
    return RecurrentPredictor(hidden=12, training=training).fit(tiny_parts[0], tiny_parts[1])


def test_the_predictor_contract_holds(
    fitted: RecurrentPredictor, tiny_predictor: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    check_predictor(fitted, tiny_parts[2])
    check_predictor(tiny_predictor, tiny_parts[2])


def test_probabilities_follow_what_was_acquired(
    fitted: RecurrentPredictor, tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    seen = test.labeled
    losses = []
    for share in (0.0, 1.0):
        asked = np.full(test.recorded.shape, bool(share))
        proba = fitted.predict_proba(History.of(test, asked))
        losses.append(cross_entropy(test.labels[seen], proba[seen]))
    assert losses[1] < losses[0] - 0.05


def test_missing_is_not_the_same_as_not_acquired(
    fitted: RecurrentPredictor, tiny_parts: Parts
) -> None:
    history = History.empty(tiny_parts[2].catalog, tiny_parts[2].context)
    in_vain = History(
        history.values, history.acquired, np.ones_like(history.unavailable), history.context
    )
    assert not np.array_equal(fitted.predict_proba(history), fitted.predict_proba(in_vain))


def test_a_cohort_encoded_once_gives_the_inputs_of_its_histories(
    fitted: RecurrentPredictor, tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    asked = np.random.default_rng(0).uniform(size=test.recorded.shape) < 0.5
    inputs = EncodedCohort(fitted.encoder_, test).inputs(np.arange(len(test)), asked)
    np.testing.assert_array_equal(inputs, fitted.encode(History.of(test, asked)))


def test_the_unit_in_two_halves_is_the_unit() -> None:
    torch.manual_seed(0)
    cell = torch.nn.GRU(5, 7, batch_first=True)
    inputs, state = torch.randn(4, 1, 5), torch.randn(4, 7)
    with torch.no_grad():
        whole, _ = cell(inputs, state[None])
        halves = combine(input_half(cell, inputs[:, 0]), state_half(cell, state), state)
    np.testing.assert_allclose(whole[:, 0], halves, atol=1e-6)


def test_same_seed_gives_the_same_network(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    history = History.of(test, np.ones_like(test.recorded))
    first, again, other = (
        RecurrentPredictor(hidden=6, dropout=0.2, training=SHORT, seed=seed).fit(train, val)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.predict_proba(history), again.predict_proba(history))
    assert not np.array_equal(first.predict_proba(history), other.predict_proba(history))


def test_global_randomness_is_left_alone(tiny_parts: Parts) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    RecurrentPredictor(hidden=4, training=SHORT).fit(tiny_parts[0], tiny_parts[1])
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_saved_predictor_predicts_the_same(fitted: RecurrentPredictor, tiny_parts: Parts) -> None:
    history = History.of(tiny_parts[2], np.ones_like(tiny_parts[2].recorded))
    again = RecurrentPredictor.from_state(*fitted.state())
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(fitted.predict_proba(history), again.predict_proba(history))


def test_calibration_lowers_the_validation_loss(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    sharp = TrainingConfig(epochs=60, batch_size=16, learning_rate=2e-2, patience=99)
    few = train.subset(np.arange(20))
    plain, calibrated = (
        RecurrentPredictor(hidden=24, training=sharp, calibrate=c).fit(few, val)
        for c in (False, True)
    )
    assert plain.temperature_ == 1.0
    assert calibrated.temperature_ != 1.0
    inputs, labels = calibrated._validation_set(val, val.catalog.open_slots)
    losses = [
        float(torch.nn.functional.nll_loss(p.log_proba(inputs)[labels >= 0], labels[labels >= 0]))
        for p in (plain, calibrated)
    ]
    assert losses[1] <= losses[0] + 1e-6


def test_balanced_weights_raise_the_rare_class() -> None:
    cohort = tiny_cohort(200, seed=3)
    labels = np.where(np.random.default_rng(0).uniform(size=cohort.labels.shape) < 0.1, 1, 0)
    rare = replace(cohort, labels=labels)
    history = History.empty(rare.catalog, rare.context)
    longer = TrainingConfig(epochs=10, batch_size=32, learning_rate=1e-2, check_every=2)
    shares = [
        RecurrentPredictor(hidden=8, training=longer, class_weight=w, calibrate=False)
        .fit(rare, rare)
        .predict_proba(history)[..., 1]
        .mean()
        for w in (None, "balanced")
    ]
    assert shares[1] > shares[0] + 0.1


def test_unfitted_predictor_says_so(tiny_parts: Parts) -> None:
    history = History.empty(tiny_parts[2].catalog, tiny_parts[2].context)
    with pytest.raises(NotFittedError, match="not fitted"):
        RecurrentPredictor().predict_proba(history)


def test_it_comes_near_the_exact_filter() -> None:
    train, val = tiny_counter_cohort(900, seed=1), tiny_counter_cohort(300, seed=2)
    training = TrainingConfig(epochs=40, batch_size=64, learning_rate=1e-2)
    learned = RecurrentPredictor(hidden=32, training=training).fit(train, val)
    asked = np.random.default_rng(0).uniform(size=val.recorded.shape) < 0.6
    history = History.of(val, asked)
    labels = val.labels.reshape(-1)
    ours, exact = (
        cross_entropy(labels, p.predict_proba(history).reshape(len(labels), -1))
        for p in (learned, OraclePredictor())
    )
    assert exact < ours < exact + 0.25
