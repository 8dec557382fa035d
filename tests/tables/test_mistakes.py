"""Everything that is wrong with a table is said at once, with the place and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nocta.core.errors import CostError, DataError, TimeError
from nocta.tables.table import read_cohort
from nocta.tables.validate import check_classes
from nocta.testing import tiny_cohort

TWELVE = [
    "time_unit is 3. It should be text",
    "[features.platelets]: cost is missing. Add cost = ...",
    "there is no key 'lable'. Did you mean 'label'?",
    "line 1: column 'weight' occurs 2 times",
    "features.albumin: mistakes.csv has no column 'albumim'. Did you mean 'albumin'?",
    "column 'bilirubin': not a number: 'high' (line 5, subject A2)",
    "column 'platelets': infinite or too large: line 5, subject A2",
    "column 'years': subjects with no visit: A5",
    "column 'years': before the first slot (0): -2 (line 4, subject A2)",
    "the same subject and visit twice: subject A3 at 0 (line 6 and line 7)",
    "Feature 'bilirubin' has cost -7.0; a cost is a number of at least 0",
    "the label changes type: mostly numbers, but text here: 'worse' (line 8, subject A4)",
]


def test_twelve_mistakes_are_named_at_once(broken: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_cohort(broken / "mistakes.csv", broken / "mistakes.schema.toml")
    message = str(caught.value)
    assert "12 problems" in message
    assert [m for m in TWELVE if m not in message] == []


def change(table: pd.DataFrame, column: str, row: int, value: object) -> pd.DataFrame:
    table = table.astype({column: object})
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("column", "row", "value", "error", "message"),
    [
        ("patient", 3, None, DataError, "no subject: row 3"),
        ("visit", 1, None, TimeError, "no visit: row 1, subject a"),
        ("visit", 1, "soon", TimeError, "not a number: 'soon'"),
        ("visit", 1, 0.5, TimeError, "visits that are not whole numbers: 0.5"),
        ("visit", 1, -1, TimeError, "before the first slot"),
        ("visit", 5, 1, None, ""),
        ("visit", 1, 20210105, TimeError, "use time = with a grid"),
        ("visit", 1, 2, TimeError, "subject a at 2 (row 1 and row 2)"),
        ("alt", 0, "3,5", None, ""),
        ("alt", 0, "3,55,1", DataError, "not a number: '3,55,1'"),
        ("alt", 0, "<5", DataError, "Replace the limit with a number"),
        ("alt", 0, "1_000", DataError, "not a number: '1_000'"),
        ("alt", 0, 1e39, DataError, "infinite or too large: row 0, subject a"),
        ("sex", 0, "f", DataError, "Use one of ['F', 'M']"),
        ("age", 2, 62, DataError, "context that changes within a subject: row 2, subject a"),
        ("stage", 1, 2, DataError, "mostly text, but numbers here: '2' (row 1, subject a)"),
    ],
)
def test_one_wrong_cell_is_found(
    visits: pd.DataFrame,
    schema: dict[str, Any],
    column: str,
    row: int,
    value: object,
    error: type[DataError] | None,
    message: str,
) -> None:
    schema["features"]["scan"]["cost"] = 9.0
    table = change(visits, column, row, value)
    if error is None:
        read_cohort(table, schema)
        return
    with pytest.raises(DataError) as caught:
        read_cohort(table, schema)
    assert type(caught.value) is error
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 0.5, 1, 0, 1], "labels that are not whole numbers: 0.5 (row 2, subject a)"),
        ([1, 1, 1, 1, 1, 1], "the only class is '1'"),
        ([None] * 6, "no row has a label"),
    ],
)
def test_labels_must_be_classes(
    visits: pd.DataFrame, schema: dict[str, Any], labels: list[Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_cohort(visits.assign(stage=labels), schema)
    assert message in str(caught.value)


def test_a_class_outside_the_list_is_named(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["classes"] = ["mild", "sever", "moderate"]
    with pytest.raises(
        DataError, match=r"'severe' \(row 2, subject a\) is not in classes. Did you"
    ):
        read_cohort(visits, schema)


def test_an_empty_table_is_reported_with_the_schema(
    visits: pd.DataFrame, schema: dict[str, Any]
) -> None:
    schema["features"]["alt"]["cost"] = -1.0
    with pytest.raises(DataError) as caught:
        read_cohort(visits.iloc[:0], schema)
    assert "the table has no rows" in str(caught.value)
    assert "Feature 'alt' has cost -1.0" in str(caught.value)


def test_costs_alone_are_a_cost_error(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    del schema["features"]["alt"]["cost"]
    schema["groups"]["blood"]["fee"] = -2.0
    schema["features"]["scan"]["cost"] = [1.0, 2.0]
    with pytest.raises(CostError) as caught:
        read_cohort(visits, schema)
    assert "3 problems" in str(caught.value)
    assert "'scan' has 2 costs for 3 visits" in str(caught.value)


def test_a_column_has_one_use(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["context"].append("stage")
    with pytest.raises(DataError, match="column 'stage' is used as label and as context"):
        read_cohort(visits, schema)


def test_visits_counted_from_one_are_pointed_out(
    visits: pd.DataFrame, schema: dict[str, Any]
) -> None:
    table = visits.assign(visit=visits["visit"] + 1)
    with pytest.raises(TimeError, match="Add first_visit = 1"):
        read_cohort(table, {**schema, "features": {"alt": {"cost": 1.0, "group": "blood"}}})
    cohort = read_cohort(table, {**schema, "first_visit": 1})
    assert cohort.visits[0].all()


def test_a_visit_beyond_the_last_is_named(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema |= {"n_visits": 2}
    schema["features"]["scan"]["cost"] = 1.0
    with pytest.raises(TimeError, match=r"after the last of 2 visits: 2 \(row 2, subject a\)"):
        read_cohort(visits, schema)


def test_parts_and_groups_are_per_subject(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    table = visits.assign(
        part=["train", "test", "train", "test", "test", None], home=["x", "x", "x", "x", "x", "y"]
    )
    with pytest.raises(DataError) as caught:
        read_cohort(table, {**schema, "split": "part", "group": "home"})
    message = str(caught.value)
    assert "the split changes within a subject: row 1, subject a" in message
    assert "subjects with no split: c" in message
    assert "groups in more than one split: x (test and train)" in message


def test_many_places_are_counted(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="'x' \\(row 2, subject a\\) and 3 more"):
        read_cohort(visits.assign(alt="x"), schema)


def test_a_table_of_another_kind_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="it is a list"):
        read_cohort([1, 2], schema)


def test_a_class_never_seen_in_training_is_named() -> None:
    cohort = tiny_cohort(20)
    only_stable = cohort.subset([i for i in range(20) if not (cohort.labels[i] == 1).any()])
    check_classes(cohort, only_stable)
    with pytest.raises(DataError, match="validation, class 'worse': it occurs"):
        check_classes(only_stable, cohort, "validation")
