"""PhysioNet 2012: made-up records by hand, then the real table and sixty real records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dataset_layouts import write_record

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, DataFileMissing
from nocta.datasets.physionet2012 import read_raw
from nocta.runs.setup import DataSource

MEASURED = [m.name for m in datasets.card("physionet2012").measurements]


def column(cohort: Cohort, name: str, row: int = 0) -> list[float]:
    """Values of a feature over the slots of one stay."""
    return [float(v) for v in cohort.values[row, :, cohort.catalog.columns.index(name)]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        "00:00,Weight,-1",
        "00:10,HR,80", "01:00,HR,90", "07:59,HR,0", "08:00,HR,100",
        "02:00,Urine,100", "03:00,Urine,50",
        "02:00,GCS,15", "03:00,GCS,9",
        "40:00,pH,735", "41:00,pH,7.4",
        "09:00,MechVent,1",
        "10:00,Cholesterol,200",
        "48:00,HR,10",
    ]  # fmt: skip
    write_record(tmp_path, 132001, lines, died=1)
    write_record(tmp_path, 132002, [], died=0)
    return tmp_path


def test_slots_keep_median_sum_and_last(folder: Path) -> None:
    cohort = datasets.load("physionet2012", path=folder)
    assert column(cohort, "HR")[:2] == [85.0, 100.0]
    assert column(cohort, "Urine")[0] == 150.0
    assert column(cohort, "GCS")[0] == 9.0


def test_artefacts_count_as_not_measured(folder: Path) -> None:
    cohort, summary = datasets.load_with_summary("physionet2012", path=folder)
    assert np.isnan(column(cohort, "Weight")).all()
    assert column(cohort, "pH")[5] == pytest.approx(7.4)
    assert np.isnan(cohort.context[0, 2])  # a height of -1
    reasons = {d.why: d.count for d in summary.dropped}
    assert reasons == {
        "at or after 48 hours": 1,
        "implausible (-1, a pressure of 0, ...) or empty": 5,
        "of Cholesterol, a parameter that is not used": 1,
    }


@pytest.mark.parametrize("name", MEASURED)
def test_minus_one_is_no_measurement(name: str, tmp_path: Path) -> None:
    write_record(tmp_path, 132001, [f"01:00,{name},-1"])
    assert np.isnan(column(datasets.load("physionet2012", path=tmp_path), name)).all()


@pytest.mark.parametrize("name", ["Age", "Gender", "Height", "ICUType"])
def test_minus_one_is_no_context(name: str, tmp_path: Path) -> None:
    write_record(tmp_path, 132001, [f"00:00,{name},-1"])
    assert not (datasets.load("physionet2012", path=tmp_path).context == -1).any()


@pytest.mark.parametrize(
    ("name", "readings", "kept"),
    [
        ("GCS", (2, 3, 16), 3),
        ("FiO2", (0.21, 21), 0.21),
        ("HCT", (30, 300), 30),
        ("Bilirubin", (-0.1, 0), 0),
    ],
)
def test_ranges_keep_what_is_possible(
    name: str, readings: tuple[float, ...], kept: float, tmp_path: Path
) -> None:
    write_record(tmp_path, 132001, [f"01:00,{name},{reading}" for reading in readings])
    found = column(datasets.load("physionet2012", path=tmp_path), name)[0]
    assert found == pytest.approx(kept)


def test_readings_that_are_not_used_are_counted(tmp_path: Path) -> None:
    lines = ["01:00,Cholesterol,200", "02:00,TroponinI,1.5", "03:00,TroponinI,2", "04:00,,7"]
    write_record(tmp_path, 132001, [*lines, "49:00,TroponinI,3", ""])
    _, summary = datasets.load_with_summary("physionet2012", path=tmp_path)
    assert "1 readings: of Cholesterol, a parameter that is not used" in str(summary)
    assert "2 readings: of TroponinI, a parameter that is not used" in str(summary)
    assert "1 readings: without a parameter name" in str(summary)
    assert "RecordID" not in str(summary)


def test_stay_without_readings_is_kept(folder: Path) -> None:
    cohort = datasets.load("physionet2012", path=folder)
    assert cohort.visits.all()
    assert cohort.labels.tolist() == [[1] * 6, [0] * 6]
    assert not cohort.recorded[1].any()


def test_ventilation_task_has_its_label_and_no_oxygen(folder: Path) -> None:
    cohort = datasets.load("physionet2012-vent", path=folder)
    assert cohort.labels.tolist() == [[0, 1, 0, 0, 0, 0], [0] * 6]
    assert "FiO2" not in cohort.catalog.names
    assert cohort.catalog.n_features == 33


def test_stay_without_outcome_is_dropped_and_counted(folder: Path) -> None:
    outcomes = folder / "Outcomes-a.txt"
    outcomes.write_text("\n".join(outcomes.read_text().splitlines()[:2]) + "\n")
    cohort, summary = datasets.load_with_summary("physionet2012", path=folder)
    assert cohort.subjects.tolist() == [132001]
    assert "1 stays: not in Outcomes-a.txt" in str(summary)


def test_an_incomplete_set_is_warned_of_with_counts(folder: Path) -> None:
    _, summary = datasets.load_with_summary("physionet2012", path=folder)
    start = "Outcomes-a.txt lists 2 stays; found 2 record files; the whole set has 4,000."
    assert summary.warnings[0].startswith(start)
    log = datasets.LoadLog()
    read_raw(folder, ("a",), log, stays_per_set=2)
    assert not log.warnings
    with (folder / "Outcomes-a.txt").open("a") as stream:
        stream.writelines(f"{record},6,1,5,-1,0\n" for record in range(132003, 132008))
    assert read_raw(folder, ("a",), log, stays_per_set=2)["subject"].nunique() == 2
    assert log.warnings == [
        "Outcomes-a.txt lists 7 stays; found 2 record files; 5 listed stays have none: 132003, "
        "132004, 132005 and 2 more. To use all of it, download and unpack set-a again."
    ]


def test_an_incomplete_table_is_warned_of(shared_data: Path, tmp_path: Path) -> None:
    few = pd.read_csv(shared_data / "physionet2012.csv.gz", nrows=60)
    few.to_csv(tmp_path / "physionet2012.csv", index=False)
    _, summary = datasets.load_with_summary("physionet2012", path=tmp_path)
    assert summary.warnings == (
        "physionet2012.csv has 10 stays of set a; the whole set has 4,000.",
        "physionet2012.csv has 0 stays of set b; the whole set has 4,000.",
    )


def test_an_unfinished_download_is_named(folder: Path) -> None:
    (folder / "set-a/132003.txt").write_text("")
    with pytest.raises(DataError, match=r"132003\.txt' is empty .* Download it again"):
        datasets.load("physionet2012", path=folder)
    (folder / "Outcomes-a.txt").write_text("")
    with pytest.raises(DataError, match=r"Outcomes-a\.txt' is damaged.* Download it again"):
        datasets.load("physionet2012", path=folder)


def test_other_files_beside_the_records_are_passed_over(folder: Path) -> None:
    (folder / "set-a/README.txt").write_text("about the records")
    (folder / "set-a/._132001.txt").write_bytes(b"\x00\x05")
    assert datasets.load("physionet2012", path=folder).subjects.tolist() == [132001, 132002]


def test_outcomes_of_something_else_are_refused(folder: Path) -> None:
    (folder / "Outcomes-a.txt").write_text("record,dead\n132001,1\n")
    with pytest.raises(DataError, match=r"Outcomes-a\.txt' has no column RecordID"):
        datasets.load("physionet2012", path=folder)


def test_missing_outcomes_are_asked_for(folder: Path) -> None:
    (folder / "Outcomes-a.txt").unlink()
    with pytest.raises(DataFileMissing, match=r"Outcomes-a\.txt is missing"):
        datasets.load("physionet2012", path=folder)


def test_folder_without_records_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "set-a").mkdir()
    (tmp_path / "set-a/README.txt").write_text("about the records")
    (tmp_path / "Outcomes-a.txt").write_text("RecordID,In-hospital_death\n")
    with pytest.raises(DataFileMissing, match=r"set-a has no records \(132539\.txt, \.\.\.\)"):
        datasets.load("physionet2012", path=tmp_path)


def test_nobody_left_is_said_with_the_reasons(folder: Path) -> None:
    (folder / "Outcomes-a.txt").write_text("RecordID,In-hospital_death\n1,0\n")
    with pytest.raises(DataError, match="'physionet2012' has no subjects left") as caught:
        datasets.load("physionet2012", path=folder)
    assert str(folder / "set-a") in str(caught.value)
    assert "2 stays: not in Outcomes-a.txt" in str(caught.value)


def test_own_split_is_by_set(folder: Path) -> None:
    write_record(folder, 142001, [], part="b")
    for record in range(132003, 132009):
        write_record(folder, record, [])
    source = DataSource("physionet2012", path=str(folder), split_column="set")
    train, val, test = source.split(source.load(0), 0)
    assert test.subjects.tolist() == [142001]
    assert len(train) + len(val) == 8
    other = DataSource("physionet2012", path=str(folder), split_column="sets")
    with pytest.raises(ConfigError, match=r"no split column 'sets'\. Did you mean 'set'\?"):
        other.split(other.load(0), 0)


def test_absent_set_is_noted(folder: Path) -> None:
    _, summary = datasets.load_with_summary("physionet2012", path=folder)
    assert "set-b is not in" in str(summary)


def test_folder_may_lie_one_level_deeper(folder: Path, tmp_path: Path) -> None:
    assert len(datasets.load("physionet2012", path=tmp_path.parent / tmp_path.name)) == 2
    nested = tmp_path / "outer"
    nested.mkdir()
    (folder / "set-a").rename(nested / "set-a")
    (folder / "Outcomes-a.txt").rename(nested / "Outcomes-a.txt")
    assert len(datasets.load("physionet2012", path=folder)) == 2


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "Time,Parameter,Value\n00:00,HR,abc\n"])
def test_damaged_record_is_named(folder: Path, content: str) -> None:
    (folder / "set-a/132003.txt").write_text(content)
    with pytest.raises(DataError, match="set-a"):
        datasets.load("physionet2012", path=folder)


def test_blank_lines_do_not_shift_readings(folder: Path) -> None:
    file = folder / "set-a/132001.txt"
    before = datasets.load("physionet2012", path=folder)
    file.write_text(file.read_text().replace("02:00,Urine", "\n02:00,Urine") + "\n\n")
    np.testing.assert_array_equal(datasets.load("physionet2012", path=folder).values, before.values)


def test_unknown_set_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no set 'd'"):
        datasets.load("physionet2012", path=folder, sets=("a", "d"))


def test_groups_are_free_of_fees_unless_given(folder: Path) -> None:
    assert datasets.load("physionet2012", path=folder).catalog.group_fees == {}
    paid = datasets.load("physionet2012", path=folder, fees={"blood count": 0.2}).catalog
    plan = np.zeros((6, 34), dtype=bool)
    plan[0, [paid.feature_index("HCT"), paid.feature_index("WBC")]] = True
    assert float(paid.cost_of(plan)) == pytest.approx(0.5 + 0.5 + 0.2)


# -- real data ----------------------------------------------------------------------------


def test_table_has_the_known_numbers(shared_data: Path) -> None:
    cohort, summary = datasets.load_with_summary("physionet2012", path=shared_data)
    assert cohort.values.shape == (8000, 6, 34)
    assert summary.missing == pytest.approx(0.591, abs=0.001)
    assert cohort.labels.mean() == pytest.approx(0.140, abs=0.001)
    assert cohort.fixed_split is not None
    assert {s: int((cohort.fixed_split == s).sum()) for s in "ab"} == {"a": 4000, "b": 4000}
    vent = datasets.load("physionet2012-vent", path=shared_data / "physionet2012.csv.gz")
    assert vent.labels.mean() == pytest.approx(0.471, abs=0.001)


def test_table_can_be_cut_to_one_set(shared_data: Path) -> None:
    cohort, summary = datasets.load_with_summary("physionet2012", path=shared_data, sets=("b",))
    assert len(cohort) == 4000
    assert "4,000 stays: in other sets" in str(summary)


def test_table_without_the_set_leaves_nobody(shared_data: Path) -> None:
    with pytest.raises(DataError, match=r"Left out: 8,000 stays: in other sets\."):
        datasets.load("physionet2012", path=shared_data, sets=("c",))


def test_tiers_are_those_of_the_shared_list(shared_data: Path) -> None:
    lines = (shared_data / "physionet2012-costs.csv").read_text().splitlines()[1:]
    wanted = [(name, group, float(cost)) for name, group, cost, _ in (x.split(",") for x in lines)]
    card = datasets.card("physionet2012")
    assert [(m.name, m.group, m.cost) for m in card.measurements] == wanted


def test_raw_records_reproduce_the_table(shared_data: Path) -> None:
    sample = shared_data / "physionet2012-raw-sample"
    if not sample.is_dir():
        pytest.skip(f"needs the raw records, which are not in '{sample}'")
    for name in ("physionet2012", "physionet2012-vent"):
        raw = datasets.load(name, path=sample)
        table = datasets.load(name, path=shared_data)
        table = table.subset(np.flatnonzero(np.isin(table.subjects, raw.subjects)))
        assert len(raw) == 60
        np.testing.assert_array_equal(raw.subjects, table.subjects)
        np.testing.assert_array_equal(raw.labels, table.labels)
        np.testing.assert_allclose(raw.values, table.values, rtol=1e-4)  # the table is rounded
        np.testing.assert_allclose(raw.context, table.context)


def test_other_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "physionet2012.csv"
    file.write_text("subject,set,visit\n1,a,0\n")
    with pytest.raises(DataError, match="not the PhysioNet 2012 table: it lacks"):
        datasets.load("physionet2012", path=file)
