"""`--predictor NAME`: plug-ins are fitted, kept and refused before anything is trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foreign_predictors import (
    PrevalencePredictor,
    installed,  # noqa: F401 - a fixture
)
from nocta.core.errors import ConfigError, ModelError
from nocta.predictors import fitting
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.runs.compare import compare, make_jobs, own_predictor_notes
from nocta.runs.fit_run import FitRequest, fit_to_folder
from nocta.runs.predictors import is_kept
from nocta.runs.record import Job
from nocta.runs.setup import DataSource, Setup
from nocta.runs.store import JobStore
from nocta.runs.sweep import sweep

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr(fitting, "fit_predictor", refuse)
    monkeypatch.setattr("nocta.runs.fit_run.fit_predictor", refuse)


def test_a_plug_in_is_fitted_once_and_kept(small_setup: Setup, tmp_path: Path) -> None:
    setup = replace(small_setup, predictor="prevalence", audit_subjects=0)
    assert is_kept(setup)
    store = JobStore(tmp_path)
    for label in ("a", "b"):
        assert sweep(setup, [Job("nothing", 0, label=label)], store, n_jobs=1) == []
    kept = store.predictor(0)
    assert kept is not None
    assert isinstance(kept.predictor, CrossFittedPredictor)
    assert isinstance(kept.predictor.members[0], PrevalencePredictor)
    assert not is_kept(replace(setup, predictor="boosted"))


@pytest.mark.parametrize("name", ["prevalence", "boosted"])
def test_a_comparison_acquires_for_a_plug_in(name: str, small_setup: Setup, tmp_path: Path) -> None:
    setup = replace(small_setup, predictor=name, quick=True, n_points=2, audit_subjects=0)
    found = compare(setup, make_jobs(["static"], [0], {}), tmp_path / "out", n_jobs=1)
    assert not found.failures
    assert (tmp_path / "out" / "results.csv").is_file()


@pytest.mark.parametrize("method", ["dime", "asac"])
@pytest.mark.parametrize("predictor", ["prevalence", "bayes"])
@pytest.mark.usefixtures("untrained")
def test_methods_that_cannot_use_it_are_refused_before_training(
    method: str, predictor: str, small_setup: Setup, tmp_path: Path
) -> None:
    setup = replace(small_setup, predictor=predictor)
    with pytest.raises(ConfigError, match=f"Method '{method}' trains the predictor further"):
        compare(setup, make_jobs(["static", method], [0], {}), tmp_path / "out", n_jobs=1)


@pytest.mark.usefixtures("untrained")
def test_a_fit_refuses_it_for_a_method_with_its_own_predictor(tmp_path: Path) -> None:
    source = DataSource("synthetic", data_options={"n_subjects": 80})
    request = FitRequest(source, method="ras", predictor="prevalence")
    with pytest.raises(ConfigError, match="Method 'ras' trains its own predictor"):
        fit_to_folder(request, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_comparison_notes_methods_with_their_own_predictor(small_setup: Setup) -> None:
    setup = replace(small_setup, predictor="prevalence")
    jobs = make_jobs(["static", "ras", "asac", "difa"], [0, 1], {"asac": {"predictor": "lstm"}})
    assert own_predictor_notes(setup, jobs) == [
        "ras, asac and difa train their own predictor; --predictor does not apply to them."
    ]
    assert own_predictor_notes(replace(setup, predictor="learned"), jobs) == []


def test_unknown_names_are_refused_with_a_hint(small_setup: Setup) -> None:
    with pytest.raises(ConfigError, match=r"no predictor 'prevalance'. Did you mean 'prevalence'"):
        replace(small_setup, predictor="prevalance")
    with pytest.raises(ConfigError, match=r"Did you mean 'learned'"):
        FitRequest(DataSource("synthetic"), predictor="learnt")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"predictor": "boosted"}, ModelError, "BoostedPredictor cannot be saved"),
        ({"predictor": "prevalence", "preset": "paper"}, ConfigError, "with the 'paper' preset"),
    ],
)
@pytest.mark.usefixtures("untrained")
def test_a_fit_is_refused_before_training(
    options: dict[str, str], error: type[Exception], match: str, tmp_path: Path
) -> None:
    options = {"method": "nocta-amortized", **options}
    request = FitRequest(DataSource("synthetic", max_subjects=60), quick=True, **options)  # type: ignore[arg-type]
    with pytest.raises(error, match=match):
        fit_to_folder(request, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("predictor", ["prevalence", "bayes"])
def test_a_fit_with_a_named_predictor_is_saved(predictor: str, tmp_path: Path) -> None:
    import nocta

    source = DataSource("synthetic", max_subjects=60)
    options = {"n_rounds": 0, "hidden": 8, "width": 2}
    how = {"n_points": 1, "quick": True, "predictor": predictor}
    request = FitRequest(source, method="nocta-amortized", preset_options=options, **how)
    model = fit_to_folder(request, tmp_path / "model")
    test = request.parts()[3].subset(np.arange(4))
    before, after = (m.rollout(test, 0.3) for m in (model, nocta.load(tmp_path / "model")))
    np.testing.assert_array_equal(before.probabilities, after.probabilities)
