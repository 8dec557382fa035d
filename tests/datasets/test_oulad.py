"""OULAD on a few made-up students, in the published layout and in those of mirrors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dataset_layouts import OULAD_TABLES, write_oulad

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, DataFileMissing

NONE = -1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_oulad(tmp_path / "anonymisedData")


def load(folder: Path, **options: object) -> Cohort:
    return datasets.load("oulad", path=folder, **options)


def feature(cohort: Cohort, subject: int, name: str) -> list[float | None]:
    values = cohort.values[subject, :, cohort.catalog.columns.index(name)]
    return [None if np.isnan(v) else float(v) for v in values]


def change(folder: Path, table: str, row: int, **values: object) -> None:
    """Overwrite some columns of a row of a published table."""
    frame = pd.read_csv(folder / f"{table}.csv", dtype=str, keep_default_na=False)
    for column, value in values.items():
        frame.loc[row, column] = str(value)
    frame.to_csv(folder / f"{table}.csv", index=False)


def test_a_subject_is_an_enrollment_and_students_are_groups(folder: Path) -> None:
    cohort, summary = datasets.load_with_summary("oulad", path=folder)
    assert cohort.subjects.tolist() == [
        "AAA-2013J-11", "AAA-2013J-12", "AAA-2013J-13", "BBB-2014B-11",
    ]  # fmt: skip
    assert cohort.groups is not None
    assert cohort.groups.tolist() == [11, 12, 13, 11]
    assert "4 of 3 students" in str(summary)


def test_slots_end_with_withdrawal(folder: Path) -> None:
    cohort, summary = datasets.load_with_summary("oulad", path=folder)
    assert cohort.visits.sum(axis=1).tolist() == [8, 8, 1, 8]  # 13 leaves on day 56, 14 on day 28
    assert "1 enrollments: withdrawn within the first four weeks" in str(summary)
    assert "1 enrollments begin after the first slot" in str(summary)
    change(folder, "studentRegistration", 2, date_unregistration=57)
    assert load(folder).visits.sum(axis=1).tolist() == [8, 8, 2, 8]


def test_labels_are_about_the_next_assignment_within_eight_weeks(folder: Path) -> None:
    labels = load(folder).labels
    # Slots end on days 28, 56, 84, 112; due on days 20, 60 and 130. Student 11 hands the second in
    # on day 56, and fails the third; student 12 passes the second late, and misses the third.
    assert labels[0].tolist() == [0, NONE, 1, 1, *[NONE] * 4]
    assert labels[1].tolist() == [0, 0, 1, 1, *[NONE] * 4]
    assert labels[2].tolist() == [1, *[NONE] * 7]
    assert labels[3].tolist() == [NONE] * 8  # handed in on day 28, the end of the slot
    assert load(folder, weeks_ahead=4).labels[0].tolist() == [NONE, NONE, NONE, 1, *[NONE] * 4]


@pytest.mark.parametrize(("score", "label"), [(39, 1), (40, 0), ("?", 1)])
def test_forty_is_a_pass(folder: Path, score: object, label: int) -> None:
    change(folder, "studentAssessment", 1, score=score)
    assert load(folder).labels[0, 0] == label


def test_a_mark_is_known_once_handed_in(folder: Path) -> None:
    cohort = load(folder)
    assert feature(cohort, 0, "tutor_mark") == [80, 70, None, None, 39, None, None, None]
    assert feature(cohort, 0, "computer_mark") == [None, 100, *[None] * 6]
    assert feature(cohort, 1, "tutor_mark") == [50, None, 40, *[None] * 5]  # the first is banked
    assert feature(cohort, 2, "tutor_mark")[0] is None  # handed in, never marked


def test_marking_takes_time_if_asked_for(folder: Path) -> None:
    cohort = load(folder, marking_days=14)
    assert feature(cohort, 0, "tutor_mark") == [None, 80, 70, None, None, 39, None, None]
    assert feature(cohort, 0, "computer_mark") == [None, 100, *[None] * 6]


def test_marks_of_one_slot_are_averaged(folder: Path) -> None:
    change(folder, "studentAssessment", 1, date_submitted=28)
    assert feature(load(folder), 0, "tutor_mark")[0] == 75


def test_clicks_are_added_up_to_the_end_of_the_slot(folder: Path) -> None:
    cohort, summary = datasets.load_with_summary("oulad", path=folder)
    assert feature(cohort, 0, "content") == [7, 5, 0, 0, 0, 0, 0, 0]
    assert feature(cohort, 0, "homepage") == [0, 0, 0, 0, 0, 0, 0, 6]
    assert feature(cohort, 1, "content")[:2] == [23, 0]
    assert feature(cohort, 3, "homepage")[0] == 9
    assert feature(cohort, 2, "content") == [0, *[None] * 7]  # no slot, no log
    for line in ("10 clicks: of unknown people", "8 clicks: on rarer", "7 clicks: after day 224"):
        assert line in str(summary)


def test_no_slot_knows_the_future(folder: Path) -> None:
    before = load(folder)
    change(folder, "studentVle", 2, sum_click=500)  # day 29
    change(folder, "studentAssessment", 1, date_submitted=57, score=1)
    change(folder, "studentAssessment", 3, score=1)  # day 29
    after = load(folder)
    np.testing.assert_array_equal(after.values[:, 0], before.values[:, 0])
    np.testing.assert_array_equal(after.context, before.context)
    assert (after.labels[0, 0], before.labels[0, 0]) == (1, 0)


def test_context_is_numbers(folder: Path) -> None:
    cohort = load(folder)
    assert cohort.catalog.context == ("age", "male", "education", "imd", "credits", "attempts")
    np.testing.assert_array_equal(cohort.context[:2], [[2, 1, 3, 90, 240, 0], [0, 0, 0, 10, 60, 2]])
    assert np.isnan(cohort.context[2, 3])


def to_gzip(folder: Path, name: str) -> None:
    file = folder / f"{name}.csv"
    file.with_suffix(".csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()


def to_parquet(folder: Path, name: str) -> None:
    """As a mirror stores it: numbers as floats, and the click log in pieces."""
    frame = pd.read_csv(folder / f"{name}.csv", na_values=["?"])
    whole = frame.astype({c: float for c in frame.select_dtypes("number").columns})
    (folder / f"{name}.csv").unlink()
    if name != "studentVle":
        whole.to_parquet(folder / f"{name}.parquet")
        return
    keys = OULAD_TABLES["studentVle"][0].split()[:2]
    for values, piece in whole.groupby(keys):
        place = folder.joinpath("studentVle_ds", *map("=".join, zip(keys, values, strict=True)))
        place.mkdir(parents=True)
        piece.drop(columns=keys).to_parquet(place / "part-0.parquet")


@pytest.mark.parametrize("convert", [to_gzip, to_parquet])
def test_every_form_of_the_tables_gives_the_same(folder: Path, convert: object) -> None:
    plain = load(folder)
    for name in OULAD_TABLES:
        convert(folder, name)  # type: ignore[operator]
    other = load(folder.parent)
    np.testing.assert_array_equal(other.values, plain.values)
    np.testing.assert_array_equal(other.labels, plain.labels)
    np.testing.assert_array_equal(other.context, plain.context)


def test_prices_are_those_of_the_card(folder: Path) -> None:
    catalog = load(folder).catalog
    assert list(catalog.features) == [m.feature() for m in datasets.card("oulad").measurements]
    np.testing.assert_allclose(catalog.cost_per_visit(catalog.open_slots), 1.6)


def test_incomplete_tables_are_warned_of(folder: Path) -> None:
    _, summary = datasets.load_with_summary("oulad", path=folder)
    assert "studentVle.csv has 10 rows; the whole table has 10,655,280." in summary.warnings
    assert len(summary.warnings) == 6


@pytest.mark.parametrize("name", ["assessments", "studentVle"])
def test_missing_table_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataFileMissing, match=f"{name}.csv is missing"):
        load(write_oulad(tmp_path, leave_out=[name]))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("vle", "id_site,code_module\n1,AAA\n", "has no column code_presentation"),
        ("studentVle", "id_student,id_site,date\n1,1,1\n", "has no column sum_click"),
        ("studentVle", "id_student,id_site,date,sum_click\n1,1\n", "is damaged"),
        ("assessments", "", "is damaged"),
    ],
)
def test_damaged_table_is_named(folder: Path, name: str, text: str, message: str) -> None:
    (folder / f"{name}.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_impossible_options_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="weeks_ahead is 0"):
        load(folder, weeks_ahead=0)
