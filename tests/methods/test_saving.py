"""Every kind of method survives saving and loading, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from short_fits import fitted

import nocta
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, ModelError
from nocta.core.policy import Policy
from nocta.core.rollout import rollout
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.nocta import estimator_of
from nocta.methods.registry import _LOCAL, METHODS, method_class, register_method
from nocta.methods.saving import SavedMethod, check_savable, load_saved, save_method
from nocta.model.archive import MANIFEST
from nocta.model.persistence import load as load_model
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.testing import RunningMeanPredictor


def check_same(before: SavedMethod, after: SavedMethod, test: Cohort) -> None:
    assert after.settings == before.settings
    for setting in before.settings:
        first, again = before.rollout(test, setting), after.rollout(test, setting)
        np.testing.assert_array_equal(first.history.requested, again.history.requested)
        np.testing.assert_array_equal(first.probabilities, again.probabilities)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_acts_the_same_after_loading(
    name: str, clinic: list[Cohort], predictor: CrossFittedPredictor, tmp_path: Path
) -> None:
    before = fitted(name, clinic, predictor)
    save_method(before, tmp_path / "m")
    after = load_saved(tmp_path / "m")
    assert type(after.method) is type(before.method)
    check_same(before, after, clinic[2])
    expected = nocta.NOCTA if name.startswith("nocta-") else method_class(name)
    assert isinstance(nocta.load(tmp_path / "m"), expected)


@pytest.mark.parametrize(
    ("name", "options"), [("asac", {"predictor": "lstm"}), ("dime", {"stop": "budget"})]
)
def test_variants_survive_too(
    name: str,
    options: dict[str, Any],
    clinic: list[Cohort],
    predictor: CrossFittedPredictor,
    tmp_path: Path,
) -> None:
    before = fitted(name, clinic, predictor, **options)
    save_method(before, tmp_path / "m")
    check_same(before, load_saved(tmp_path / "m"), clinic[2])


def test_what_it_was_fitted_to_is_kept(
    clinic: list[Cohort], predictor: CrossFittedPredictor, tmp_path: Path
) -> None:
    before = fitted("first-visit", clinic, predictor)
    save_method(before, tmp_path / "m")
    after = load_saved(tmp_path / "m")
    assert (after.catalog_, after.classes_) == (before.catalog_, before.classes_)
    assert after.schema_ == before.schema_
    assert after.record_ == before.record_
    manifest = json.loads((tmp_path / "m" / MANIFEST).read_text("utf-8"))
    assert (manifest["kind"], manifest["method"]) == ("nocta-method", "first-visit")


def test_a_method_is_not_taken_for_a_model(
    clinic: list[Cohort], predictor: CrossFittedPredictor, tmp_path: Path
) -> None:
    save_method(fitted("nothing", clinic, predictor), tmp_path / "m")
    with pytest.raises(ModelError, match="holds the method 'nothing'; expected a model"):
        load_model(tmp_path / "m")


def test_a_predictor_that_cannot_be_saved_is_named(clinic: list[Cohort], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="RunningMeanPredictor cannot be saved"):
        save_method(fitted("nothing", clinic, RunningMeanPredictor(2)), tmp_path / "m")


class Forgetful(nocta.Method):
    """Has no state."""

    name = "forgetful"

    def fit(self, train: Cohort, val: Cohort, **_: Any) -> Self:
        self.plan_ = train.catalog.open_slots
        return self

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        return [{}]

    def policy(self, setting: dict[str, Any]) -> Policy:
        return FixedPlanPolicy(self.plan_, RunningMeanPredictor(2))


def test_a_method_without_state_is_refused_before_training(
    monkeypatch: pytest.MonkeyPatch, clinic: list[Cohort]
) -> None:
    monkeypatch.setitem(_LOCAL, "forgetful", Forgetful)
    with pytest.raises(ConfigError, match="Method 'forgetful' cannot be saved: it has no `state"):
        check_savable("forgetful")
    assert rollout(Forgetful().fit(*clinic[:2]).policy({}), clinic[2]).cost > 0


def test_a_method_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
    clinic: list[Cohort],
    predictor: CrossFittedPredictor,
    tmp_path: Path,
) -> None:
    class Renamed(method_class("nothing")):  # type: ignore[misc]
        name = "elsewhere"

    monkeypatch.setitem(_LOCAL, "elsewhere", Renamed)
    save_method(fitted("elsewhere", clinic, predictor), tmp_path / "m")
    monkeypatch.delitem(_LOCAL, "elsewhere")
    with pytest.raises(
        ModelError, match=r"^The model .* method 'elsewhere', which is not installed"
    ):
        nocta.load(tmp_path / "m")


class Derived(method_class("nocta-amortized")):  # type: ignore[misc]
    """Derived from NOCTA by another package."""

    name = "derived"


class Ensemble(Forgetful):
    """Uses the word for something else."""

    name, estimator = "trees", "forest"


@pytest.mark.parametrize("cls", [Derived, Ensemble])
def test_a_method_of_others_is_not_replaced_by_nocta(
    cls: type[nocta.Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert estimator_of(method_class("nocta-ensemble")) == "ensemble"
    assert estimator_of(cls) is None
    monkeypatch.setitem(_LOCAL, cls.name, cls)
    with pytest.raises(ConfigError, match=f"Method '{cls.name}' cannot be saved"):
        check_savable(cls.name)


def test_a_derived_method_is_saved_as_itself(
    monkeypatch: pytest.MonkeyPatch,
    clinic: list[Cohort],
    predictor: CrossFittedPredictor,
    tmp_path: Path,
) -> None:
    class Kept(Derived):
        def state(self) -> Any:
            return {}, {}

        @classmethod
        def from_state(cls, config: Any, arrays: Any) -> Self:
            return cls()

    monkeypatch.setitem(_LOCAL, "derived", Kept)
    method = Kept(quick=True).fit(*clinic[:2], seed=0, predictor=predictor)
    save_method(SavedMethod.of(method, clinic[0], 0), tmp_path / "m")
    assert isinstance(nocta.load(tmp_path / "m"), Kept)


def test_a_taken_name_cannot_be_registered() -> None:
    class Impostor(Forgetful):
        name = "static"

    with pytest.raises(ConfigError, match="'static' belongs to another method"):
        register_method(Impostor)
