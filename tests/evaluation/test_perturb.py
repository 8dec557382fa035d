"""Changed worlds: what must change does, what was looked at stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nocta.core.history import History
from nocta.evaluation.perturb import KINDS, perturb
from nocta.evaluation.replay import same_rows
from nocta.testing import tiny_cohort


@pytest.fixture
def cohort():
    return tiny_cohort(40)


def ask(cohort, seed=0, share=0.5):
    return np.random.default_rng(seed).random(cohort.recorded.shape) < share


def later_than(cohort, cut):
    return np.arange(cohort.n_times) > cut


def test_hidden_values_all_change_and_nothing_else(cohort):
    requested, cut = ask(cohort), 3
    world = perturb(cohort, ["value"], requested, cut, np.random.default_rng(1))
    hidden = cohort.catalog.expand(~requested)
    recorded = ~np.isnan(cohort.values)
    assert (world.values != cohort.values)[hidden & recorded].all()
    assert np.array_equal(world.values[~hidden], cohort.values[~hidden], equal_nan=True)
    assert np.array_equal(np.isnan(world.values), np.isnan(cohort.values))
    assert np.array_equal(world.labels, cohort.labels)


def test_later_values_all_change_even_acquired_ones(cohort):
    world = perturb(cohort, ["future"], ask(cohort), 1, np.random.default_rng(1))
    recorded = ~np.isnan(cohort.values)
    changed = world.values != cohort.values
    assert changed[:, 2:][recorded[:, 2:]].all()
    assert not changed[:, :2][recorded[:, :2]].any()


def test_new_values_come_from_the_same_column(cohort):
    world = perturb(cohort, ["value", "future"], ask(cohort), 1, np.random.default_rng(1))
    for d in range(3):
        known = cohort.values[..., d][~np.isnan(cohort.values[..., d])]
        found = world.values[..., d][~np.isnan(world.values[..., d])]
        assert np.isin(found, known).all()


def test_every_label_changes_but_none_appears(cohort):
    world = perturb(cohort, ["label"], ask(cohort), 1, np.random.default_rng(1))
    assert np.array_equal(world.labels >= 0, cohort.labels >= 0)
    assert (world.labels != cohort.labels)[cohort.labels >= 0].all()


def test_availability_changes_slots_visits_and_labels(cohort):
    world = perturb(cohort, ["availability"], ask(cohort), 0, np.random.default_rng(1))
    for name in ("recorded", "visits", "labeled"):
        before, now = getattr(cohort, name), getattr(world, name)
        assert (before & ~now)[:, 1:].any(), f"nothing taken away from {name}"
        assert (~before & now)[:, 1:].any(), f"nothing added to {name}"
    assert np.array_equal(world.labels[:, 0], cohort.labels[:, 0])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    cut=st.integers(-1, 3),
    share=st.floats(0, 1),
    kinds=st.sets(st.sampled_from(KINDS), min_size=1),
)
def test_what_was_seen_by_the_cut_looks_the_same(seed, cut, share, kinds):
    cohort = tiny_cohort(12, seed=seed)
    requested = ask(cohort, seed, share)
    world = perturb(cohort, kinds, requested, cut, np.random.default_rng(seed))
    so_far = requested & ~later_than(cohort, cut)[:, None]
    before, now = History.of(cohort, so_far), History.of(world, so_far)
    for name in ("values", "acquired", "unavailable", "context"):
        assert same_rows(getattr(before, name), getattr(now, name)).all(), name


def test_a_constant_column_changes_too(cohort):
    cohort.values[..., 0] = 5.0
    world = perturb(cohort, ["future"], ask(cohort), -1, np.random.default_rng(0))
    assert (world.values[..., 0] != 5.0).all()
