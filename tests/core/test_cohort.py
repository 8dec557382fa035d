"""Cohorts check their shapes, split by subject, and show only what was asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError
from nocta.core.history import History
from nocta.testing import tiny_cohort


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return tiny_cohort(60, seed=1)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("labels", np.zeros((60, 3), dtype=np.int64), "Cohort.labels has shape"),
        ("context", np.zeros((60, 2), dtype=np.float32), "Cohort.context has shape"),
        ("values", np.zeros((60, 4, 5), dtype=np.float32), "4 times and 5 columns"),
        ("values", np.full((60, 4, 3), np.inf, dtype=np.float32), "use NaN for missing"),
        ("labels", np.full((60, 4), 2), "labels must be -1 or an index"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    cohort: Cohort, field: str, value: np.ndarray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        replace(cohort, **{field: value})


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), first=st.floats(0.2, 0.7))
def test_a_split_holds_everybody_once(seed: int, first: float) -> None:
    cohort = tiny_cohort(60, seed=1)
    parts = cohort.split((first, 0.9 - first, 0.1), seed=seed)
    subjects = np.concatenate([p.subjects for p in parts])
    assert sorted(subjects) == sorted(cohort.subjects)
    again = cohort.split((first, 0.9 - first, 0.1), seed=seed)
    assert all((a.subjects == b.subjects).all() for a, b in zip(parts, again, strict=True))


def test_groups_are_never_split_apart(cohort: Cohort) -> None:
    grouped = replace(cohort, groups=np.arange(60) // 2)
    parts = grouped.split(seed=3)
    seen = [set(p.groups.tolist()) for p in parts if p.groups is not None]
    assert sum(map(len, seen)) == 30


def test_a_split_keeps_the_classes_balanced() -> None:
    cohort = tiny_cohort(400, seed=0)
    shares = [(p.labels.max(axis=1) == 1).mean() for p in cohort.split((0.5, 0.25, 0.25), seed=0)]
    assert max(shares) - min(shares) < 0.02


@pytest.mark.parametrize("fractions", [(1.0,), (0.5, 0.6), (1.2, -0.2)])
def test_fractions_must_make_sense(cohort: Cohort, fractions: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="must be positive and sum to 1"):
        cohort.split(fractions)


def test_too_few_subjects_cannot_be_split(cohort: Cohort) -> None:
    with pytest.raises(
        DataError, match=r"2 subjects cannot be split into 3 parts\. Each part needs at least one"
    ):
        cohort.subset([0, 1]).split()


def test_a_history_shows_only_what_was_asked_for(cohort: Cohort) -> None:
    asked = np.zeros((4, 2), dtype=bool)
    asked[1, 1] = True
    history = History.of(cohort, asked)
    assert (history.requested == asked).all()
    assert np.isnan(np.delete(history.values, 1, axis=1)).all()
    assert np.isnan(history.values[:, :, 0]).all()
    assert (history.acquired[:, 1, 1] == cohort.recorded[:, 1, 1]).all()
    assert (history.unavailable[:, 1, 1] == ~cohort.recorded[:, 1, 1]).all()
    assert not history.up_to(0).requested.any()
    assert not History.empty(cohort.catalog, cohort.context).requested.any()
