"""A predictor is fitted once per seed, whoever asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from nocta.core.history import History
from nocta.core.predictor import Predictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.runs import predictors
from nocta.runs.learning import FittedPredictor
from nocta.runs.record import Job
from nocta.runs.setup import Setup
from nocta.runs.store import JobStore
from nocta.runs.sweep import sweep


@pytest.fixture
def learned(small_setup: Setup) -> Setup:
    return replace(small_setup, predictor="learned", audit_subjects=0)  # in this process


@pytest.fixture
def n_fits(learned: Setup, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds for which a brief predictor was fitted."""
    train, val, _ = learned.source.split(learned.source.load(0), 0)
    brief = RecurrentPredictor(hidden=4, training=TrainingConfig(epochs=1)).fit(train, val)
    seeds: list[int] = []

    def fit(train: Any, val: Any, preset: str, seed: int, **options: Any) -> Predictor:
        seeds.append(seed)
        return brief

    monkeypatch.setattr("nocta.predictors.fitting.fit_predictor", fit)
    return seeds


def run(setup: Setup, store: JobStore, *seeds: int) -> None:
    """Run a new job of each seed that shares the predictor."""
    for seed in seeds:
        job = Job("nothing", seed, label=f"nothing {uuid4()}")
        assert sweep(setup, [job], store, n_jobs=1) == []


def test_it_is_fitted_once_and_then_read(learned: Setup, n_fits: list[int], tmp_path: Path) -> None:
    run(learned, JobStore(tmp_path), 0, 0, 1)
    assert n_fits == [0, 1]
    records = JobStore(tmp_path).records()
    times = {row.fit_seconds for record in records if not record.job.seed for row in record.rows}
    kept = JobStore(tmp_path).predictor(0)
    assert kept is not None
    assert min(times) >= kept.seconds > 0  # the fit of the predictor counts for every job


def test_half_a_folder_is_fitted_again(learned: Setup, n_fits: list[int], tmp_path: Path) -> None:
    (tmp_path / "jobs" / "predictor-seed0").mkdir(parents=True)
    run(learned, JobStore(tmp_path), 0)
    assert n_fits == [0]


def test_a_damaged_one_is_fitted_again(learned: Setup, n_fits: list[int], tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    run(learned, store, 0)
    arrays = store.jobs / "predictor-seed0" / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-8])
    assert store.predictor(0) is None
    run(learned, store, 0)
    assert n_fits == [0, 0]
    run(learned, store, 0)
    assert n_fits == [0, 0]


def test_the_exact_filter_needs_no_fitting(small_setup: Setup, tmp_path: Path) -> None:
    found = predictors.shared_predictor(small_setup, 0)
    assert type(found.predictor).__name__ == "BayesPredictor"
    assert found.seconds == 0.0
    run(small_setup, JobStore(tmp_path), 0)
    assert not list(tmp_path.glob("jobs/predictor*"))


def test_the_predictor_is_that_of_the_preset_and_never_sees_test_subjects(
    learned: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "nocta.predictors.fitting.fit_predictor",
        lambda *args, kind, quick: given.extend((*args, kind, quick)),
    )
    predictors.shared_predictor(replace(learned, preset="paper", quick=True), 3)
    train, val, preset, seed, kind, quick = given
    assert (preset, seed, kind, quick) == ("paper", 3, "learned", True)
    expected = learned.source.split(learned.source.load(3), 3)
    assert train.subjects.tolist() == expected[0].subjects.tolist()
    assert val.subjects.tolist() == expected[1].subjects.tolist()


def test_a_kept_predictor_predicts_the_same(learned: Setup, tmp_path: Path) -> None:
    train, val, test = learned.source.split(learned.source.load(0), 0)
    brief = RecurrentPredictor(hidden=4, training=TrainingConfig(epochs=1)).fit(train, val)
    store = JobStore(tmp_path)
    store.save_predictor(0, FittedPredictor(brief, 1.5))
    kept = store.predictor(0)
    assert kept is not None
    assert kept.seconds == 1.5
    history = History.of(test, test.recorded)
    assert np.array_equal(kept.predictor.predict_proba(history), brief.predict_proba(history))
