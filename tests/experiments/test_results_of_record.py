"""The tables in `results/` are those of the jobs beside them, and every job was audited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nocta.experiments.results import read_results

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = sorted({path.parent for path in RESULTS.glob("**/jobs/")})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_tables_are_those_of_the_jobs(folder: Path) -> None:
    records = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("jobs/*.json"))]
    written = read_results(folder / "results.csv").set_index(["method", "seed", "setting"])
    found = {
        (row["method"], row["seed"], row["setting"]): row
        for record in records
        for row in record["rows"]
    }
    assert set(found) == set(written.index)
    for column in ("cost", "accuracy", "ap", "cross_entropy", "n_subjects"):
        values = [found[key][column] for key in written.index]
        assert written[column].to_numpy(float) == pytest.approx(values, nan_ok=True), column
    for record in records:
        audit = record["audit"]
        assert audit["n_decisions"] > 0, record["job"]
        assert len(audit["points"]) == len(record["rows"]), record["job"]
        assert all("No leak found" in point["finding"] for point in audit["points"])


def test_there_are_records() -> None:
    assert {"pbc-event", "pbc-stage", "physionet2012"} <= {folder.name for folder in FOLDERS}
