"""Capacity follows the data, and nobody is judged by a network that learned them by heart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.cohort.cohort import Cohort
from nocta.cohort.history import History
from nocta.predictors import fitting
from nocta.predictors.fitting import fit_predictor, random_mask_loss, share_left
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort
from small_models import Parts


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[RecurrentPredictor]:
    """Training of a moment; returns the networks that are built."""
    built: list[RecurrentPredictor] = []

    def candidate(train: Cohort, hidden: int, dropout: float, seed: int) -> RecurrentPredictor:
        training = TrainingConfig(epochs=2, batch_size=32, check_every=1)
        built.append(RecurrentPredictor(hidden, dropout, training, seed=seed))
        return built[-1]

    monkeypatch.setattr(fitting, "_candidate", candidate)
    return built


def test_one_network_is_enough_where_it_does_not_overfit(
    short: list[RecurrentPredictor], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "OVERFIT", np.inf)
    monkeypatch.setattr(fitting, "NOISY", np.inf)
    monkeypatch.setattr(fitting, "_SMALL", 0)
    found = fit_predictor(tiny_parts[0], tiny_parts[1])
    assert len(found.members) == len(short) == 1
    assert not found.fold.any()


@pytest.mark.parametrize(("many", "n_members"), [(10**6, 3), (0, 1)])
def test_noisy_labels_of_not_too_many_subjects_are_judged_by_a_stranger(
    short: list[RecurrentPredictor],
    tiny_parts: Parts,
    monkeypatch: pytest.MonkeyPatch,
    many: int,
    n_members: int,
) -> None:
    monkeypatch.setattr(fitting, "OVERFIT", np.inf)
    monkeypatch.setattr(fitting, "_SMALL", 0)
    monkeypatch.setattr(fitting, "_MANY", many)
    train, val, _ = tiny_parts
    rng = np.random.default_rng(0)
    noisy = [replace(c, labels=rng.integers(2, size=c.labels.shape)) for c in (train, val)]
    assert len(fit_predictor(*noisy).members) == n_members


def test_little_loss_is_left_only_where_labels_follow_from_the_values(tiny_parts: Parts) -> None:
    train, val, _ = tiny_parts
    training = TrainingConfig(epochs=40, batch_size=32, check_every=10)
    clear = RecurrentPredictor(training=training).fit(train, val)
    rng = np.random.default_rng(0)
    noisy = [replace(c, labels=rng.integers(2, size=c.labels.shape)) for c in (train, val)]
    blind = RecurrentPredictor(training=training).fit(*noisy)
    assert share_left(clear, val) < 0.7 < 0.9 < share_left(blind, noisy[1])


@pytest.mark.parametrize(("clearly_better", "n_members"), [(0.0, 5), (np.inf, 1)])
def test_with_few_subjects_dropout_is_the_rule_unless_far_behind(
    short: list[RecurrentPredictor],
    tiny_parts: Parts,
    monkeypatch: pytest.MonkeyPatch,
    clearly_better: float,
    n_members: int,
) -> None:
    monkeypatch.setattr(fitting, "OVERFIT", np.inf)
    monkeypatch.setattr(fitting, "NOISY", np.inf)
    monkeypatch.setattr(fitting, "CLEARLY_BETTER", clearly_better)
    found = fit_predictor(tiny_parts[0], tiny_parts[1])
    assert len(found.members) == n_members
    assert (found.members[0].dropout > 0) == (n_members > 1)


def test_where_it_overfits_everybody_is_judged_by_a_stranger(
    short: list[RecurrentPredictor], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, val, test = tiny_parts
    monkeypatch.setattr(fitting, "OVERFIT", 0.0)
    seen: list[np.ndarray] = []
    fit = RecurrentPredictor.fit

    def watched(self, cohort, *args, **options):  # type: ignore[no-untyped-def]
        seen.append(cohort.subjects)
        return fit(self, cohort, *args, **options)

    monkeypatch.setattr(RecurrentPredictor, "fit", watched)
    found = fit_predictor(train, val)
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
    short: list[RecurrentPredictor], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "OVERFIT", 0.0)
    train = replace(tiny_parts[0], groups=np.arange(len(tiny_parts[0])) // 2)
    found = fit_predictor(train, tiny_parts[1])
    pairs = found.fold[: len(train) // 2 * 2].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all()


def test_a_class_of_one_subject_is_no_obstacle(
    short: list[RecurrentPredictor], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "OVERFIT", 0.0)
    train, val, _ = tiny_parts
    labels = train.labels.copy()
    labels[0] = 2
    classes = (*train.classes, "rare")
    found = fit_predictor(
        replace(train, labels=labels, classes=classes), replace(val, classes=classes)
    )
    assert found.n_classes_ == 3


def test_the_paper_preset_has_the_published_network(tiny_parts: Parts) -> None:
    found = fit_predictor(tiny_parts[0], tiny_parts[1], "paper", quick=True)
    assert isinstance(found.members[0], MLPPredictor)
    assert found.members[0].hidden == 10
    assert not found.expected


def test_a_rehearsal_is_one_short_training(tiny_parts: Parts) -> None:
    found = fit_predictor(tiny_parts[0], tiny_parts[1], quick=True)
    assert len(found.members) == 1
    assert found.members[0].training.epochs <= 60


def test_loss_under_random_masks_tells_learned_from_new() -> None:
    train, other = tiny_cohort(24, seed=0), tiny_cohort(60, seed=9)
    training = TrainingConfig(epochs=150, batch_size=24, learning_rate=2e-2, patience=999)
    learned = RecurrentPredictor(hidden=48, training=training).fit(train, train)
    assert random_mask_loss(learned, other) > 1.2 * random_mask_loss(learned, train)
