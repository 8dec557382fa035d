"""Network and linear model in equal shares: their mean, and nothing but their mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nocta.core.history import History
from nocta.model.persistence import load_predictor, save_predictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig
from nocta.predictors.walking import AdditiveNet, WalkingNet
from nocta.testing import check_predictor
from small_models import Parts

SHORT = TrainingConfig(epochs=6, batch_size=32, learning_rate=1e-2, check_every=2)


@pytest.fixture(scope="module")
def parts(tiny_parts: Parts) -> tuple[RecurrentPredictor, SummaryPredictor]:
    train, val, _ = tiny_parts
    network = RecurrentPredictor(hidden=8, dropout=0.2, training=SHORT, seed=3).fit(train, val)
    return network, SummaryPredictor(seed=3).fit(train, val)


@pytest.fixture(scope="module")
def mixed(parts: tuple[RecurrentPredictor, SummaryPredictor], tiny_parts: Parts) -> MixedPredictor:
    return MixedPredictor.of(*parts, tiny_parts[1])


@pytest.fixture(scope="module")
def history(tiny_parts: Parts) -> History:
    test = tiny_parts[2]
    return History.of(test, np.random.default_rng(0).uniform(size=test.recorded.shape) < 0.6)


def test_the_predictor_contract_holds(mixed: MixedPredictor, tiny_parts: Parts) -> None:
    check_predictor(mixed, tiny_parts[2])


def test_it_is_the_mean_of_the_probabilities(
    parts: tuple[RecurrentPredictor, SummaryPredictor], mixed: MixedPredictor, history: History
) -> None:
    each = [part.predict_proba(history) for part in parts]
    assert parts[0].temperature_ != parts[1].temperature_
    assert np.abs(each[0] - each[1]).max() > 0.05
    with torch.no_grad():
        found = mixed.net_(mixed.encode(history)).exp()
    np.testing.assert_allclose(found, (each[0] + each[1]) / 2, atol=1e-6)


def test_the_mean_is_calibrated_once_more(
    mixed: MixedPredictor, history: History, tiny_parts: Parts
) -> None:
    with torch.no_grad():
        logits = mixed.net_(mixed.encode(history))
    expected = torch.softmax(logits / mixed.temperature_, dim=-1)
    np.testing.assert_allclose(mixed.predict_proba(history), expected, atol=1e-6)
    inputs, labels = mixed._validation_set(tiny_parts[1], tiny_parts[1].catalog.open_slots)
    kept, seen = mixed.temperature_, labels >= 0
    assert kept != 1.0
    calibrated, plain = (
        torch.nn.functional.nll_loss(
            torch.log_softmax(mixed._logits(inputs).detach() / t, dim=-1)[seen], labels[seen]
        )
        for t in (kept, 1.0)
    )
    assert calibrated < plain


def test_fitting_it_equals_mixing_its_parts(
    mixed: MixedPredictor, history: History, tiny_parts: Parts
) -> None:
    again = MixedPredictor(**mixed.get_params(deep=False)).fit(*tiny_parts[:2])
    np.testing.assert_array_equal(again.predict_proba(history), mixed.predict_proba(history))
    assert again.log_ == mixed.log_


@torch.no_grad()
def test_going_slot_by_slot_equals_one_pass(mixed: MixedPredictor, history: History) -> None:
    net, inputs = mixed.net_, mixed.encode(history)
    assert isinstance(net, WalkingNet)
    assert not isinstance(net, AdditiveNet)
    walked, outputs = net.walk(inputs), net(inputs)
    state = torch.zeros(len(inputs), net.state_width)
    for k in range(inputs.shape[1]):
        state = net.extend(state, inputs[:, k])
        torch.testing.assert_close(state, walked[:, k], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(net.read(state), outputs[:, k], atol=1e-5, rtol=1e-5)


def test_a_saved_predictor_predicts_the_same(
    mixed: MixedPredictor, history: History, tmp_path: Path
) -> None:
    again = MixedPredictor.from_state(*mixed.state())
    assert again.get_params() == mixed.get_params()
    save_predictor(mixed, tmp_path / "alone")
    both = CrossFittedPredictor([mixed, mixed], np.zeros(60, dtype=np.int64))
    save_predictor(both, tmp_path / "folds")
    for other in (again, load_predictor(tmp_path / "alone"), load_predictor(tmp_path / "folds")):
        np.testing.assert_array_equal(mixed.predict_proba(history), other.predict_proba(history))
