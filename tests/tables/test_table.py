"""Long tables become cohorts, the same from every kind of frame."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nocta.core.cohort import Cohort
from nocta.tables.table import read_cohort, read_table


def assert_same(a: Cohort, b: Cohort) -> None:
    for field in ("values", "labels", "visits", "context", "subjects"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
    assert (a.classes, a.catalog, a.schema) == (b.classes, b.catalog, b.schema)


def test_a_ragged_table_fills_its_slots(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    cohort = Cohort.from_table(visits, schema)
    assert cohort.values.shape == (3, 3, 3)
    assert cohort.visits.tolist() == [[True, True, True], [True, False, True], [True, False, False]]
    np.testing.assert_array_equal(cohort.values[0, :, 0], np.float32([31.0, np.nan, 36.5]))
    np.testing.assert_array_equal(cohort.values[1, 2], np.float32([50.0, 5.0, 5.5]))
    assert cohort.classes == ("mild", "moderate", "severe")
    assert cohort.labels.tolist() == [[0, 0, 2], [0, -1, -1], [1, -1, -1]]
    np.testing.assert_array_equal(cohort.context, np.float32([[61, 0], [47, 1], [70, np.nan]]))
    # Both at each of three visits: alt 3 and its fee 2, scan 9 + 8 + 7, one visit fee each.
    assert cohort.catalog.price_of_everything == 3 * (3 + 2 + 1) + 24


def test_every_kind_of_table_reads_the_same(
    visits: pd.DataFrame, schema: dict[str, Any], tmp_path: Path
) -> None:
    expected = read_cohort(visits, schema)
    visits.to_csv(tmp_path / "table.csv", index=False)
    visits.to_csv(tmp_path / "table.csv.gz", index=False)
    visits.to_csv(tmp_path / "table.tsv", index=False, sep="\t")
    visits.to_parquet(tmp_path / "table.parquet")
    frame = pl.from_pandas(visits)
    tables: list[Any] = [tmp_path / f"table.{end}" for end in ("csv", "csv.gz", "tsv", "parquet")]
    tables += [frame, frame.lazy(), pa.Table.from_pandas(visits), str(tables[0])]
    tables += [visits.convert_dtypes(), visits.astype(str), visits.astype({"stage": "category"})]
    for table in tables:
        assert_same(read_cohort(table, schema), expected)


def test_order_of_rows_does_not_matter(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    shuffled = visits.iloc[[2, 0, 1, 4, 3, 5]]
    assert_same(read_cohort(shuffled, schema), read_cohort(visits, schema))


def test_real_times_take_the_last_record_of_a_slot() -> None:
    table = pd.DataFrame(
        {
            "id": [1, 1, 1, 1],
            "years": [0.0, 0.9, 1.1, 2.2],
            "alt": [10.0, 20.0, None, 40.0],
            "left": [1.0, 2.0, None, 3.0],
            "right": [1.0, None, 7.0, 3.0],
            "ill": [0, 1, None, 0],
        }
    )
    schema = {
        "subject": "id",
        "time": "years",
        "grid": [0, 1, 2],
        "label": "ill",
        "time_unit": "years",
        "features": {"alt": {"cost": 1.0}, "scan": {"cost": 1.0, "columns": ["left", "right"]}},
    }
    cohort = read_cohort(table, schema)
    assert_same(read_cohort(table.iloc[[3, 2, 1, 0]], schema), cohort)
    np.testing.assert_array_equal(cohort.values[0, :, 0], [10, 20, 40])
    # The scan of 1.1 replaces that of 0.9 as a whole: two scans are never mixed.
    np.testing.assert_array_equal(cohort.values[0, 1, 1:], [np.nan, 7])
    assert cohort.labels.tolist() == [[0, 1, 0]]
    assert cohort.slot_times == (0, 1, 2)
    assert cohort.time_unit == "years"


def test_rows_after_the_grid_are_left_out_with_a_note(
    visits: pd.DataFrame, schema: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    del schema["visit"]
    schema |= {"time": "visit", "grid": [0, 1]}
    schema["features"]["scan"]["cost"] = 1.0
    reading = read_table(visits, schema)
    assert reading.cohort.n_times == 2
    assert reading.notes == ("2 row(s) at or after visit = 1.5 are left out: the grid ends.",)
    with caplog.at_level(logging.INFO, logger="nocta"):
        read_cohort(visits, schema)
    assert "left out" in caplog.text


def test_rows_that_share_a_slot_are_noted() -> None:
    table = pd.DataFrame(
        {"id": [1, 1, 2, 2], "t": [0, 0.1, 0, 1], "alt": [10.0, 20, 30, 40], "ill": [0, 1, 0, 1]}
    )
    schema = {
        "subject": "id", "time": "t", "grid": [0, 1], "label": "ill",
        "features": {"alt": {"cost": 1.0}},
    }  # fmt: skip
    reading = read_table(table, schema)
    np.testing.assert_array_equal(reading.cohort.values[..., 0], [[20, np.nan], [30, 40]])
    assert reading.notes == (
        "1 row(s) share a slot with a later row of the subject; the last value of each "
        "feature and the last label count.",
    )
    assert read_table(table[1:], schema).notes == ()


def test_dates_count_from_the_first_row() -> None:
    dates = ["2020-03-01", "2020-09-01", "2021-03-01", "2019-01-31", "2020-01-31"]
    table = pd.DataFrame(
        {"id": [1, 1, 1, 2, 2], "date": dates, "alt": [1.0, 2, 3, 4, 5], "ill": [0, 0, 1, 0, 1]}
    )
    schema = {
        "subject": "id",
        "time": "date",
        "grid": [0, 6, 12],
        "time_unit": "months",
        "label": "ill",
        "features": {"alt": {"cost": 1.0}},
    }
    expected = np.float32([[1, 2, 3], [4, np.nan, 5]])
    np.testing.assert_array_equal(read_cohort(table, schema).values[..., 0], expected)
    typed = table.assign(date=pd.to_datetime(table["date"]))
    np.testing.assert_array_equal(read_cohort(typed, schema).values[..., 0], expected)
    del schema["time_unit"]
    with pytest.raises(ValueError, match="it holds dates, and time_unit is None"):
        read_cohort(table, schema)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["7", "12"], np.array([7, 12])), (["007", "12"], np.array(["007", "12"]))],
)
def test_identifiers_keep_their_spelling(
    ids: list[str], expected: np.ndarray, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(f"id,visit,alt,ill\n{ids[0]},0,1,0\n{ids[1]},0,2,1\n")
    schema = {"subject": "id", "visit": "visit", "label": "ill", "features": {"alt": {"cost": 1.0}}}
    subjects = read_cohort(tmp_path / "t.csv", schema).subjects
    np.testing.assert_array_equal(subjects, expected)
    assert subjects.dtype == expected.dtype


def test_classes_keep_the_order_of_the_schema(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["classes"] = ["mild", "moderate", "severe", "terminal"]
    cohort = read_cohort(visits, schema)
    assert cohort.classes == ("mild", "moderate", "severe", "terminal")
    numbered = read_cohort(
        visits.assign(stage=[10.0, 2, 2, 10, None, 2]), {**schema, "classes": None}
    )
    assert numbered.classes == ("2", "10")


def test_truth_values_are_numbers(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    expected = np.float32([1, 0, 0])
    for cells in (
        [True, False, False, True, True, False],
        ["True", "false", "False"] + ["true"] * 3,
    ):
        cohort = read_cohort(visits.assign(alt=cells), schema)
        np.testing.assert_array_equal(cohort.values[0, :, 0], expected)


def test_parts_and_groups_are_read(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    table = visits.assign(part=["train"] * 5 + ["test"], home=[1, 1, 1, 1, 1, 2])
    cohort = read_cohort(table, {**schema, "split": "part", "group": "home"})
    assert cohort.fixed_split is not None
    assert cohort.fixed_split.tolist() == ["train", "train", "test"]
    assert cohort.groups is not None
    assert cohort.groups.tolist() == [1, 1, 2]


def test_what_cannot_be_acquired_stays_hidden(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    schema["features"]["alt"]["at"] = "first"
    reading = read_table(visits.assign(extra=1), schema)
    assert reading.cohort.recorded[0, :, 0].tolist() == [True, False, False]
    assert any("2 records of 'alt' are at visits at which" in note for note in reading.notes)
    assert "Columns not in the schema are ignored: extra." in reading.notes


def test_the_cohort_is_named(visits: pd.DataFrame, schema: dict[str, Any], tmp_path: Path) -> None:
    visits.to_csv(tmp_path / "liver.csv", index=False)
    assert read_cohort(tmp_path / "liver.csv", schema).name == "liver"
    assert read_cohort(visits, schema).name == "table"
    assert read_cohort(visits, {**schema, "name": "Liver"}).name == "Liver"
