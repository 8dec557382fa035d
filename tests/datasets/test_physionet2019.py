"""PhysioNet 2019 on made-up hours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dataset_layouts import PSV_HEADER, write_psv
from numpy.typing import NDArray

from nocta import datasets
from nocta.core.errors import ConfigError, DataError, DataFileMissing
from nocta.datasets import physionet2019
from nocta.datasets._files import read_stacked
from nocta.runs.setup import DataSource

ABOUT = {"Age": 70.0, "Gender": 1, "Unit1": 1, "Unit2": 0, "HospAdmTime": -3.5}


def hour(i: int, label: int = 0, **values: float) -> dict[str, float]:
    return {**ABOUT, "ICULOS": i, "SepsisLabel": label, **values}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hours = [hour(i, label=int(i == 12), HR=80 + i) for i in range(1, 19)]
    write_psv(tmp_path / "training_setA", "p000001", hours)
    write_psv(tmp_path / "training_setB", "p100001", [hour(i) for i in range(1, 60)])
    return tmp_path


def test_hours_fall_into_slots_of_eight(folder: Path) -> None:
    cohort = datasets.load("physionet2019", path=folder)
    assert cohort.subjects.tolist() == ["p000001", "p100001"]
    assert cohort.values.shape == (2, 6, 34)
    heart = cohort.values[0, :, cohort.catalog.columns.index("HR")]
    assert heart[:3].tolist() == [84.5, 92.5, 97.5]  # medians of hours 1-8, 9-16, 17-18
    assert cohort.visits.tolist() == [[True] * 3 + [False] * 3, [True] * 6]


def test_every_column_of_the_files_is_known(folder: Path) -> None:
    catalog = datasets.load("physionet2019", path=folder).catalog
    known = (*catalog.columns, *catalog.context, "ICULOS", "SepsisLabel")
    assert list(known) == PSV_HEADER.split("|")


def test_any_positive_hour_makes_the_slot_positive(folder: Path) -> None:
    cohort = datasets.load("physionet2019", path=folder)
    assert cohort.labels[0].tolist() == [0, 1, 0, -1, -1, -1]
    assert cohort.labels[1].tolist() == [0] * 6


def test_sets_are_a_fixed_split(folder: Path) -> None:
    cohort = datasets.load("physionet2019", path=folder)
    assert cohort.fixed_split is not None
    assert cohort.fixed_split.tolist() == ["training_setA", "training_setB"]
    np.testing.assert_allclose(cohort.context[0], list(ABOUT.values()))
    source = DataSource("physionet2019", path=str(folder), split_column="folder")
    source.check_split_column()
    with pytest.raises(ConfigError, match=r"Its own split is by 'folder'"):
        replace(source, split_column="set").check_split_column()


def test_grid_is_configurable_and_late_hours_counted(folder: Path) -> None:
    cohort, summary = datasets.load_with_summary(
        "physionet2019", path=folder, slot_hours=4, n_slots=3
    )
    assert cohort.labels[0].tolist() == [0, 0, 1]
    assert cohort.slot_times == (4.0, 8.0, 12.0)
    assert f"{6 + 47} hours: after the first 12 of the stay" in str(summary)


def test_time_itself_is_no_feature(folder: Path) -> None:
    catalog = datasets.load("physionet2019", path=folder).catalog
    assert not {"ICULOS", "SepsisLabel"} & {*catalog.columns, *catalog.context}


def test_batches_do_not_change_the_result(folder: Path) -> None:
    def lines(body: bytes, position: NDArray[np.int64]) -> pd.DataFrame:
        return pd.DataFrame({"line": body.splitlines(), "position": position})

    paths, log = sorted(folder.rglob("*.psv")), datasets.LoadLog()
    whole = read_stacked(paths, physionet2019.HEADER, log, lines)
    assert whole["position"].nunique() == len(paths) > 1
    pd.testing.assert_frame_equal(
        read_stacked(paths, physionet2019.HEADER, log, lines, batch_size=1), whole
    )


def test_stay_unpacked_twice_counts_once(folder: Path) -> None:
    once = datasets.load("physionet2019", path=folder)
    write_psv(folder / "training_setA/training", "p000001", [hour(1, label=1, HR=200)])
    twice, summary = datasets.load_with_summary("physionet2019", path=folder)
    np.testing.assert_array_equal(twice.values, once.values)
    np.testing.assert_array_equal(twice.labels, once.labels)
    assert "1 files: copies of a stay" in str(summary)


def test_an_incomplete_set_is_warned_of_with_counts(folder: Path) -> None:
    _, summary = datasets.load_with_summary("physionet2019", path=folder)
    assert summary.warnings[0].startswith(
        "Found 1 files of training_setA (p000001.psv, ...); the whole set has 20,336."
    )
    assert summary.warnings[1].startswith("Found 1 files of training_setB (p100001.psv, ...)")
    log = datasets.LoadLog()
    physionet2019.warn_incomplete(
        ["p000001"], log, {"p0": ("training_setA", 1), "p1": ("training_setB", 1)}
    )
    assert not log.warnings
    assert log.notes == ["training_setB (p100001.psv, ...) is missing and was skipped"]


def test_foreign_file_is_named(folder: Path) -> None:
    (folder / "training_setA/p000002.psv").write_text("HR|SepsisLabel\n80|0\n")
    with pytest.raises(DataError, match=r"p000002\.psv' begins with 'HR\|SepsisLabel'"):
        datasets.load("physionet2019", path=folder)


def test_empty_folder_asks_for_the_files(tmp_path: Path) -> None:
    with pytest.raises(DataFileMissing, match="training_setA"):
        datasets.load("physionet2019", path=tmp_path)


def test_impossible_grid_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="slot_hours is 0"):
        datasets.load("physionet2019", path=folder, slot_hours=0)
