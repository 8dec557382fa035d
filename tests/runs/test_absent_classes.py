"""A class that a part never shows is said, with what it means and what to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.runs.absent_classes import class_warnings, splits_to_look_at
from nocta.runs.setup import DataSource
from nocta.testing import tiny_cohort


@pytest.fixture
def parts() -> list[Cohort]:
    """Three parts that show both classes."""
    return tiny_cohort(n_subjects=90, seed=0).split(seed=0)


def without(cohort: Cohort, index: int) -> Cohort:
    return replace(cohort, labels=np.where(cohort.labels == index, -1, cohort.labels))


def test_nothing_is_said_where_every_part_shows_every_class(parts: list[Cohort]) -> None:
    assert class_warnings([(0, parts), (1, parts)]) == []


@pytest.mark.parametrize(
    ("i", "part", "meaning"),
    [
        (0, "training", "is never predicted"),
        (1, "validation", "does not influence when training stops"),
        (2, "test", "does not count in any result"),
    ],
)
def test_the_part_is_named_with_what_it_means(
    i: int, part: str, meaning: str, parts: list[Cohort]
) -> None:
    name = parts[i].classes[1]
    parts[i] = without(parts[i], 1)
    (found,) = class_warnings([(0, parts)])
    assert found.startswith(f"class '{name}' has no labeled visit in the {part} part. Such a")
    assert meaning in found
    assert "Merge rare classes in the table, or change the split (--seed, --fractions)." in found


def test_seeds_are_named_where_it_is_not_all_of_them(parts: list[Cohort]) -> None:
    other = [parts[0], without(without(parts[1], 0), 1), parts[2]]
    (found,) = class_warnings([(0, parts), (3, other), (4, other)])
    assert "have no labeled visit in the validation part of seeds 3, 4." in found
    assert found.startswith("classes ")


def test_a_class_that_nobody_has_is_said_once(parts: list[Cohort]) -> None:
    more = [replace(part, classes=(*part.classes, "unheard of")) for part in parts]
    (found,) = class_warnings([(0, more), (1, more)])
    assert found.startswith("class 'unheard of' has no labeled visit in any part. Take it out")


def test_drawn_data_and_later_splits_of_large_ones_are_passed_over() -> None:
    assert not list(splits_to_look_at(DataSource("synthetic", max_subjects=30), range(2)))
    fixed = DataSource("synthetic", data_options={"seed": 0, "n_subjects": 40})
    assert [seed for seed, _ in splits_to_look_at(fixed, range(2))] == [0, 1]
    assert [seed for seed, _ in splits_to_look_at(fixed, range(2), large=10)] == [0]
