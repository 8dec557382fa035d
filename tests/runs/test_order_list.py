"""CSV in, CSV out: a line for every subject, in the words of the table."""

from __future__ import annotations

import csv
from copy import copy
from pathlib import Path

import pandas as pd
import pytest

from nocta.core.errors import ConfigError, DataError
from nocta.model.nocta import NOCTA
from nocta.runs.score_run import ScoreRequest, score_cohort

GRID = [0.0, 90.0, 180.0, 280.0]
LAST = ["features", "cost", "prediction", "probability"]
PEOPLE = pd.DataFrame(
    {
        "subject": ["Ä1", "B2", "B2", "C3"],
        "on": ["10.01.2025", "01.02.2025", "03.05.2025", "10.11.2025"],
        "age": [60, 71, 71, 55],
        "marker": ["0,5", "", "1,5", "0,25"],
        "volume": ["", "", "unavailable", ""],
        "thickness": ["", "", "unavailable", ""],
    }
)


@pytest.fixture
def model(tiny_models: dict[str, NOCTA], tmp_path: Path) -> Path:
    found = copy(tiny_models["amortized"])
    clock = {"time": "on", "grid": GRID, "time_unit": "days", "date_order": "dmy"}
    found.schema_ = {k: v for k, v in found.schema_.items() if k not in ("visit", "n_visits")}
    found.schema_ |= clock
    found.save(tmp_path / "model")
    return tmp_path / "model"


def table(folder: Path, people: pd.DataFrame = PEOPLE) -> Path:
    people.to_csv(folder / "people.csv", sep=";", index=False, encoding="cp1252")
    return folder / "people.csv"


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_an_order_list_names_dates_and_features(model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    out = tmp_path / "orders.csv"
    request = ScoreRequest.of(model, 0.0)
    assert score_cohort(request, table(tmp_path), out, n_jobs=1, say=said.append) == 3
    lines = read(out)
    assert list(lines[0]) == ["subject", "visit", "days", "date", *LAST]
    assert [line["subject"] for line in lines] == ["Ä1", "B2", "C3"]
    first = lines[0]
    assert (first["visit"], first["days"], first["date"]) == ("2", "90", "2025-04-10")
    assert set(first["features"].split("; ")) <= {"blood", "scan"}
    assert float(first["cost"]) > 0
    assert float(first["probability"]) >= 0.5
    assert not (tmp_path / ".orders.csv.parts").exists()
    assert any("decimal commas" in note for note in said)


def test_it_is_what_the_parquet_file_says(model: Path, tmp_path: Path) -> None:
    request = ScoreRequest.of(model, 0.003)
    for name in ("orders.csv", "orders.parquet"):
        score_cohort(request, table(tmp_path), tmp_path / name, n_jobs=1)
    lines, scores = read(tmp_path / "orders.csv"), pd.read_parquet(tmp_path / "orders.parquet")
    for line, (_, row) in zip(lines, scores.iterrows(), strict=True):
        assert line["features"] == "; ".join(row["features"])
        assert line["visit"] == ("" if row["stop"] else str(int(row["time"]) + 1))
        assert line["prediction"] == row["predicted"]


def test_who_is_after_the_schedule_is_counted_and_left_alone(model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    late = PEOPLE.assign(on=["10.01.2025", "01.02.2025", "03.05.2026", "10.11.2025"])
    out = tmp_path / "orders.csv"
    score_cohort(ScoreRequest.of(model, 0.0), table(tmp_path, late), out, n_jobs=1, say=said.append)
    assert any("1 row(s) are left out: they are beyond the schedule" in note for note in said)
    line = read(out)[1]
    assert (line["visit"], line["date"], line["features"], line["cost"]) == ("", "", "", "0.00")


def test_a_file_is_never_replaced_unasked(model: Path, tmp_path: Path) -> None:
    request, people = ScoreRequest.of(model, 0.0), table(tmp_path)
    out = tmp_path / "orders.csv"
    score_cohort(request, people, out, n_jobs=1)
    with pytest.raises(ConfigError, match=r"exists\. Replace it with --force"):
        score_cohort(request, people, out, n_jobs=1)
    score_cohort(request, people, out, n_jobs=1, force=True)
    mine = tmp_path / "mine.csv"
    mine.write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="was not made by nocta score"):
        score_cohort(request, people, mine, n_jobs=1, force=True)
    for name in ("orders.xlsx", "orders.csv.gz", "orders.txt"):
        with pytest.raises(ConfigError, match=r"End --out in .parquet or .csv"):
            score_cohort(request, people, tmp_path / name, n_jobs=1)
        assert not (tmp_path / name).exists()


def test_a_table_that_lacks_a_column_is_refused_unless_allowed(model: Path, tmp_path: Path) -> None:
    people = table(tmp_path, PEOPLE.drop(columns=["thickness", "volume", "age"]))
    out = tmp_path / "orders.csv"
    with pytest.raises(DataError, match="it has no column 'volume', 'thickness', 'age', which the"):
        score_cohort(ScoreRequest.of(model, 0.0), people, out, n_jobs=1)
    assert not out.exists()
    said: list[str] = []
    allowed = ScoreRequest.of(model, 0.0, allow_missing=True)
    assert score_cohort(allowed, people, out, n_jobs=1, say=said.append) == 3
    assert any("no column 'volume'; it counts as unavailable so far" in note for note in said)
