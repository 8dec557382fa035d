"""Every kind of predictor survives saving and loading; plug-ins are found by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from foreign_predictors import (
    BoostedPredictor,
    PrevalencePredictor,
    installed,  # noqa: F401 - a fixture
)
from nocta.core import plugins as plugins_module
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, ModelError
from nocta.core.history import History
from nocta.core.predictor import Predictor
from nocta.exact.task import synthetic_task
from nocta.model.persistence import load_predictor, save_predictor
from nocta.predictors import registry
from nocta.predictors.bayes import BayesPredictor
from nocta.predictors.cde import CdePredictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.recurrent import LSTMPredictor, RecurrentPredictor
from nocta.predictors.registry import (
    check_predictor_name,
    check_savable,
    new_predictor,
    predictor_class,
    predictor_names,
    predictor_state,
    restore_predictor,
)
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_counter_cohort

SHORT = TrainingConfig(epochs=2, batch_size=32, check_every=1)
MAKE: dict[str, Callable[[], Predictor]] = {
    "recurrent": lambda: RecurrentPredictor(8, training=SHORT),
    "lstm": lambda: LSTMPredictor(8, training=SHORT),
    "mlp": lambda: MLPPredictor(8, training=SHORT),
    "summary": lambda: SummaryPredictor((0.1,)),
    "mixed": lambda: MixedPredictor(8, training=SHORT),
    "cde": lambda: CdePredictor(4, training=SHORT),
    "bayes": lambda: BayesPredictor(synthetic_task(horizon=4)),
    "prevalence": PrevalencePredictor,
}


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return tiny_counter_cohort(40)


def _fitted(kind: str, cohort: Cohort) -> Predictor:
    if kind == "cde":
        pytest.importorskip("torchcde")
    if kind == "cross-fitted":
        members = [_fitted("summary", cohort), _fitted("prevalence", cohort)]
        return CrossFittedPredictor(members, np.arange(len(cohort)) % 2)
    predictor = MAKE[kind]()
    return predictor if kind == "bayes" else predictor.fit(cohort, cohort, seed=1)  # type: ignore[attr-defined,no-any-return]


def test_every_kind_is_tried() -> None:
    assert set(registry.KINDS) == set(MAKE) - {"prevalence"} | {"cross-fitted"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kind", [*registry.KINDS, "prevalence"])
def test_every_kind_survives_saving_and_loading(kind: str, cohort: Cohort, tmp_path: Path) -> None:
    predictor = _fitted(kind, cohort)
    save_predictor(predictor, tmp_path / "predictor")
    loaded = load_predictor(tmp_path / "predictor")
    assert type(loaded) is type(predictor)
    asked = np.random.default_rng(0).random(cohort.recorded.shape) < 0.5
    history = History.of(cohort, asked)
    np.testing.assert_array_equal(loaded.predict_proba(history), predictor.predict_proba(history))


@pytest.mark.usefixtures("installed")
def test_plug_ins_are_found_by_name() -> None:
    assert predictor_names() == ["learned", "bayes", "boosted", "fixed", "prevalence", "sized"]
    assert predictor_class("boosted") is BoostedPredictor
    assert isinstance(new_predictor("boosted"), BoostedPredictor)
    check_savable(new_predictor("prevalence"))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("bosted", "There is no predictor 'bosted'. Did you mean 'boosted'.*Known: learned, bayes"),
        ("sized", "cannot be constructed without arguments.*Give every argument"),
        ("fixed", "must be a class with `fit"),
        ("learned", "built-in rule"),
    ],
)
def test_names_that_cannot_work_are_refused(name: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        new_predictor(name)


@pytest.mark.usefixtures("installed")
def test_loading_imports_only_what_is_published(cohort: Cohort) -> None:
    config, arrays = predictor_state(_fitted("prevalence", cohort))
    assert config["kind"] == "plug-in"
    assert config["name"] == "prevalence"
    before = set(sys.modules)
    for name in ("antigravity:Evil", "antigravity"):
        with pytest.raises(ModelError, match=r"^The model was fitted .* is not installed here"):
            restore_predictor({**config, "name": name}, arrays)
        with pytest.raises(ModelError, match="has kind 'antigravity"):
            restore_predictor({**config, "kind": name}, arrays)
    assert "antigravity" not in set(sys.modules) - before


def _publish(monkeypatch: pytest.MonkeyPatch, points: dict[str, str]) -> None:
    found = [EntryPoint(name, value, "nocta.predictors") for name, value in points.items()]
    monkeypatch.setattr(plugins_module, "entry_points", lambda group: found)
    plugins_module.plugins.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_plug_in_with_a_built_in_name_is_refused_when_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _publish(monkeypatch, {"bayes": "foreign_predictors:PrevalencePredictor"})
    check_predictor_name("learned")
    with pytest.raises(ConfigError, match=r"provides the predictor 'bayes'.*is built in"):
        check_predictor_name("bayes")


@pytest.mark.usefixtures("installed")
def test_a_broken_plug_in_does_not_prevent_saving_with_another(
    monkeypatch: pytest.MonkeyPatch, cohort: Cohort
) -> None:
    there = "test_registry_alias:Alias"
    monkeypatch.setitem(
        sys.modules, "test_registry_alias", SimpleNamespace(Alias=PrevalencePredictor)
    )
    _publish(monkeypatch, {"a-broken": "package_that_is_gone:Gone", "prevalence": there})
    assert predictor_state(_fitted("prevalence", cohort))[0]["name"] == "prevalence"


def test_a_missing_package_is_not_reported_as_damage(
    cohort: Cohort, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("installed")
    save_predictor(_fitted("prevalence", cohort), tmp_path / "predictor")
    _publish(monkeypatch, {})
    with pytest.raises(ModelError, match=r"^The model was fitted with the predictor 'prevalence'"):
        load_predictor(tmp_path / "predictor")
