"""ADNI on made-up visits in every layout, with the odd cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_layouts import adni_row, complete_patient, write_adni

from nocta import datasets
from nocta.core.errors import ConfigError, DataError

DEMENTIA, MCI, CN = 0, 1, 2


def test_slots_are_half_years_to_month_66(tmp_path: Path) -> None:
    codes = ["bl", "m03", "m06", "m12", "m66", "m72", "m09", "uns1"]
    rows = [adni_row(1, c, "CN", FDG=i) for i, c in enumerate(codes)]
    rows[-1] |= {"M": "", "Month": ""}
    file = write_adni(tmp_path / "ADNIMERGE.csv", rows)
    cohort, summary = datasets.load_with_summary("adni", path=file, biomarkers="any")
    assert cohort.values.shape == (1, 12, 4)
    assert np.flatnonzero(cohort.visits[0]).tolist() == [0, 1, 2, 11]
    assert cohort.values[0, [0, 1, 2, 11], 0].tolist() == [0, 2, 3, 4]
    reasons = {d.why: d.count for d in summary.dropped}
    assert reasons["not a multiple of 6 months (m03 and such)"] == 2
    assert reasons["after month 66"] == 1
    assert reasons["visit code without a month"] == 1


@pytest.mark.parametrize(
    ("diagnosis", "label"),
    [
        ("CN", CN),
        ("NL", CN),
        ("MCI", MCI),
        ("Dementia", DEMENTIA),
        ("NL to MCI", MCI),
        ("MCI to Dementia", DEMENTIA),
        ("MCI to NL", CN),
        ("Dementia to MCI", MCI),
        ("", -1),
        ("-4", -1),
    ],
)
def test_both_spellings_and_transitions_are_understood(
    tmp_path: Path, diagnosis: str, label: int
) -> None:
    rows = [*complete_patient(1, "CN"), adni_row(1, "m60", diagnosis, FDG=1)]
    cohort, summary = datasets.load_with_summary(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", rows)
    )
    assert cohort.labels[0, 10] == label
    assert cohort.classes == ("Dementia", "MCI", "CN")
    assert "not understood" not in str(summary)


def test_unknown_diagnosis_is_reported_and_unlabeled(tmp_path: Path) -> None:
    rows = [*complete_patient(1), adni_row(1, "m60", "Unsure")]
    cohort, summary = datasets.load_with_summary(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", rows)
    )
    assert cohort.labels[0, 10] == -1
    assert "1 diagnoses not understood, left unlabeled: 'Unsure'" in str(summary)


def test_signs_blanks_and_minus_four_are_read_right(tmp_path: Path) -> None:
    rows = [
        adni_row(1, "bl", "CN", FDG="-4", AV45=" ", Hippocampus="7000", ABETA=">1700"),
        adni_row(1, "m06", "CN", FDG="1.25", AV45="-4.0", Hippocampus="", ABETA="<200"),
        adni_row(1, "m12", "CN", FDG="-4", AV45="1.5", Hippocampus="-1", ABETA="812.3"),
    ]
    features = {"FDG": 1, "AV45": 1, "Hippocampus": 0.5, "ABETA": 0.8}
    cohort = datasets.load(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", rows), features=features
    )
    nan = np.nan
    expected = [[nan, nan, 7000, 1700], [1.25, nan, nan, 200], [nan, 1.5, -1, 812.3]]
    np.testing.assert_allclose(cohort.values[0, :3], expected, rtol=1e-6)
    assert cohort.catalog.costs[0].tolist() == [1, 1, 0.5, 0.8]


def test_column_without_any_value_is_missing_throughout(tmp_path: Path) -> None:
    rows = [row | {"AV45": "", "M": ""} for row in complete_patient(1)]
    file = write_adni(tmp_path / "ADNIMERGE.csv", rows)
    cohort = datasets.load("adni", path=file, biomarkers="any")
    assert np.isnan(cohort.values[0, :3, 1]).all()
    assert not np.isnan(cohort.values[0, :3, 0]).any()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04\x00\xff\xfe"])
def test_file_that_is_no_table_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ADNIMERGE.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"ADNIMERGE\.csv' cannot be read as CSV"):
        datasets.load("adni", path=tmp_path)


def test_duplicates_keep_the_first_value_of_every_column(tmp_path: Path) -> None:
    rows = [
        *complete_patient(1),
        adni_row(1, "m24", "", FDG=1.0),
        adni_row(1, "m24", "MCI", FDG=2.0, AV45=3.0),
    ]
    cohort, summary = datasets.load_with_summary(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", rows)
    )
    assert cohort.labels[0, 4] == MCI
    assert cohort.values[0, 4, :2].tolist() == [1.0, 3.0]
    assert "1 rows: duplicates of a patient and month" in str(summary)


def test_baseline_twins_are_never_read(tmp_path: Path) -> None:
    cohort = datasets.load("adni", path=write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1)))
    assert not np.isin(cohort.values, [9.99, 9999]).any()
    with pytest.raises(ConfigError, match="'FDG_bl' cannot be a feature"):
        datasets.load("adni", path=tmp_path, features={"FDG_bl": 1.0})


def test_missing_diagnosis_column_is_an_error(tmp_path: Path) -> None:
    file = write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1), drop=["DX", "AV45"])
    with pytest.raises(DataError, match=r"no column DX .*not DX_bl.*no column AV45"):
        datasets.load("adni", path=file)


def test_row_without_patient_is_dropped_and_counted(tmp_path: Path) -> None:
    rows = [*complete_patient(1), adni_row(1, "m60", "CN") | {"RID": ""}]
    cohort, summary = datasets.load_with_summary(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", rows)
    )
    assert cohort.subjects.dtype == np.int64
    assert not cohort.visits[0, 10]
    assert "1 rows: without a patient number" in str(summary)


def test_patient_may_be_named_by_ptid_only(tmp_path: Path) -> None:
    file = write_adni(tmp_path / "TADPOLE_D1_D2.csv", complete_patient(1), drop=["RID"])
    assert datasets.load("adni", path=file).subjects.tolist() == ["011_S_0001"]


@pytest.mark.parametrize("left", ["VISCODE", "M", "Month"])
def test_month_comes_from_any_of_three_columns(tmp_path: Path, left: str) -> None:
    drop = {"VISCODE", "M", "Month"} - {left}
    file = write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1), drop=list(drop))
    assert np.flatnonzero(datasets.load("adni", path=file).visits[0]).tolist() == [0, 1, 2]


def test_column_case_does_not_matter(tmp_path: Path) -> None:
    file = write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1))
    header, _, body = file.read_text().partition("\n")
    file.write_text(f"{header.lower()}\n{body}")
    assert datasets.load("adni", path=file).recorded[0, :3].all()


def test_newest_table_is_taken_and_the_dictionary_passed_over(tmp_path: Path) -> None:
    write_adni(tmp_path / "TADPOLE_D1_D2.csv", complete_patient(1))
    assert datasets.load("adni", path=tmp_path).subjects.tolist() == [1]
    write_adni(tmp_path / "ADNIMERGE_30Dec2024.csv", complete_patient(2))
    write_adni(tmp_path / "adnimerge_02Jan2025.csv", complete_patient(3))
    (tmp_path / "ADNIMERGE_DICT_15Nov2026.csv").write_text("FLDNAME,TEXT\nDX,diagnosis\n")
    cohort, summary = datasets.load_with_summary("adni", path=tmp_path)
    assert cohort.subjects.tolist() == [3]
    assert summary.sources[0].endswith("adnimerge_02Jan2025.csv")


def test_filters_are_counted(tmp_path: Path) -> None:
    rows = [
        *complete_patient(1, n_visits=4),
        *complete_patient(2, n_visits=2),
        adni_row(3, "bl", "CN", FDG=1.0),  # one biomarker of four
        adni_row(4, "bl", "CN"),  # none
        adni_row(5, "bl", "", FDG=1.0, AV45=1.0, Hippocampus=1, Entorhinal=1),  # no label
    ]
    file = write_adni(tmp_path / "ADNIMERGE.csv", rows)

    def kept(**filters: Any) -> list[int]:
        patients: list[int] = datasets.load("adni", path=file, **filters).subjects.tolist()
        return patients

    assert kept() == [1, 2]
    assert kept(biomarkers="any") == [1, 2, 3]
    assert kept(biomarkers="none") == [1, 2, 3, 4]
    assert kept(biomarkers="none", min_labels=0) == [1, 2, 3, 4, 5]
    assert kept(min_labels=3) == [1]
    _, summary = datasets.load_with_summary("adni", path=file)
    text = str(summary)
    assert "1 patients: fewer than 1 labeled visits" in text
    assert "2 patients: no value of each biomarker" in text
    assert "biomarkers='any' with min_labels 1, 2, 3, 4, 6 keeps patients (labels): 3 (7)" in text


def test_filters_that_leave_nobody_say_so(tmp_path: Path) -> None:
    file = write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1))
    with pytest.raises(DataError, match="None of the 1 patients passes min_labels=9"):
        datasets.load("adni", path=file, min_labels=9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"biomarkers": "some"}, "biomarkers is 'some'; use 'any', 'each' or 'none'"),
        ({"min_labels": "a"}, "min_labels is 'a'; use a whole number"),
        ({"min_labels": None}, "min_labels is None"),
        ({"features": {"FDG": "dear"}}, "features is .*; use options by name, each a number"),
        ({"features": ["FDG"]}, "features is .*; use options by name"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_read(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        datasets.load("adni", path=tmp_path / "nowhere", **options)


def test_visits_before_the_first_are_not_counted_as_late(tmp_path: Path) -> None:
    early = [adni_row(1, "m-6", "CN", FDG=9.0), adni_row(1, "m72", "CN"), adni_row(1, "m78", "CN")]
    cohort, summary = datasets.load_with_summary(
        "adni", path=write_adni(tmp_path / "ADNIMERGE.csv", [*complete_patient(1), *early])
    )
    assert "1 visits: before the first visit (a negative month)" in str(summary)
    assert "2 visits: after month 66" in str(summary)
    assert not (cohort.values == 9.0).any()
