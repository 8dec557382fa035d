"""`nocta demo`: our rows beside the paper's and the optimum's."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli import demo
from nocta.cli.app import app
from nocta.runs.compare import Comparison, compare, make_jobs
from nocta.runs.record import Job
from nocta.runs.setup import DataSource, Setup


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The reference methods only, with the exact filter: no training."""
    setup = Setup(source=DataSource("synthetic"), predictor="bayes").as_quick()
    jobs = make_jobs(["random", "static"], [0])
    return compare(setup, jobs, tmp_path_factory.mktemp("demo"), n_jobs=1)


def test_the_papers_rows_stand_beside_ours(comparison: Comparison) -> None:
    rows = demo.demo_rows(comparison)
    assert set(rows["method"]) == {
        "random",
        "static",
        "paper's nocta-contrastive",
        "paper's nocta-amortized",
    }
    printed = rows[(rows["method"] == "paper's nocta-amortized") & (rows["point"] != "mean")]
    assert printed["accuracy"].tolist() == [0.512, 0.603, 0.640, 0.666]
    assert (rows["ratio"] <= 1.02).all()  # nobody beats the optimum but by luck
    assert rows["optimum"].between(0.3, 1.0).all()


def test_the_command_prints_the_table_and_names_the_report(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def instead(setup: Setup, jobs: list[Job], out: Path, **options: object) -> Comparison:
        asked.update(setup=setup, methods=[j.method for j in jobs], out=out)
        return comparison

    monkeypatch.setattr(import_module("nocta.runs.compare"), "compare", instead)
    found = CliRunner().invoke(app, ["demo", "--quick", "--out", str(tmp_path / "d")])
    shown = " ".join(found.output.split())
    assert found.exit_code == 0, shown
    assert asked["methods"] == ["nocta-amortized", "static", "random"]
    assert asked["setup"] == Setup(source=DataSource("synthetic")).as_quick()
    assert "best possible at the same cost" in shown
    assert "0.512" in shown
    assert "report.html" in shown
