"""Capacity follows the data, and nobody is judged by a network that learned them by heart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.predictors import fitting
from nocta.predictors.fitting import (
    ChoiceRules,
    _most_careful,
    fit_predictor,
    random_mask_loss,
    share_left,
)
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.neural import NeuralPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import check_predictor, tiny_cohort
from small_models import Parts

#: The networks that `ShortRules` have built in this test.
BUILT: list[RecurrentPredictor] = []


class ShortRules(ChoiceRules):
    """Rules with very short training; the networks they build are counted."""

    def candidate(self, train: Cohort, dropout: float, seed: int) -> RecurrentPredictor:
        training = TrainingConfig(epochs=2, batch_size=32, check_every=1)
        BUILT.append(RecurrentPredictor(32, dropout, training, seed=seed))
        return BUILT[-1]


@pytest.fixture
def short() -> list[RecurrentPredictor]:
    """The networks that are built."""
    BUILT.clear()
    return BUILT


def test_one_network_is_enough_where_it_does_not_overfit(
    short: list[RecurrentPredictor], tiny_parts: Parts
) -> None:
    rules = ShortRules(overfit=np.inf, noisy=np.inf, small=0)
    found = fit_predictor(tiny_parts[0], tiny_parts[1], rules=rules)
    assert len(found.members) == len(short) == 1
    assert not found.fold.any()


@pytest.mark.parametrize(("many", "n_members"), [(10**6, 3), (0, 1)])
def test_noisy_labels_of_not_too_many_subjects_are_judged_by_a_stranger(
    short: list[RecurrentPredictor],
    tiny_parts: Parts,
    many: int,
    n_members: int,
) -> None:
    rules = ShortRules(overfit=np.inf, small=0, many=many)
    train, val, _ = tiny_parts
    rng = np.random.default_rng(0)
    noisy = [replace(c, labels=rng.integers(2, size=c.labels.shape)) for c in (train, val)]
    assert len(fit_predictor(*noisy, rules=rules).members) == n_members


def test_little_loss_is_left_only_where_labels_follow_from_the_values(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    training = TrainingConfig(epochs=40, batch_size=32, check_every=10)
    clear = RecurrentPredictor(training=training).fit(train, val)
    rng = np.random.default_rng(0)
    noisy = [replace(c, labels=rng.integers(2, size=c.labels.shape)) for c in (train, val)]
    blind = RecurrentPredictor(training=training).fit(*noisy)
    assert share_left(clear, val) < 0.7 < 0.9 < share_left(blind, noisy[1])


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Losses as they are given here, by name of what is judged; nothing is fitted."""
    losses: dict[str, float] = {}

    def loss(predictor: NeuralPredictor, cohort: Cohort, seed: int = 7) -> float:
        dropout = getattr(predictor, "dropout", 0.0)
        return losses["careful" if predictor.kind == "recurrent" and dropout else predictor.kind]

    def fit(self: NeuralPredictor, *args: object, **options: object) -> NeuralPredictor:
        return self

    def of(network: RecurrentPredictor, linear: SummaryPredictor, val: Cohort) -> MixedPredictor:
        assert isinstance(linear, SummaryPredictor)
        return MixedPredictor(**network.get_params(deep=False))

    monkeypatch.setattr(fitting, "random_mask_loss", loss)
    monkeypatch.setattr(NeuralPredictor, "fit", fit)
    monkeypatch.setattr(MixedPredictor, "of", of)
    return losses


@pytest.mark.parametrize(
    ("first", "careful", "linear", "taken"),
    [
        (1.0, 1.0, 1.0, "linear"),
        (0.95, 0.95, 1.0, "linear"),  # ahead, but not clearly
        (1.5, 0.89, 1.0, "careful"),
        (0.85, 0.96, 1.0, "first"),
        (0.85, 0.89, 1.0, "careful"),  # the first is not clearly ahead of the careful one
        (0.8, 0.95, 0.85, "linear"),  # clearly ahead of the careful one, not of the linear one
        (2.0, 2.0, 1.0, "linear"),
    ],
)
def test_with_few_subjects_the_simplest_is_the_rule_unless_far_behind(
    judged: dict[str, float],
    tiny_parts: Parts,
    first: float,
    careful: float,
    linear: float,
    taken: str,
) -> None:
    judged |= {"recurrent": first, "careful": careful, "summary": linear, "mixed": 0.0}
    network = RecurrentPredictor(hidden=6, class_weight="balanced", seed=5)
    found = _most_careful(network, tiny_parts[0], tiny_parts[1], small=True, progress=False)
    assert found.class_weight == "balanced"
    assert found.seed == 5
    assert (found is network) == (taken == "first")
    assert isinstance(found, SummaryPredictor) == (taken == "linear")
    if taken == "careful":
        assert isinstance(found, RecurrentPredictor)
        assert found.dropout == 0.4


@pytest.mark.parametrize(
    ("first", "careful", "mixed", "taken"),
    [
        (1.0, 1.1, 0.99, "mean without dropout"),
        (1.0, 0.98, 0.97, "mean with dropout"),
        (1.0, 0.98, 0.99, "careful"),
        (0.98, 1.0, 0.98, "first"),
    ],
)
def test_with_more_subjects_the_mean_is_taken_where_it_is_better(
    judged: dict[str, float],
    tiny_parts: Parts,
    first: float,
    careful: float,
    mixed: float,
    taken: str,
) -> None:
    judged |= {"recurrent": first, "careful": careful, "summary": 0.1, "mixed": mixed}
    network = RecurrentPredictor(hidden=6)
    found = _most_careful(network, tiny_parts[0], tiny_parts[1], small=False, progress=False)
    assert isinstance(found, MixedPredictor) == taken.startswith("mean")
    assert (found is network) == (taken == "first")
    assert found.get_params()["hidden"] == 6
    dropout = 0.3 if taken in ("careful", "mean with dropout") else 0.0
    assert found.get_params()["dropout"] == dropout


@pytest.mark.parametrize(
    ("small", "kind", "n_members"), [(10**6, SummaryPredictor, 5), (0, MixedPredictor, 3)]
)
def test_what_was_taken_is_fitted_once_per_fold(
    short: list[RecurrentPredictor],
    tiny_parts: Parts,
    small: int,
    kind: type[NeuralPredictor],
    n_members: int,
) -> None:
    train, val, test = tiny_parts
    rules = ShortRules(small=small, overfit=0.0)
    found = fit_predictor(train, val, rules=rules)  # two epochs are no match for the linear model
    assert len(found.members) == n_members
    assert {type(m) for m in found.members} == {kind}
    assert len({m.seed for m in found.members}) == n_members
    check_predictor(found, test)


@pytest.mark.parametrize(("clearly_better", "n_members"), [(0.0, 5), (np.inf, 1)])
def test_a_network_far_ahead_needs_no_folds_where_it_does_not_overfit(
    short: list[RecurrentPredictor],
    tiny_parts: Parts,
    clearly_better: float,
    n_members: int,
) -> None:
    rules = ShortRules(overfit=np.inf, noisy=np.inf, clearly_better=clearly_better)
    found = fit_predictor(tiny_parts[0], tiny_parts[1], rules=rules)
    assert len(found.members) == n_members
    assert isinstance(found.members[0], SummaryPredictor) == (n_members > 1)


def test_where_it_overfits_everybody_is_judged_by_a_stranger(
    short: list[RecurrentPredictor], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, val, test = tiny_parts
    seen: list[np.ndarray] = []
    fit = NeuralPredictor.fit

    def watched(self, cohort, *args, **options):  # type: ignore[no-untyped-def]
        seen.append(cohort.subjects)
        return fit(self, cohort, *args, **options)

    monkeypatch.setattr(NeuralPredictor, "fit", watched)
    found = fit_predictor(train, val, rules=ShortRules(overfit=0.0))
    n_folds = len(found.members)
    assert n_folds == 5
    assert len(short) == 2  # without dropout and with
    for member, subjects in enumerate(seen[-n_folds:]):
        judged = train.subjects[found.fold == member]
        assert len(judged)
        assert not set(judged) & set(subjects)
    history = History.of(test, np.ones_like(test.recorded))
    mean = np.mean([m.predict_proba(history) for m in found.members], axis=0)
    np.testing.assert_allclose(found.predict_proba(history), mean, atol=1e-6)


def test_what_belongs_together_stays_in_one_fold(
    tiny_parts: Parts,
) -> None:
    train = replace(tiny_parts[0], groups=np.arange(len(tiny_parts[0])) // 2)
    found = fit_predictor(train, tiny_parts[1], rules=ShortRules(overfit=0.0))
    pairs = found.fold[: len(train) // 2 * 2].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all()


def test_a_class_of_one_subject_is_no_obstacle(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    labels = train.labels.copy()
    labels[0] = 2
    classes = (*train.classes, "rare")
    found = fit_predictor(
        replace(train, labels=labels, classes=classes),
        replace(val, classes=classes),
        rules=ShortRules(overfit=0.0),
    )
    assert found.n_classes_ == 3


def test_training_subjects_of_one_class_are_no_obstacle(tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    alike = replace(train, labels=np.minimum(train.labels, 0))
    found = fit_predictor(alike, val, rules=ShortRules())
    assert np.isfinite(found.predict_proba(History.of(test, np.ones_like(test.recorded)))).all()


def test_the_paper_preset_has_the_published_network(tiny_parts: Parts) -> None:
    found = fit_predictor(tiny_parts[0], tiny_parts[1], "paper", quick=True)
    assert isinstance(found.members[0], MLPPredictor)
    assert found.members[0].hidden == 10
    assert not found.expected


def test_a_quick_run_is_one_short_training(tiny_parts: Parts) -> None:
    found = fit_predictor(tiny_parts[0], tiny_parts[1], quick=True)
    assert len(found.members) == 1
    assert found.members[0].training.epochs <= 60


def test_loss_under_random_masks_tells_learned_from_new() -> None:
    train, other = tiny_cohort(24, seed=0), tiny_cohort(60, seed=9)
    training = TrainingConfig(epochs=150, batch_size=24, learning_rate=2e-2, patience=999)
    learned = RecurrentPredictor(hidden=48, training=training).fit(train, train)
    assert random_mask_loss(learned, other) > 1.2 * random_mask_loss(learned, train)
