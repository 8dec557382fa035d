"""`none` is a value if it is listed, and what was read as missing is told."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nocta.tables.draft.draft import draft_schema
from nocta.tables.table import read_table

PAIN = ["none", "mild", "none", "severe", "mild", "none"]
FRAME = pd.DataFrame(
    {
        "id": list("aabbcc"),
        "visit": [0, 1] * 3,
        "pain": PAIN,
        "alt": ["1.5", "NA", "2.5", "3.5", "NA", "4.5"],
        "ill": ["NA", "yes", "NA", "NA", "yes", "yes"],
    }
)
SCHEMA: dict[str, Any] = {
    "subject": "id",
    "visit": "visit",
    "label": "ill",
    "classes": ["yes", "NA"],
    "categories": {"pain": ["none", "mild", "severe"]},
    "features": {"pain": {"cost": 1.0}, "alt": {"cost": 2.0}},
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars"])
def test_a_listed_word_is_a_value(kind: str, tmp_path: Path) -> None:
    import polars as pl

    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet")
    tables = {"pandas": FRAME, "polars": pl.from_pandas(FRAME)}
    reading = read_table(tables.get(kind, tmp_path / f"t.{kind}"), SCHEMA)
    cohort = reading.cohort
    assert cohort.values[:, :, 0].ravel().tolist() == [0, 1, 0, 2, 1, 0]
    assert cohort.labels.ravel().tolist() == [1, 0, 1, 1, 0, 0]
    np.testing.assert_array_equal(cohort.values[0, :, 1], [1.5, np.nan])
    assert reading.notes == ("2 cell(s) 'NA' are read as missing: 2 in 'alt'.",)


def test_a_word_that_is_not_listed_is_missing_and_told() -> None:
    schema = {**SCHEMA, "categories": {"pain": ["mild", "severe"]}, "classes": None}
    reading = read_table(FRAME.assign(ill=[0, 1] * 3), schema)
    assert np.isnan(reading.cohort.values[0, 0, 0])
    told = "3 cell(s) 'none' are read as missing: 3 in 'pain'. List it among the values of 'pain'"
    assert any(told in note for note in reading.notes)


def test_cells_of_frames_that_are_empty_are_no_words() -> None:
    table = FRAME.assign(pain=["none", None, "none", "mild", float("nan"), pd.NA], ill=[0, 1] * 3)
    reading = read_table(table, {**SCHEMA, "classes": None})
    flat = reading.cohort.values[:, :, 0].ravel()
    np.testing.assert_array_equal(flat, [0, np.nan, 0, 1, np.nan, np.nan])


def test_init_keeps_none_as_an_answer_and_says_so() -> None:
    draft = draft_schema(FRAME.assign(ill=[0, 1] * 3))
    assert tomllib.loads(draft.text)["categories"]["pain"] == ["mild", "none", "severe"]
    doubts = "\n".join(draft.unsure)
    assert "'none' in 'pain' is read as a value (3 cells)" in doubts
    assert "2 cell(s) 'NA' are read as missing: 2 in 'alt'." in draft.notes


def test_init_does_not_take_the_none_of_a_program_for_an_answer() -> None:
    cells = ["None", "mild", "None", "severe", "mild", "None"]
    draft = draft_schema(FRAME.assign(pain=cells, ill=[0, 1] * 3))
    assert tomllib.loads(draft.text)["categories"]["pain"] == ["mild", "severe"]
    assert any("3 cell(s) 'None' are read as missing" in note for note in draft.notes)
