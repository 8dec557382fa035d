"""The family as a data set: subjects of the task that was asked for, at its prices."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from nocta import datasets
from nocta.core.errors import ConfigError
from nocta.datasets.synthetic_family import Task, finite_task, load
from nocta.exact import NAMED_TASKS


def test_named_tasks_are_the_ones_that_can_be_asked_for() -> None:
    _, names = get_args(Task)
    assert set(get_args(names)) == set(NAMED_TASKS)


@pytest.mark.parametrize("task", [0, 2, "late-starts-useless"])
def test_a_cohort_has_the_features_prices_and_classes_of_its_task(task: int | str) -> None:
    cohort = datasets.load("synthetic-family", n_subjects=30, task=task)
    drawn = finite_task(task)
    assert cohort.catalog.names == drawn.feature_names
    np.testing.assert_array_equal(cohort.catalog.costs, drawn.cost_table())
    assert len(cohort.classes) == drawn.n_classes
    assert cohort.name == f"synthetic-family-{task}"


def test_the_seed_draws_subjects_and_the_option_draws_the_task() -> None:
    first, again, other = load(20, 0, 4), load(20, 0, 4), load(20, 1, 4)
    np.testing.assert_array_equal(first.values, again.values)
    assert (first.values != other.values).any()
    assert first.catalog.to_dict() == other.catalog.to_dict() != load(20, 0, 5).catalog.to_dict()


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'late-starts'"):
        load(task="late-start")
    with pytest.raises(ConfigError, match="use a whole number of at least 0 or 'late-starts'"):
        datasets.load("synthetic-family", task=-1)
