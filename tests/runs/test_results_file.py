"""results.csv keeps its columns, and files are whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nocta.core.errors import DataError, DataFileMissing
from nocta.model.files import write_atomically
from nocta.runs.results import (
    ADDED,
    COLUMNS,
    Row,
    is_results,
    make_row,
    plain,
    read_results,
    results_frame,
    write_results,
)


def a_row(**changes: Any) -> Row:
    keys = {
        "dataset": "d",
        "method": "m",
        "preset": "default",
        "availability": "on-arrival",
        "seed": 0,
        "split": "test",
    }
    measures = {
        "cost": 1.0,
        "accuracy": 0.5,
        "ap": None,
        "roc_auc": 0.5,
        "cross_entropy": 1.0,
        "n_subjects": 3,
        "n_labels": 9,
        "fit_seconds": 1.0,
        "rollout_seconds": 1.0,
    }
    return make_row(keys, changes.pop("setting", {}), **{**measures, **changes})


def test_the_columns_are_those_of_the_contract() -> None:
    assert ",".join(COLUMNS) == (
        "dataset,method,preset,availability,seed,split,cost_weight,budget,setting,"
        "cost,accuracy,ap,roc_auc,cross_entropy,n_subjects,n_labels,fit_seconds,rollout_seconds,"
        "tests,visits,threshold,detection_delay,detected,false_alarms,"
        "expected_loss,expected_cost,realized_loss,cost_low,cost_high,accuracy_low,accuracy_high,"
        "ap_low,ap_high,roc_auc_low,roc_auc_high,cross_entropy_low,cross_entropy_high"
    )


def test_results_survive_writing_and_reading(tmp_path: Path) -> None:
    setting = {"cost_weight": 0.25, "features": ["a, b", 'c"']}
    written = results_frame([a_row(setting=setting, accuracy=1 / 3), a_row()])
    write_results(written, tmp_path / "results.csv")
    found = read_results(tmp_path / "results.csv")
    assert list(found) == list(COLUMNS)
    assert found["accuracy"][0] == 1 / 3
    assert json.loads(found["setting"][0]) == setting
    assert found["cost_weight"][0] == 0.25
    assert np.isnan(found["ap"][0])
    assert np.isnan(found["budget"][1])


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    frame = results_frame([a_row(tests=4.0)]).drop(columns=list(ADDED))
    file.write_text(frame.to_csv(index=False, lineterminator="\n"), "utf-8")
    assert is_results(file)
    found = read_results(file)
    assert set(found) == set(COLUMNS)
    assert found[list(ADDED)].isna().all(axis=None)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("cost,accuracy\n1,2\n", "utf-8")
    with pytest.raises(DataError, match="lacks the column"):
        read_results(tmp_path / "other.csv")
    with pytest.raises(DataFileMissing, match="nocta compare"):
        read_results(tmp_path / "none.csv")


def test_files_of_earlier_versions_are_read_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    old = results_frame([a_row()]).drop(columns=list(ADDED))
    old.to_csv(path, index=False)
    assert is_results(path)
    found = read_results(path)
    assert list(found) == list(COLUMNS)
    assert np.isnan(found["expected_loss"][0])
    path.write_text("dataset,method\n", "utf-8")
    assert not is_results(path)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.txt"
    write_atomically(path, "old")

    def full_disk(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, "new")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_plain_data_hold_no_array_and_no_nan() -> None:
    found = plain({1: np.array([1.0, np.nan]), "a": (np.float64(2), np.int64(3), "x", None)})
    assert found == {"1": [1.0, None], "a": [2.0, 3, "x", None]}
    json.dumps(found, allow_nan=False)
