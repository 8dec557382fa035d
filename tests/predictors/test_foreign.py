"""A predictor of somebody else works with everything, or is refused with a sentence."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import nocta
from foreign_predictors import (
    BoostedPredictor,
    PrevalencePredictor,
    installed,  # noqa: F401 - a fixture
)
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, ModelError
from nocta.core.history import History
from nocta.core.predictor import OutOfFold, Predictor, require_network
from nocta.core.rollout import rollout
from nocta.evaluation.audit import audit
from nocta.methods.registry import method_class
from nocta.model.nocta import NOCTA
from nocta.model.presets.base import EstimatorName
from nocta.planning.estimators.remembered_votes import PredictedContrastive, voting_estimator
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import CrossFittedPredictor, as_cross_fitted, cross_fit
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.fitting import fit_predictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.testing import RunningMeanPredictor, check_predictor
from small_models import QUICK, WEIGHT, Parts

SHORT = {**QUICK, "individual_share": 0.5}


class OnlyPredicts(Predictor):
    """One method, around something that was fitted elsewhere."""

    def __init__(self, inner: Predictor) -> None:
        self.inner, self.n_classes_ = inner, inner.n_classes_

    def predict_proba(self, history: History) -> np.ndarray:
        return self.inner.predict_proba(history)


@pytest.fixture(scope="module")
def boosted(tiny_parts: Parts) -> BoostedPredictor:
    return BoostedPredictor().fit(*tiny_parts[:2], seed=0)


@pytest.fixture(scope="module")
def members(tiny_parts: Parts) -> CrossFittedPredictor:
    return cross_fit(BoostedPredictor(), *tiny_parts[:2], n_folds=2)


def test_it_keeps_the_contract(
    boosted: BoostedPredictor, members: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    check_predictor(boosted, tiny_parts[2])
    check_predictor(members, tiny_parts[2])


def test_every_capability_defaults_to_no(boosted: BoostedPredictor) -> None:
    assert boosted.network is None
    assert boosted.out_of_fold is None
    assert not boosted.is_calibrated


def test_one_that_can_fit_scores_training_subjects_out_of_fold(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    members = as_cross_fitted(BoostedPredictor(), train, val)
    assert len(members.members) == 5
    for which, member in enumerate(members.members):
        assert isinstance(member, BoostedPredictor)
        assert not member.subjects_ & set(train.subjects[members.fold == which].tolist())


def test_one_that_only_predicts_is_used_as_it_is_with_a_warning(
    boosted: BoostedPredictor, tiny_parts: Parts
) -> None:
    given = OnlyPredicts(boosted)
    with pytest.warns(UserWarning, match=r"OnlyPredicts has no `fit`.* are optimistic"):
        found = as_cross_fitted(given, *tiny_parts[:2])
    assert found.members == (given,)
    given.is_calibrated = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_cross_fitted(given, *tiny_parts[:2]).expected


def test_own_members_are_taken_as_they_are(
    members: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    class Mean(OnlyPredicts):
        @property
        def out_of_fold(self) -> OutOfFold:
            return OutOfFold(members.members, members.fold)

    found = as_cross_fitted(Mean(members), *tiny_parts[:2])
    assert found.members is members.members
    assert as_cross_fitted(members, *tiny_parts[:2]) is members


def test_predictions_of_another_shape_are_refused(tiny_parts: Parts) -> None:
    with pytest.raises(ConfigError, match=r"predicts shape \(1, 4, 3\).*expected \(1, 4, 2\)"):
        as_cross_fitted(RunningMeanPredictor(3), *tiny_parts[:2])


@pytest.mark.parametrize("name", ["static", "periodic", "first-visit", "random", "everything"])
def test_reference_methods_acquire_for_it(
    name: str, boosted: BoostedPredictor, tiny_parts: Parts
) -> None:
    train, val, test = tiny_parts
    method = method_class(name)().fit(train, val, seed=0, predictor=boosted)
    setting = method.settings(val, 3)[-1]
    done = rollout(method.policy(setting), test, seed=0)
    np.testing.assert_array_equal(done.probabilities, boosted.predict_proba(done.history))


@pytest.fixture(scope="module")
def models(members: CrossFittedPredictor, tiny_parts: Parts) -> dict[str, NOCTA]:
    names: tuple[EstimatorName, ...] = ("amortized", "contrastive")
    return {
        name: NOCTA(name, options=SHORT).fit(*tiny_parts[:2], predictor=members) for name in names
    }


@pytest.mark.parametrize("name", ["amortized", "contrastive"])
def test_nocta_acquires_for_it(
    name: str, models: dict[str, NOCTA], members: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    model, test = models[name], tiny_parts[2]
    done = model.rollout(test, WEIGHT)
    assert 0 < done.cost < test.catalog.price_of_everything
    np.testing.assert_array_equal(done.probabilities, members.predict_proba(done.history))
    audit(model.policy(WEIGHT), test.subset(np.arange(8)))
    plan = model.decide(History.empty(test.catalog, test.context[:1]), WEIGHT)
    assert plan.time is None or plan.time >= 0


def test_a_comparison_replaces_nothing(
    boosted: BoostedPredictor, tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Predictor | None] = []

    def fit(self: NOCTA, *parts: Cohort, predictor: Predictor | None, progress: bool) -> None:
        given.append(predictor)

    monkeypatch.setattr(NOCTA, "fit", fit)
    method_class("nocta-amortized")().fit(*tiny_parts[:2], seed=0, predictor=boosted)
    assert given == [boosted]


def test_nearest_values_need_no_network(boosted: BoostedPredictor, tiny_parts: Parts) -> None:
    given = OnlyPredicts(boosted)
    given.is_calibrated = True
    model = NOCTA("contrastive", options={**SHORT, "metric": "values"})
    model.fit(*tiny_parts[:2], predictor=given)
    assert model.rollout(tiny_parts[2], WEIGHT).cost > 0


@pytest.mark.parametrize("kind", ["expected", "realized"])
def test_predicted_votes_equal_those_of_a_walk(
    kind: str, tiny_predictor: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    """The same predictor behind one method votes as it does slot by slot."""
    train, _, test = tiny_parts
    hidden = [OnlyPredicts(member) for member in tiny_predictor.members]
    bank = NeighborBank(train, "values", encoder=InputEncoder().fit(train), n_neighbors=5)
    walked, asked = (
        voting_estimator(
            bank, LossTargets(train, given, tiny_predictor.fold, expected=kind[0] == "e")
        )
        for given in (tiny_predictor.members, hidden)
    )
    assert not isinstance(walked, PredictedContrastive)
    assert isinstance(asked, PredictedContrastive)
    observation = nocta.core.rollout.Environment(test).observe()
    plans = np.random.default_rng(0).random((len(test), 6, *test.catalog.open_slots.shape)) < 0.4
    np.testing.assert_allclose(
        asked.score_plans(observation, plans), walked.score_plans(observation, plans), atol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("dime", {}, "Method 'dime' trains the predictor further"),
        ("asac", {}, "Method 'asac' trains the predictor further"),
        ("nocta-amortized", {"preset": "paper"}, "'nocta-amortized' with the 'paper' preset"),
    ],
)
def test_methods_that_train_the_predictor_refuse_it(
    name: str, options: dict[str, str], match: str, boosted: BoostedPredictor, tiny_parts: Parts
) -> None:
    method = method_class(name)(**options)
    with pytest.raises(ConfigError, match=f"{match}.*BoostedPredictor has none"):
        method.check_predictor(boosted)
    with pytest.raises(ConfigError, match="BoostedPredictor has none"):
        method.fit(*tiny_parts[:2], seed=0, predictor=boosted)


@pytest.mark.parametrize(
    ("name", "options"), [("ras", {}), ("as", {}), ("difa", {}), ("asac", {"predictor": "lstm"})]
)
def test_methods_with_their_own_predictor_refuse_it(
    name: str, options: dict[str, str], boosted: BoostedPredictor
) -> None:
    match = f"Method '{name}' trains its own predictor, so it cannot use BoostedPredictor"
    with pytest.raises(ConfigError, match=match):
        method_class(name)(**options).check_predictor(boosted)


def test_the_predictor_metric_refuses_it(members: CrossFittedPredictor, tiny_parts: Parts) -> None:
    model = NOCTA("contrastive", options={"metric": "predictor"})
    with pytest.raises(ConfigError, match="metric='predictor' reads the predictor's last layer"):
        model.fit(*tiny_parts[:2], predictor=members)
    method: Any = method_class("nocta-ensemble")
    with pytest.raises(ConfigError, match="metric='predictor' reads the predictor's last layer"):
        method(options={"metric": "predictor"}).check_predictor(BoostedPredictor())
    method_class("nocta-amortized")().check_predictor(BoostedPredictor())


class Silent(PrevalencePredictor):
    """Its `fit` returns nothing."""

    def fit(self, *args: Any, **options: Any) -> None:  # type: ignore[override]
        super().fit(*args, **options)


class LikeSklearn(PrevalencePredictor):
    """Its `fit` has other arguments."""

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        return self


def test_fit_may_return_nothing_and_must_have_our_arguments(tiny_parts: Parts) -> None:
    assert {type(m) for m in as_cross_fitted(Silent(), *tiny_parts[:2]).members} == {Silent}
    with pytest.raises(ConfigError, match=r"LikeSklearn\.fit must accept fit\(train, val"):
        as_cross_fitted(LikeSklearn(), *tiny_parts[:2])


def test_networks_are_not_refused(tiny_predictor: CrossFittedPredictor) -> None:
    require_network(tiny_predictor, "Method 'dime'", "trains the predictor further")
    require_network(RecurrentPredictor(), "Method 'dime'", "trains the predictor further")


@pytest.mark.usefixtures("installed")
def test_a_plug_in_is_fitted_by_name(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    found = fit_predictor(train, val, kind="prevalence")
    assert {type(m) for m in found.members} == {PrevalencePredictor}
    assert len(found.members) == 5
    assert len(fit_predictor(train, val, kind="prevalence", quick=True).members) == 1
    check_predictor(found, test)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("estimator", "metric"), [("amortized", "values"), ("contrastive", "values")]
)
def test_a_model_with_a_plug_in_survives_saving(
    estimator: EstimatorName, metric: str, tiny_parts: Parts, tmp_path: Path
) -> None:
    train, val, test = tiny_parts
    predictor = cross_fit(PrevalencePredictor(), train, val, n_folds=2)
    model = NOCTA(estimator, options={**SHORT, "metric": metric})
    model.fit(train, val, predictor=predictor).save(tmp_path / "model")
    before, after = (m.rollout(test, WEIGHT) for m in (model, nocta.load(tmp_path / "model")))
    np.testing.assert_array_equal(before.probabilities, after.probabilities)
    np.testing.assert_array_equal(before.history.acquired, after.history.acquired)


def test_what_cannot_be_saved_is_refused_with_a_sentence(
    models: dict[str, NOCTA], tiny_parts: Parts, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"BoostedPredictor cannot be saved.*no `state"):
        models["amortized"].save(tmp_path / "model")
    unpublished = as_cross_fitted(PrevalencePredictor(), *tiny_parts[:2])
    with pytest.raises(ModelError, match="not published under the entry-point group"):
        unpublished.state()


def test_classes_that_only_some_folds_have_are_predicted(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    classes = (*train.classes, "rare")
    more: list[Cohort] = [replace(part, classes=classes) for part in (train, val)]
    assert as_cross_fitted(BoostedPredictor(), *more).n_classes_ == 3
