"""A predictor is fitted once per seed, whoever asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nocta.core.errors import ModelError
from nocta.core.history import History
from nocta.core.predictor import Predictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.runs import shared
from nocta.runs.setup import Setup
from nocta.testing import RunningMeanPredictor


class Keeper:
    """A stand-in for saving and loading that counts what it does."""

    def __init__(self) -> None:
        self.n_fits = self.n_loads = 0
        self.damaged = False

    def fit(self, setup: Setup, seed: int) -> Predictor:
        self.n_fits += 1
        return RunningMeanPredictor(21)

    def save_predictor(self, predictor: Predictor, path: Path) -> None:
        path.mkdir(parents=True)

    def load_predictor(self, path: Path) -> Predictor:
        self.n_loads += 1
        if self.damaged:
            raise ModelError("bits are missing")
        return RunningMeanPredictor(21)


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    found = Keeper()
    monkeypatch.setattr(shared, "save_predictor", found.save_predictor)
    monkeypatch.setattr(shared, "load_predictor", found.load_predictor)
    monkeypatch.setattr(shared, "fit_predictor", found.fit)
    return found


@pytest.fixture
def learned(small_setup: Setup) -> Setup:
    return replace(small_setup, predictor="learned")


def test_it_is_fitted_once_and_then_read(keeper: Keeper, learned: Setup, tmp_path: Path) -> None:
    first = shared.shared_predictor(learned, 0, tmp_path)
    second = shared.shared_predictor(learned, 0, tmp_path)
    assert (keeper.n_fits, keeper.n_loads) == (1, 1)
    assert first.seconds == second.seconds
    shared.shared_predictor(learned, 1, tmp_path)
    assert keeper.n_fits == 2


def test_half_a_folder_is_fitted_anew(keeper: Keeper, learned: Setup, tmp_path: Path) -> None:
    (tmp_path / "predictor-seed0").mkdir()
    shared.shared_predictor(learned, 0, tmp_path)
    assert (keeper.n_fits, keeper.n_loads) == (1, 0)


def test_a_damaged_one_is_fitted_anew(keeper: Keeper, learned: Setup, tmp_path: Path) -> None:
    shared.shared_predictor(learned, 0, tmp_path)
    keeper.damaged = True
    shared.shared_predictor(learned, 0, tmp_path)
    assert keeper.n_fits == 2
    keeper.damaged = False
    shared.shared_predictor(learned, 0, tmp_path)
    assert keeper.n_fits == 2


def test_the_exact_filter_needs_no_fitting(small_setup: Setup, tmp_path: Path) -> None:
    found = shared.shared_predictor(small_setup, 0, tmp_path)
    assert type(found.predictor).__name__ == "BayesPredictor"
    assert found.seconds == 0.0
    assert list(tmp_path.iterdir()) == []


def test_the_predictor_is_that_of_the_preset_and_never_sees_test_subjects(
    learned: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "nocta.predictors.fitting.fit_predictor",
        lambda *args, quick: given.extend((*args, quick)),
    )
    shared.fit_predictor(replace(learned, preset="paper", quick=True), 3)
    train, val, preset, seed, quick = given
    assert (preset, seed, quick) == ("paper", 3, True)
    expected = learned.source.split(learned.source.load(3), 3)
    assert train.subjects.tolist() == expected[0].subjects.tolist()
    assert val.subjects.tolist() == expected[1].subjects.tolist()


def test_a_kept_predictor_predicts_the_same(
    learned: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, val, test = learned.source.split(learned.source.load(0), 0)
    brief = RecurrentPredictor(hidden=4, training=TrainingConfig(epochs=1)).fit(train, val)
    monkeypatch.setattr(shared, "fit_predictor", lambda setup, seed: brief)
    shared.shared_predictor(learned, 0, tmp_path)
    kept = shared.shared_predictor(learned, 0, tmp_path).predictor
    assert kept is not brief
    history = History.of(test, test.recorded)
    assert np.array_equal(kept.predict_proba(history), brief.predict_proba(history))
