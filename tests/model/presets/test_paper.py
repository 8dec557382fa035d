"""The `paper` preset: it keeps the contract, and every knob of it does something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nocta
from nocta.core.errors import ConfigError
from nocta.core.options import read_options
from nocta.model.presets.options import DefaultOptions, PaperOptions
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import check_policy, tiny_cohort

QUICK = {"n_candidates": 40, "embedding_epochs": 1, "embedding_weights": [0.5]}


@pytest.fixture(scope="module")
def parts() -> list[nocta.Cohort]:
    return tiny_cohort(n_subjects=60, seed=0).split(seed=0)


@pytest.fixture(scope="module")
def predictor(parts: list[nocta.Cohort]) -> CrossFittedPredictor:
    train, val, _ = parts
    training = TrainingConfig(epochs=4, batch_size=32)
    return CrossFittedPredictor(
        [MLPPredictor(training=training).fit(train, val)], np.zeros(len(train), dtype=int), False
    )


@pytest.fixture(scope="module")
def contrastive(parts: list[nocta.Cohort], predictor: CrossFittedPredictor) -> nocta.NOCTA:
    train, val, _ = parts
    return nocta.NOCTA("contrastive", "paper", options=QUICK).fit(train, val, predictor=predictor)


def test_the_contract_holds(contrastive: nocta.NOCTA, parts: list[nocta.Cohort]) -> None:
    check_policy(lambda cohort: contrastive.policy(0.02), parts[2], n_alone=1)


def test_a_saved_model_decides_alike(
    contrastive: nocta.NOCTA, parts: list[nocta.Cohort], tmp_path: Path
) -> None:
    contrastive.save(tmp_path / "m")
    before = contrastive.rollout(parts[2], 0.02)
    after = nocta.load(tmp_path / "m").rollout(parts[2], 0.02)
    assert np.array_equal(before.history.requested, after.history.requested)
    assert np.array_equal(before.probabilities, after.probabilities)


def test_the_amortized_form_fine_tunes_and_tells_losses(
    parts: list[nocta.Cohort], predictor: CrossFittedPredictor
) -> None:
    train, val, test = parts
    options = nocta.PaperOptions(**QUICK, amortized_epochs=2)
    model = nocta.NOCTA("amortized", "paper", options=options).fit(train, val, predictor=predictor)
    tuned = model.policy(0.02).predictor
    assert tuned is not predictor
    found = model.decide(nocta.History.empty(test.catalog, test.context[:1]), 0.02)
    # A loss over four labeled slots of two classes, not a gain around zero.
    assert 0.2 < found.stopping.expected_loss < 10
    assert model.rollout(test, 0.0, budget=2.0).costs.max() <= 2.0
    check_policy(lambda cohort: model.policy(0.02), test, n_alone=1)


def test_unknown_and_impossible_options_are_named() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'n_neighbors'"):
        read_options(PaperOptions, {"n_neighbor": 3})
    with pytest.raises(ConfigError, match="loss is 'nll'"):
        read_options(DefaultOptions, {"loss": "nll"})
    with pytest.raises(ConfigError, match="width is 0"):
        DefaultOptions(width=0)
