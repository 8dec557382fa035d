"""Every method that acquires for a given predictor can have it adapted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.methods import registry
from nocta.methods.registry import method_class, parse_methods
from nocta.methods.saving import SavedMethod, load_saved, save_method
from nocta.predictors.adapt import adapt, mean_loss
from nocta.predictors.cross_fitted import cross_fit
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import check_policy, tiny_cohort


@pytest.fixture(scope="module")
def parts():
    return tiny_cohort(n_subjects=240, seed=0).split((0.6, 0.2, 0.2), seed=0)


@pytest.fixture(scope="module")
def predictor(parts):
    train, val, _ = parts
    short = TrainingConfig(epochs=6, batch_size=64, check_every=3)
    return cross_fit(RecurrentPredictor(hidden=8, training=short), train, val, 2)


def first_visit_only(cohort):
    asked = np.zeros_like(cohort.recorded)
    asked[:, 0] = True
    return asked


def test_adaptation_lowers_the_loss_on_the_policys_histories(parts, predictor) -> None:
    train, val, test = parts
    asked = [[first_visit_only(part)] for part in parts]
    before = mean_loss(predictor, test, asked[2])
    given = [p.copy() for p in predictor.state()[1].values()]

    found = adapt(predictor, (train, asked[0]), (val, asked[1]), seed=0)

    assert found.kept
    assert found.after < found.before
    assert mean_loss(found.predictor, test, asked[2]) < before
    for old, now in zip(given, predictor.state()[1].values(), strict=True):
        np.testing.assert_array_equal(old, now)  # the shared predictor is left as it is


def test_plans_of_a_reference_stay_and_predictions_change(parts, predictor) -> None:
    train, val, test = parts
    plain, adapted = (
        method_class(name)().fit(train, val, seed=0, predictor=predictor)
        for name in ("first-visit", "first-visit+adapt")
    )
    setting = plain.settings(val, 3)[0]
    saved = [SavedMethod.of(m, train, 0).rollout(test, setting) for m in (plain, adapted)]
    np.testing.assert_array_equal(saved[0].history.acquired, saved[1].history.acquired)
    assert adapted.adaptation_.kept
    assert (saved[0].probabilities != saved[1].probabilities).any()


def test_an_adapted_method_is_saved_and_does_not_leak(parts, predictor, tmp_path: Path) -> None:
    train, val, test = parts
    method = method_class("first-visit+adapt")().fit(train, val, seed=0, predictor=predictor)
    setting = method.settings(val, 3)[0]
    check_policy(lambda cohort: method.policy(setting), test)
    save_method(SavedMethod.of(method, train, 0), tmp_path / "m")
    again = load_saved(tmp_path / "m")
    assert again.name == "first-visit+adapt"
    expected = method.policy(setting).predictor
    asked = first_visit_only(test)
    assert mean_loss(again.policy(setting).predictor, test, [asked]) == mean_loss(
        expected, test, [asked]
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [("nocta-direct+adapt", "which adapts it already"), ("ras+adapt", "which trains its own")],
)
def test_methods_that_cannot_be_adapted_say_why(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        method_class(name)


def test_a_misspelled_method_with_the_suffix_is_refused() -> None:
    with pytest.raises(ConfigError, match="There is no method 'sttic\\+adapt'"):
        parse_methods("sttic+adapt")
    assert parse_methods("static,static+adapt") == ["static", "static+adapt"]


def test_a_protocol_and_a_method_registered_again_can_be_adapted(monkeypatch) -> None:
    assert issubclass(method_class("protocol-usual+adapt"), method_class("protocol-usual"))
    assert method_class("protocol-usual+adapt").name == "protocol-usual+adapt"
    monkeypatch.setattr(registry, "_LOCAL", {})
    for _ in range(2):
        own = type("Own", (method_class("first-visit"),), {"name": "own"})
        registry.register_method(own)
        assert issubclass(method_class("own+adapt"), own)
