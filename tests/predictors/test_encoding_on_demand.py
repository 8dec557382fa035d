"""Large cohorts are encoded as they are asked for, to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.training import batches
from nocta.testing import tiny_cohort


@pytest.fixture
def pair() -> tuple[EncodedCohort, EncodedCohort]:
    """The same cohort, held encoded and encoded on demand."""
    cohort = tiny_cohort(20, seed=1)
    encoder = InputEncoder().fit(cohort)
    return EncodedCohort(encoder, cohort), EncodedCohort(encoder, cohort, most_held=0)


def test_inputs_are_the_same(pair: tuple[EncodedCohort, EncodedCohort]) -> None:
    held, asked = pair
    assert not isinstance(asked.slots, torch.Tensor)
    rng = np.random.default_rng(0)
    index = rng.integers(0, 20, 9)
    requested = rng.random((9, *held.recorded[:1].shape[1:])) < 0.5
    assert torch.equal(held.inputs(index, requested), asked.inputs(index, requested))
    np.testing.assert_array_equal(held.recorded[index], asked.recorded[index])
    assert len(asked) == 20


def test_rows_of_any_shape_at_one_time_are_the_same(
    pair: tuple[EncodedCohort, EncodedCohort],
) -> None:
    held, asked = pair
    voters = torch.tensor([[3, 1, 4], [1, 5, 9]])
    assert torch.equal(held.slots[voters, 2], asked.slots[voters, 2])
    assert torch.equal(held.frame[:, 1], asked.frame[:, 1])


def test_scales_of_a_large_cohort_come_from_a_sample() -> None:
    cohort = tiny_cohort(40)
    sampled = InputEncoder(most_sampled=10).fit(cohort)
    rows = np.linspace(0, 39, 10).round().astype(int)
    by_hand = InputEncoder().fit(cohort.subset(rows))
    np.testing.assert_array_equal(sampled.values_.mean, by_hand.values_.mean)


def test_an_epoch_over_very_many_subjects_takes_some_of_them() -> None:
    rng = np.random.default_rng(0)
    pieces = list(batches(1000, 16, rng, most=64))
    assert [len(p) for p in pieces] == [16] * 4
    taken = np.concatenate(pieces)
    assert np.unique(taken).size == 64
    assert taken.max() > 500
    again = np.concatenate(list(batches(1000, 16, rng, most=64)))
    assert set(again.tolist()) != set(taken.tolist())
