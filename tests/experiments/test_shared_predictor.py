"""A predictor is fitted once per seed, whoever asks for it."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from nocta.exceptions import ModelError
from nocta.experiments import shared
from nocta.experiments.setup import Setup
from nocta.predictors.base import Predictor
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
    module = types.ModuleType("nocta.persistence")
    module.save_predictor = found.save_predictor  # type: ignore[attr-defined]
    module.load_predictor = found.load_predictor  # type: ignore[attr-defined]
    module.__spec__ = ModuleSpec("nocta.persistence", None)
    monkeypatch.setitem(sys.modules, "nocta.persistence", module)
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


def test_a_learned_one_predicts(learned: Setup) -> None:
    setup = replace(learned.rehearsal(), source=replace(learned.source, max_subjects=40))
    assert shared.fit_predictor(setup, 0).n_classes_ == 21
