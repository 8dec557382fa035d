"""A partial history is read from the same columns, with what a model's manifest keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import DataError
from nocta.core.history import History
from nocta.tables.history_table import read_history
from nocta.tables.schema import Schema
from nocta.testing import tiny_cohort

EXAMPLES = Path(__file__).parents[2] / "examples"


def saved(cohort: Cohort) -> dict[str, Any]:
    """The schema as a manifest keeps it."""
    dumped: dict[str, Any] = json.loads(
        json.dumps(Schema.of(cohort).model_dump(mode="json", exclude_none=True))
    )
    return dumped


@pytest.fixture
def manifest(visits: pd.DataFrame, schema: dict[str, Any]) -> dict[str, Any]:
    return saved(Cohort.from_table(visits, schema))


def test_the_whole_table_is_everything_acquired(
    visits: pd.DataFrame, schema: dict[str, Any], manifest: dict[str, Any]
) -> None:
    cohort = Cohort.from_table(visits, schema)
    expected = History.of(cohort, cohort.recorded)
    table = read_history(visits.drop(columns="stage"), manifest)
    for field in ("values", "acquired", "unavailable", "context"):
        np.testing.assert_array_equal(getattr(table.history, field), getattr(expected, field))
    assert table.subjects.tolist() == ["a", "b", "c"]
    assert table.time.tolist() == [2, 2, 0]


def test_the_example_patient_is_read() -> None:
    cohort = Cohort.from_table(EXAMPLES / "clinic.csv", EXAMPLES / "clinic.schema.toml")
    table = read_history(EXAMPLES / "one-patient.csv", saved(cohort), cohort.catalog)
    history, names = table.history, cohort.catalog.names
    known = {(t, names[m]) for _, t, m in np.argwhere(history.acquired)}
    assert known == {
        (0, "drinks_per_week"),
        (0, "fatigue"),
        (0, "bilirubin"),
        (0, "albumin"),
        (1, "fatigue"),
    }
    assert [(t, names[m]) for _, t, m in np.argwhere(history.unavailable)] == [(1, "elastography")]
    assert history.context.tolist() == [[64.0, 0.0]]
    assert table.time.tolist() == [1]


def test_columns_may_be_absent(manifest: dict[str, Any]) -> None:
    table = read_history(pd.DataFrame({"patient": ["z"], "visit": [0], "alt": [30.0]}), manifest)
    assert table.history.acquired[0, 0].tolist() == [True, False]
    assert np.isnan(table.history.context).all()
    assert "There is no column 'age'; this context is treated as missing." in table.notes


def test_somebody_not_seen_yet_may_be_planned_for(manifest: dict[str, Any]) -> None:
    rows = {"patient": ["z"], "visit": [None], "age": [50], "sex": ["M"]}
    table = read_history(pd.DataFrame(rows), manifest)
    assert table.time.tolist() == [-1]
    assert not table.history.requested.any()
    assert table.history.context.tolist() == [[50.0, 1.0]]


def test_a_visit_with_nothing_acquired_has_taken_place(manifest: dict[str, Any]) -> None:
    rows = pd.DataFrame({"patient": "z", "visit": [0, 1], "alt": [30.0, None]})
    assert read_history(rows, manifest).time.tolist() == [1]


def test_half_a_scan_is_a_scan(manifest: dict[str, Any]) -> None:
    rows = {"patient": "z", "visit": [0, 1], "left": [2.0, "Unavailable"], "right": "unavailable"}
    history = read_history(pd.DataFrame(rows), manifest).history
    assert history.acquired[0, :2, 1].tolist() == [True, False]
    assert history.unavailable[0, :2, 1].tolist() == [False, True]


def test_slots_follow_the_model_not_the_table(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    cohort = Cohort.from_table(visits, schema)
    one = pd.DataFrame({"patient": ["z"], "visit": [0], "alt": [30.0]})
    assert read_history(one, schema, cohort.catalog).history.values.shape == (1, 3, 3)


def test_what_is_closed_is_not_history(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["features"]["alt"]["at"] = "first"
    table = read_history(visits, saved(Cohort.from_table(visits, schema)))
    assert table.history.acquired[0, :, 0].tolist() == [True, False, False]
    assert np.isnan(table.history.values[0, 1:, 0]).all()


def test_a_built_in_cohort_has_histories_too() -> None:
    cohort = tiny_cohort(4)
    rows = pd.DataFrame({"subject": [1], "visit": [2], "volume": [0.5], "age": [60]})
    table = read_history(rows, saved(cohort))
    assert table.history.acquired.shape == (1, 4, 2)
    assert table.history.acquired[0, 2].tolist() == [False, True]


def test_mistakes_are_all_named(manifest: dict[str, Any]) -> None:
    rows = {"patient": "z", "visit": [0, 9], "alt": ["high", 1], "lefft": 1.0, "sex": ["F", "m"]}
    with pytest.raises(DataError) as caught:
        read_history(pd.DataFrame(rows), manifest)
    message = str(caught.value)
    for part in (
        "has no column 'left'. Did you mean 'lefft'?",
        "not a number: 'high'",
        "not in its [categories]: 'm' (row 1, subject z). The model knows ['F', 'M']",
        "Leave the cell empty if the value is new, or fit a new model",
    ):
        assert part in message
    with pytest.raises(DataError, match="the table has no rows"):
        read_history(pd.DataFrame({"patient": [], "visit": []}), manifest)
    with pytest.raises(DataError, match="has no column 'visit'"):
        read_history(pd.DataFrame({"patient": ["z"]}), manifest)
