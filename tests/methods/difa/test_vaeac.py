"""The imputer: it learns, is deterministic, and leaves what is known alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import NotFittedError
from nocta.methods.difa.vaeac import Vaeac
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort, tiny_counter_cohort

TRAINING = TrainingConfig(epochs=25, learning_rate=6e-3, batch_size=64, check_every=4)


def parts_of(imputer: Vaeac, cohort: Cohort, asked: float) -> tuple[torch.Tensor, ...]:
    """What is shown of a cohort, its context, and all there is."""
    data = EncodedCohort(imputer.encoder_, cohort)
    mask = np.random.default_rng(0).random(cohort.recorded.shape) < asked
    inputs = data.inputs(np.arange(len(cohort)), mask)
    shown = inputs[..., : imputer.encoder_.slot_width]
    return shown, data.frame[:, 0, cohort.n_times :], data.slots


@pytest.fixture(scope="module")
def counters() -> tuple[Vaeac, Cohort]:
    train, val = tiny_counter_cohort(1200).split((0.8, 0.2))
    imputer = Vaeac(hidden=64, training=TRAINING).fit(train, val, InputEncoder().fit(train))
    return imputer, val


@pytest.fixture(scope="module")
def clinic() -> tuple[Vaeac, Cohort]:
    train, val = tiny_cohort(300).split((0.8, 0.2))
    imputer = Vaeac(hidden=32, training=TRAINING).fit(train, val, InputEncoder().fit(train))
    return imputer, val


def test_a_countdown_is_continued(counters: tuple[Vaeac, Cohort]) -> None:
    imputer, val = counters
    data = EncodedCohort(imputer.encoder_, val)
    mask = np.zeros(val.recorded.shape, dtype=bool)
    mask[:, 0, 1] = True
    shown = data.inputs(np.arange(len(val)), mask)[..., : imputer.encoder_.slot_width]
    filled = imputer.fill(shown, data.frame[:, 0, val.n_times :])
    zero = 4 + int(np.flatnonzero(imputer.encoder_.level_column_ == 1)[0])
    starts_at = val.values[:, 0, 1]
    chance = filled[:, 1, zero].numpy()  # that the counter is zero at the second slot
    assert chance[starts_at == 1].min() > 0.8
    assert chance[starts_at == 2].max() < 0.2


def test_chances_of_a_discrete_column_sum_to_one(counters: tuple[Vaeac, Cohort]) -> None:
    imputer, val = counters
    shown, context, _ = parts_of(imputer, val, 0.5)
    levels = imputer.fill(shown, context)[..., 4:10]
    torch.testing.assert_close(levels[..., :3].sum(dim=-1), torch.ones(levels.shape[:2]))


def test_correlated_values_are_imputed_better_than_by_their_mean(
    clinic: tuple[Vaeac, Cohort],
) -> None:
    imputer, val = clinic
    shown, context, full = parts_of(imputer, val, 0.6)
    completed = imputer.complete(shown, context)
    depth = imputer.encoder_.n_value_columns
    hidden = (full[..., depth : 2 * depth] - shown[..., depth : 2 * depth]) > 0.5
    truth, guess = full[..., :depth][hidden], completed[..., :depth][hidden]
    assert float((truth - guess).square().mean()) < 0.75 * float(truth.square().mean())


def test_what_is_known_stays_and_flags_are_not_imputed(clinic: tuple[Vaeac, Cohort]) -> None:
    imputer, val = clinic
    shown, context, _ = parts_of(imputer, val, 0.5)
    completed = imputer.complete(shown, context)
    depth = imputer.encoder_.n_value_columns
    known = shown[..., depth : 2 * depth] > 0.5
    assert torch.equal(completed[..., :depth][known], shown[..., :depth][known])
    assert torch.equal(completed[..., depth:], shown[..., depth:])


def test_nothing_is_drawn(clinic: tuple[Vaeac, Cohort]) -> None:
    imputer, val = clinic
    shown, context, _ = parts_of(imputer, val, 0.5)
    assert torch.equal(imputer.fill(shown, context), imputer.fill(shown, context))


def test_gradients_pass_through_what_is_known_and_not_through_imputations(
    clinic: tuple[Vaeac, Cohort],
) -> None:
    imputer, val = clinic
    shown, context, _ = parts_of(imputer, val, 0.5)
    shown.requires_grad_(True)
    imputed = imputer.fill(shown.detach(), context)
    imputer.complete(shown, context).sum().backward()
    assert shown.grad is not None
    depth = imputer.encoder_.n_value_columns
    torch.testing.assert_close(
        shown.grad[..., depth : 2 * depth], 1 - imputed[..., :depth], rtol=1e-4, atol=1e-4
    )


def test_an_imputer_must_be_fitted() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        Vaeac().fill(torch.zeros(1, 1, 1), torch.zeros(1, 0))
