"""OAI on a made-up download in every layout, with the odd cases."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dataset_layouts import write_oai

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, DataFileMissing
from nocta.datasets._oai_files import to_code
from nocta.datasets.oai import CLINICAL, clinical_feature


@pytest.fixture(scope="module")
def womac(oai_folder: Path) -> Cohort:
    return datasets.load("oai-womac", path=oai_folder)


@pytest.fixture(scope="module")
def klg(oai_folder: Path) -> Cohort:
    return datasets.load("oai-klg", path=oai_folder)


@pytest.fixture
def own_copy(oai_folder: Path, tmp_path: Path) -> Path:
    """A download the test may change."""
    return Path(shutil.copytree(oai_folder, tmp_path / "oai"))


def feature(cohort: Cohort, column: str) -> np.ndarray:
    """`(n, L)` values of a column."""
    return cohort.values[:, :, cohort.catalog.columns.index(column)]


def knees(cohort: Cohort, letter: str) -> np.ndarray:
    return np.array([str(s).endswith(letter) for s in cohort.subjects])


def patient_numbers(cohort: Cohort) -> np.ndarray:
    return np.array([int(str(s).partition("-")[0]) for s in cohort.subjects])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1: Yes", 1), ("1", 1), ("0: No", 0), (" 2 ", 2), ("27.5", 27.5), ("-3", -3),
        (".52", 0.52),
        (".: Missing Form/Incomplete Workbook", np.nan), (".", np.nan), ("", np.nan),
        (".A: Not applicable", np.nan), ("A", np.nan), ("M", np.nan), ("Yes", np.nan),
    ],
)  # fmt: skip
def test_codes_become_numbers(text: str, number: float) -> None:
    np.testing.assert_equal(to_code(pd.Series([text])).to_numpy(), [float(number)])


def test_letters_count_for_the_site_only(own_copy: Path) -> None:
    file = next(own_copy.rglob("ALLCLINICAL03.txt"))
    lines = [line.split("|") for line in file.read_text().splitlines()]
    at = [name.lower() for name in lines[0]].index("v03bmi")
    lines[1][at] = "M"
    file.write_text("\n".join("|".join(line) for line in lines) + "\n")
    cohort = datasets.load("oai-womac", path=own_copy)
    changed = patient_numbers(cohort) == int(lines[1][0])
    assert np.isnan(feature(cohort, "bmi")[changed, 2]).all()
    assert not np.isnan(feature(cohort, "bmi")[~changed, 2]).any()
    assert set(np.unique(feature(cohort, "site"))) <= {1, 2, 3, 4, 5}


def test_cohort_has_two_knees_per_patient_and_seven_slots(womac: Cohort) -> None:
    assert womac.values.shape == (24, 7, 28)
    assert womac.catalog.n_features == 27
    assert womac.slot_times == (0, 12, 24, 36, 48, 72, 96)
    assert womac.visits.all()


def test_pain_starts_at_five(womac: Cohort) -> None:
    right = womac.subset(np.flatnonzero(knees(womac, "R")))
    expected = (patient_numbers(right) % 8 >= 5).astype(int)
    np.testing.assert_array_equal(right.labels, np.repeat(expected[:, None], 7, axis=1))


def test_missing_score_has_no_label(womac: Cohort) -> None:
    left = womac.labels[knees(womac, "L")]
    assert (left[:, 1] == -1).all()
    assert (np.delete(left, 1, axis=1) == 0).all()


def test_grades_zero_and_one_are_merged(klg: Cohort) -> None:
    side = knees(klg, "L").astype(int)
    grade = (patient_numbers(klg) + side) % 5
    expected = np.maximum(grade, 1) - 1
    np.testing.assert_array_equal(klg.labels, np.repeat(expected[:, None], 7, axis=1))
    assert klg.classes == ("grade 0-1", "grade 2", "grade 3", "grade 4")


def test_only_the_right_project_is_read(womac: Cohort, oai_folder: Path) -> None:
    assert feature(womac, "jsw_min").max() == 4.25  # project 22 says 99
    assert feature(womac, "jsw_700")[knees(womac, "R")].max() == pytest.approx(4.5)
    assert feature(womac, "jsw_700")[knees(womac, "L")].min() == pytest.approx(5.5)
    _, summary = datasets.load_with_summary("oai-klg", path=oai_folder)
    assert "168 readings: of another project (kxr_sq_bu)" in str(summary)


@pytest.mark.parametrize("again_first", [False, True])
def test_knee_read_in_37_and_42_counts_as_in_37(
    own_copy: Path, klg: Cohort, again_first: bool
) -> None:
    file = next(own_copy.rglob("kxr_sq_bu08.txt"))
    head, *lines = file.read_text().splitlines()
    again = [line for line in map(read_again, lines) if line]
    assert again
    readings = [*again, *lines] if again_first else [*lines, *again]
    file.write_text("\n".join([head, *readings]) + "\n")
    cohort, summary = datasets.load_with_summary("oai-klg", path=own_copy)
    np.testing.assert_array_equal(cohort.labels, klg.labels)
    assert f"{len(again)} readings: duplicates of a knee (kxr_sq_bu)" in str(summary)


def read_again(line: str) -> str | None:
    """A reading of project 37 made again in 42, two grades higher or lower."""
    patient, side, project, grade, *rest = line.split("|")
    other = str((int(grade) + 2) % 5)
    return "|".join([patient, side, "42", other, *rest]) if project == "37" else None


def test_reading_of_42_stands_in_where_37_is_blank(own_copy: Path, klg: Cohort) -> None:
    file = next(own_copy.rglob("kxr_sq_bu08.txt"))
    lines = file.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "|37|" in line)
    patient, side, _, grade, *rest = lines[at].split("|")
    lines[at] = "|".join([patient, side, "37", "", *rest])
    lines.append("|".join([patient, side, "42", grade, *rest]))
    file.write_text("\n".join(lines) + "\n")
    np.testing.assert_array_equal(datasets.load("oai-klg", path=own_copy).labels, klg.labels)


def add_line(folder: Path, name: str, change: dict[str, str]) -> None:
    """Repeat the last line of a file of the download, with other cells."""
    file = next(folder.rglob(name))
    lines = file.read_text().splitlines()
    cells = dict(zip(lines[0].lower().split("|"), lines[-1].split("|"), strict=True))
    file.write_text("\n".join([*lines, "|".join({**cells, **change}.values())]) + "\n")


@pytest.mark.parametrize(
    "name", ["ALLCLINICAL00.txt", "SUBJECTCHAR00.txt", "kxr_qjsw_duryea03.txt", "kxr_sq_bu08.txt"]
)
def test_patient_who_is_not_enrolled_is_counted_once(
    own_copy: Path, klg: Cohort, name: str
) -> None:
    add_line(own_copy, name, {"id": "9999999"})
    add_line(own_copy, "ALLCLINICAL01.txt", {"id": "9999999"})
    cohort, summary = datasets.load_with_summary("oai-klg", path=own_copy)
    assert cohort.subjects.tolist() == klg.subjects.tolist()
    assert "1 patients: not in Enrollees" in str(summary)


@pytest.mark.parametrize(
    ("name", "column"),
    [("ALLCLINICAL03.txt", "id"), ("kxr_sq_bu03.txt", "side"), ("kxr_sq_bu03.txt", "readprj")],
)
def test_row_without_its_key_is_counted(own_copy: Path, name: str, column: str) -> None:
    add_line(own_copy, name, {column: ""})
    _, summary = datasets.load_with_summary("oai-klg", path=own_copy)
    assert f"1 rows: without ID, side or project ({name})" in str(summary)


def test_reading_of_no_side_is_counted(own_copy: Path) -> None:
    add_line(own_copy, "kxr_sq_bu03.txt", {"side": "3"})
    _, summary = datasets.load_with_summary("oai-klg", path=own_copy)
    assert "1 readings: side is neither 1 nor 2 (kxr_sq_bu)" in str(summary)


def test_no_label_anywhere_leaves_nobody(own_copy: Path) -> None:
    for file in own_copy.rglob("kxr_sq_bu*.txt"):
        file.write_text(re.sub(r"\|\d(: grade)?\|([^|\n]*)\n", r"|.|\2\n", file.read_text()))
    with pytest.raises(DataError, match="24 knees: without any label"):
        datasets.load("oai-klg", path=own_copy)


def test_other_project_everywhere_is_an_error_with_a_way_out(own_copy: Path) -> None:
    file = next(own_copy.rglob("kxr_sq_bu00.txt"))
    file.write_text(file.read_text().replace("|15|", "|22|"))
    with pytest.raises(DataError, match="no readings of project 15, only of 22") as caught:
        datasets.load("oai-klg", path=own_copy)
    assert """--data-option "read_project={'00': 22}" """ in str(caught.value)
    assert len(datasets.load("oai-klg", path=own_copy, read_project={"00": 22})) == 24


def test_project_of_a_visit_that_does_not_exist_is_refused(own_copy: Path) -> None:
    with pytest.raises(ConfigError, match="has a visit '8'; the visits are 00, 01"):
        datasets.load("oai-klg", path=own_copy, read_project={"8": 37})


def test_visits_may_be_given_as_one_text(own_copy: Path) -> None:
    assert datasets.load("oai-womac", path=own_copy, visits="00,01").n_times == 2


def test_verbose_and_bare_codes_agree(womac: Cohort) -> None:
    for column in ("injury", "surgery"):
        assert set(np.unique(feature(womac, column))) == {0.0, 1.0}
    np.testing.assert_array_equal(feature(womac, "injury"), 1 - feature(womac, "surgery"))


def test_case_of_names_does_not_matter(womac: Cohort, tmp_path: Path) -> None:
    lower = datasets.load("oai-womac", path=write_oai(tmp_path, upper=False))
    np.testing.assert_array_equal(lower.values, womac.values)
    np.testing.assert_array_equal(lower.labels, womac.labels)


def test_side_specific_columns_follow_the_knee(womac: Cohort) -> None:
    assert (feature(womac, "knee_side")[knees(womac, "R")] == 1).all()
    assert (feature(womac, "knee_side")[knees(womac, "L")] == 2).all()
    right, left = (feature(womac, "injury")[knees(womac, k)] for k in "RL")
    assert (right != left).any()


def test_age_advances_and_the_rest_is_carried_on(womac: Cohort) -> None:
    np.testing.assert_allclose(feature(womac, "age")[0], [60, 61, 62, 63, 64, 66, 68])
    assert (feature(womac, "sex") == feature(womac, "sex")[:, :1]).all()
    income = feature(womac, "income")
    assert (np.isnan(income).all(axis=1) == (patient_numbers(womac) != 9_000_001)).all()


def test_question_not_asked_at_a_visit_is_missing_there(womac: Cohort) -> None:
    missing = np.isnan(feature(womac, "systolic"))
    assert missing[:, 3].all()
    assert not np.delete(missing, 3, axis=1).any()
    assert feature(womac, "activity")[0].tolist() == [100, 101, 103, 105, 106, 108, 110]


def test_skipped_visit_does_not_exist(own_copy: Path) -> None:
    for file in own_copy.rglob("*05.txt"):
        lines = file.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("9000003|")]
        file.write_text("\n".join(kept) + "\n")
    cohort = datasets.load("oai-klg", path=own_copy)
    gone = patient_numbers(cohort) == 9_000_003
    assert not cohort.visits[gone, 3].any()
    assert (cohort.labels[gone, 3] == -1).all()
    assert np.isnan(cohort.values[gone, 3]).all()
    assert cohort.visits[~gone].all()


@pytest.mark.parametrize("seed", range(5))
def test_knees_of_one_patient_are_never_split_apart(klg: Cohort, seed: int) -> None:
    parts = klg.split(datasets.get("oai-klg").fractions, seed=seed)
    patients = [set(patient_numbers(part)) for part in parts]
    assert sum(len(p) for p in patients) == 12
    assert len(set.union(*patients)) == 12


def test_knee_without_any_label_is_dropped(own_copy: Path) -> None:
    for file in own_copy.rglob("kxr_sq_bu*.txt"):
        lines = file.read_text().splitlines()
        left = ("9000002|2|", "9000002|2: Left|")
        file.write_text("\n".join(x for x in lines if not x.startswith(left)) + "\n")
    cohort, summary = datasets.load_with_summary("oai-klg", path=own_copy)
    assert len(cohort) == 23
    assert "1 knees: without any label" in str(summary)
    assert (summary.n_subjects, summary.n_groups) == (23, 12)


def test_missing_file_is_named_with_where_to_get_it(own_copy: Path) -> None:
    next(own_copy.rglob("kxr_sq_bu06.txt")).unlink()
    with pytest.raises(DataFileMissing, match=r"Not found: kxr_sq_bu06 \(\.txt\)") as caught:
        datasets.load("oai-klg", path=own_copy)
    assert "https://nda.nih.gov/oai/" in str(caught.value)
    assert len(datasets.load("oai-womac", path=own_copy)) == 24  # needs no grades


def test_fewer_visits_can_be_asked_for(oai_folder: Path) -> None:
    cohort = datasets.load("oai-klg", path=oai_folder, visits=("00", "03", "08"))
    assert cohort.slot_times == (0, 24, 72)
    with pytest.raises(ConfigError, match="in order, including 00"):
        datasets.load("oai-klg", path=oai_folder, visits=("03", "00"))


def test_static_features_can_be_kept_to_the_first_visit(oai_folder: Path) -> None:
    catalog = datasets.load("oai-womac", path=oai_folder, static_at="first").catalog
    by_name = dict(zip(catalog.names, catalog.open_slots.sum(axis=0), strict=True))
    assert by_name["sex"] == by_name["knee_side"] == 1
    assert by_name["age"] == by_name["bmi"] == by_name["jsw_min"] == 7


def test_clinical_list_is_configurable(oai_folder: Path) -> None:
    cohort_group = clinical_feature("cohort", "study arm", 0.3, "v00cohort")
    cohort = datasets.load("oai-klg", path=oai_folder, clinical=[*CLINICAL[:2], cohort_group])
    assert cohort.catalog.names[:3] == ("age", "sex", "cohort")
    assert (feature(cohort, "cohort") == 1).all()


def test_misspelt_clinical_column_is_an_error(oai_folder: Path) -> None:
    wrong = clinical_feature("weight", "weight", 0.3, "p01wieght", "v##wieght")
    with pytest.raises(DataError, match="has a value for 'weight'"):
        datasets.load("oai-klg", path=oai_folder, clinical=[wrong])


@pytest.mark.parametrize(
    ("name", "column"),
    [("oai-womac", "v##womkp{s}"), ("oai-womac", "v##koospain{s}"), ("oai-klg", "v##xrjsm")],
)
def test_columns_that_give_the_label_away_are_refused(
    oai_folder: Path, name: str, column: str
) -> None:
    leak = clinical_feature("leak", "the label itself", 0.3, column.replace("##", "00"), column)
    with pytest.raises(ConfigError, match=f"reveals the label of {name}"):
        datasets.load(name, path=oai_folder, clinical=[leak])


def test_foreign_file_is_named(own_copy: Path) -> None:
    next(own_copy.rglob("ALLCLINICAL03.txt")).write_text("name|value\na|1\n")
    with pytest.raises(DataError, match=r"ALLCLINICAL03\.txt' has no column ID"):
        datasets.load("oai-womac", path=own_copy)
