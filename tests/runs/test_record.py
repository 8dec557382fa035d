"""Records of jobs: every committed file is read and written again unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nocta.core.errors import ConfigError
from nocta.runs.record import JobRecord
from nocta.runs.results import ADDED, COLUMNS

RESULTS = Path(__file__).parents[2] / "results"
FILES = sorted(RESULTS.glob("**/jobs/*.json"))


@pytest.fixture
def content() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILES[0].read_text("utf-8"))
    return found


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=str)
def test_committed_jobs_survive_reading_and_writing(folder: Path) -> None:
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        record = JobRecord.read(content, path)
        written = record.to_dict()
        for entry in (*written["rows"], *written["details"]):
            for name in ADDED:  # not in files of earlier versions
                assert entry.pop(name) is None
        assert json.dumps(written, allow_nan=False) == json.dumps(content), path
        assert record.job.name == path.stem
        assert len(record.rows) == len(record.details)
        assert tuple(vars(record.rows[0])) == COLUMNS


def test_numbers_that_are_not_defined_are_nan(content: dict[str, Any]) -> None:
    content["details"][0]["roc_auc"] = content["rows"][0]["ap"] = None
    record = JobRecord.read(content)
    assert str(record.details[0].roc_auc) == str(record.rows[0].ap) == "nan"
    assert record.to_dict()["rows"][0]["ap"] is None


def test_files_of_earlier_versions_are_read(content: dict[str, Any]) -> None:
    del content["tuning"], content["details"][0]["together"]
    del content["audit"]["points"], content["audit"]["n_points"]
    record = JobRecord.read(content)
    assert record.tuning is None
    assert record.details[0].together == []
    assert record.audit is not None
    assert (record.audit.n_points, record.audit.points) == (1, [])


def test_keys_of_later_versions_are_ignored(content: dict[str, Any]) -> None:
    content["later"] = content["job"]["later"] = 1
    assert JobRecord.read(content).job.name == FILES[0].stem


def test_a_damaged_record_is_refused_with_its_place(content: dict[str, Any]) -> None:
    del content["rows"][0]["cost"]
    content["cohort"]["catalog"] = {"features": []}
    with pytest.raises(ConfigError, match=r"'a.json' is not .*rows\.0\.cost: Field required \(2 "):
        JobRecord.read(content, "a.json")
