"""Results of record: tables are those of the jobs beside them, all audited, summaries of tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nocta.runs.results import read_results
from nocta.runs.store import JobStore
from nocta.runs.summary import summarize_results

RESULTS = Path(__file__).parents[2] / "results"
# Jobs that are only timed (`table-complexity`) are neither audited nor kept in git.
FOLDERS = sorted(
    path.parent for path in RESULTS.glob("**/jobs/") if "complexity-" not in path.parent.name
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_tables_are_those_of_the_jobs(folder: Path) -> None:
    records = JobStore(folder).records()
    written = read_results(folder / "results.csv").set_index(["method", "seed", "setting"])
    found = {(row.method, row.seed, row.setting): row for record in records for row in record.rows}
    assert set(found) == set(written.index)
    for column in ("cost", "accuracy", "ap", "cross_entropy", "n_subjects"):
        values = [getattr(found[key], column) for key in written.index]
        assert written[column].to_numpy(float) == pytest.approx(values, nan_ok=True), column
    for record in records:
        assert record.audit is not None
        assert record.audit.n_decisions > 0, record.job
        assert len(record.audit.points) == len(record.rows), record.job
        assert all("No leak found" in point.finding for point in record.audit.points)


SUMMARIES = sorted(
    path.parent for path in RESULTS.glob("*/summary.csv") if (path.parent / "results.csv").is_file()
)


@pytest.mark.parametrize("folder", SUMMARIES, ids=lambda path: path.name)
def test_summaries_are_those_of_the_tables(folder: Path) -> None:
    results = read_results(folder / "results.csv")
    written = pd.read_csv(folder / "summary.csv").fillna({"versus": ""})
    methods = list(dict.fromkeys(written["method"]))
    keys = ["quality", "method", "versus"]
    found = (
        summarize_results(results, methods)
        .set_index(keys)
        .loc[pd.MultiIndex.from_frame(written[keys])]
    )
    assert len(found) == len(written)
    for column in ("mean", "standard_error", "n_seeds", "cost_low", "cost_high"):
        values = found[column].to_numpy(float)
        assert written[column].to_numpy(float) == pytest.approx(
            values, rel=1e-4, abs=1e-6, nan_ok=True
        )


def test_there_are_records() -> None:
    assert {"pbc-event", "pbc-stage", "physionet2012"} <= {folder.name for folder in FOLDERS}
