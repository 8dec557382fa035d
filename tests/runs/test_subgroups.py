"""Subgroups by context have the numbers of their subjects, with intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.metrics import accuracy
from nocta.core.rollout import rollout
from nocta.methods.fixed import FixedPlanPolicy
from nocta.runs.subgroups import MIN_SUBJECTS, context_bands, context_groups, describe_subgroups
from nocta.testing import RunningMeanPredictor, tiny_cohort


def with_context(names: tuple[str, ...], *columns: np.ndarray) -> Cohort:
    cohort = tiny_cohort(len(columns[0]))
    catalog = replace(cohort.catalog, context=names)
    schema = {"categories": {"sex": ["F", "M"]}}
    context = np.stack(columns, axis=1).astype(np.float32)
    return replace(cohort, catalog=catalog, context=context, schema=schema)


@pytest.fixture
def cohort() -> Cohort:
    rng = np.random.default_rng(0)
    n = 60
    age = rng.uniform(20, 80, n)
    age[:3] = np.nan
    site = np.arange(n) % 2
    return with_context(("age", "sex", "site=A"), age, np.arange(n) % 3 == 0, site)


def test_context_becomes_bands_categories_and_columns_of_one_category(cohort: Cohort) -> None:
    bands = context_bands(cohort)
    assert list(bands) == ["age"]
    groups = dict(context_groups(cohort, bands))
    low, high = bands["age"]
    assert list(groups) == [
        f"age below {low:g}",
        f"age {low:g} to {high:g}",
        f"age {high:g} or more",
        "age not known",
        "sex = F",
        "sex = M",
        "site=A",
    ]
    assert sum(len(groups[name]) for name in list(groups)[:4]) == len(cohort)
    assert groups["sex = M"].tolist() == list(range(0, 60, 3))


def test_numbers_are_those_of_the_members_and_lie_in_their_intervals(cohort: Cohort) -> None:
    done = rollout(FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2)), cohort)
    found = {g.name: g for g in describe_subgroups(done, cohort, metric="accuracy", seed=0)}
    members = np.arange(0, 60, 3)
    group, labels = found["sex = M"], done.labels[members]
    own = accuracy(labels[labels >= 0], done.probabilities[members][labels >= 0])
    assert group.quality[0] == pytest.approx(own)
    assert group.cost[0] == pytest.approx(done.costs[members].mean())
    assert (group.n_subjects, group.n_labels) == (20, int((labels >= 0).sum()))
    observed = (labels == 1)[labels >= 0].mean()
    stated = done.probabilities[members][labels >= 0][:, 1].mean()
    assert group.calibration[0] == pytest.approx(observed - stated, abs=1e-6)
    for value, low, high in (group.cost, group.quality, group.calibration):
        assert low <= value <= high
        assert low < high
    assert found["age not known"].n_subjects < MIN_SUBJECTS
    assert np.isnan(found["age not known"].quality).all()


def test_bands_of_all_subjects_are_used_for_some(cohort: Cohort) -> None:
    some = cohort.subset(np.arange(30))
    bands = context_bands(cohort)
    names = [name for name, _ in context_groups(some, bands)]
    assert names[0] == f"age below {bands['age'][0]:g}"


def test_without_context_there_are_no_subgroups() -> None:
    cohort = tiny_cohort(20)
    bare = replace(
        cohort, catalog=replace(cohort.catalog, context=()), context=cohort.context[:, :0]
    )
    done = rollout(FixedPlanPolicy(bare.catalog.open_slots, RunningMeanPredictor(2)), bare)
    assert describe_subgroups(done, bare, metric="accuracy", seed=0) == []
