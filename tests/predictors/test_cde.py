"""The neural CDE is causal, advances slot by slot as in one pass, and learns."""

from __future__ import annotations

import builtins
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import MissingExtraError
from nocta.core.history import History
from nocta.predictors.cde import CdePredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.training import TrainingConfig
from nocta.testing import check_predictor, tiny_cohort

pytest.importorskip("torchcde")


@pytest.fixture(scope="module")
def parts() -> list[Cohort]:
    return list(tiny_cohort(160).split((0.7, 0.3)))


@pytest.fixture(scope="module")
def predictor(parts: list[Cohort]) -> CdePredictor:
    training = TrainingConfig(epochs=12, batch_size=32, learning_rate=1e-2)
    return CdePredictor(hidden=8, training=training).fit(*parts)


def test_it_keeps_the_predictor_contract(predictor: CdePredictor, parts: list[Cohort]) -> None:
    check_predictor(predictor, parts[1].subset(range(12)))


def test_slot_by_slot_equals_one_pass(predictor: CdePredictor, parts: list[Cohort]) -> None:
    cohort = parts[1]
    asked = np.random.default_rng(0).random(cohort.recorded.shape) < 0.5
    inputs = EncodedCohort(predictor.encoder_, cohort).inputs(np.arange(len(cohort)), asked)
    encoder, carry, found = predictor.net_.encoder, None, []
    with torch.no_grad():
        for k in range(cohort.n_times):
            state, carry = encoder.advance(inputs[:, k], carry)
            found.append(state)
        torch.testing.assert_close(torch.stack(found, dim=1), encoder.states(inputs))


def test_a_value_that_repeats_itself_is_still_an_event(
    predictor: CdePredictor, parts: list[Cohort]
) -> None:
    once = np.zeros(parts[1].recorded.shape, dtype=bool)
    once[:, 0] = True
    twice = once.copy()
    twice[:, 1] = True
    same = parts[1].values.copy()
    same[:, 1] = same[:, 0]
    cohort = replace(parts[1], values=same, visits=np.ones_like(parts[1].visits))
    known = cohort.recorded[:, :2].any(axis=(1, 2))
    a = predictor.predict_proba(History.of(cohort, once))[known, 1]
    b = predictor.predict_proba(History.of(cohort, twice))[known, 1]
    assert (a != b).any(axis=1).all()


def test_it_beats_the_base_rate(predictor: CdePredictor, parts: list[Cohort]) -> None:
    cohort = parts[1]
    found = predictor.predict_proba(History.of(cohort, np.ones_like(cohort.recorded)))
    truth, labeled = cohort.labels, cohort.labeled
    right = (found.argmax(axis=2) == truth)[labeled].mean()
    assert right > np.bincount(truth[labeled]).max() / labeled.sum() + 0.05


def test_without_torchcde_the_error_names_the_extra(
    parts: list[Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def no_torchcde(name: str, *args: Any, **options: Any) -> Any:
        if name == "torchcde":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", no_torchcde)
    with pytest.raises(MissingExtraError, match=r"nocta\[cde\].*encoder='gru'"):
        CdePredictor(hidden=4).fit(*parts)
