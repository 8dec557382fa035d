"""Methods on the family of tasks: what is judged, what is kept, and what the pages say."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import variants
from nocta.core.errors import ConfigError
from nocta.exact.yardstick import Yardstick
from nocta.runs.optimum import curve_rows, read_curves
from nocta.runs.record import Job
from nocta.runs.setup import Setup
from variants_page import example_lines, family_lines, replaced
from variants_tables import NOCT, judged, summary

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results/variants"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Yardstick]:
    """The exact curves of record."""
    table = pd.read_csv(RESULTS / "exact.csv", dtype={"task": str})
    found = {}
    for task, rows in table.groupby("task", sort=False):
        file = tmp_path_factory.mktemp("exact") / "f.csv"
        rows.drop(columns="task").to_csv(file, index=False)
        found[str(task)] = read_curves(file)
    return found


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["variants.py", *map(str, arguments)])
    variants.main()


def test_a_job_is_run_on_the_task_that_was_named(tmp_path: Path) -> None:
    setup = Setup(variants.source("6", 200), n_points=2, predictor="bayes", audit_subjects=0)
    rows = variants.measure(setup, [Job("random", 0), Job("nothing", 0)], tmp_path, 1)
    assert set(rows["method"]) == {"random", "nothing"}
    assert set(rows["dataset"]) == {"synthetic-family-6"}
    assert set(rows["n_subjects"]) == {98}


def test_rows_are_judged_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(setup: Setup, jobs: list[Job], folder: Path, n_jobs: int | None) -> pd.DataFrame:
        points = {"cost": [0.0, 2.0], "accuracy": [0.62, 0.8], "cross_entropy": [0.7, 0.4]}
        rows = [pd.DataFrame(points).assign(method=job.label, seed=job.seed) for job in jobs]
        return pd.concat(rows).assign(setting="{}", ap=0.5, fit_seconds=1.0, rollout_seconds=1.0)

    monkeypatch.setattr(variants, "measure", measured)
    arguments = ["--methods", "random,static", "--tasks", "6", "--out", tmp_path]
    run(monkeypatch, *arguments, "--subjects", 400)
    table = pd.read_csv(tmp_path / "variants.csv")
    assert table["method"].tolist() == ["random", "random", "static", "static"]
    assert "ap" not in table.columns
    assert table["gain_accuracy"].isna().tolist() == [True, False, True, False]
    assert (table["noct_gain_accuracy"].dropna() > table["gain_accuracy"].dropna()).all()
    shares = pd.read_csv(tmp_path / "summary.csv")
    assert set(shares["method"]) == {"random", "static", NOCT}
    assert set(shares["task"]) == {6}
    text = (tmp_path / "variants.md").read_text("utf-8")
    assert "| 6 | 2 digits (cost 0.5), countdowns from 1 or 2 (cost 1)" in text
    assert "| task | exact NOCT | random | static subset |" in text

    monkeypatch.setattr(variants, "measure", lambda *_: pytest.fail("measured again"))
    run(monkeypatch, *arguments, "--subjects", 400)
    assert (tmp_path / "variants.md").read_text("utf-8") == text
    # Rows of a task that is not named this time stay in every table.
    monkeypatch.setattr(variants, "measure", measured)
    other = ["--methods", "random", "--tasks", "9", "--subjects", 400, "--out", tmp_path]
    run(monkeypatch, *other)
    for name in ("variants.csv", "summary.csv"):
        assert set(pd.read_csv(tmp_path / name)["task"]) == {6, 9}
    with pytest.raises(ConfigError, match=r"rows with subjects = 400; this run has 500"):
        run(monkeypatch, *arguments, "--subjects", 500)


def test_only_missing_jobs_are_left() -> None:
    table = pd.DataFrame({"task": ["1", "2"], "method": "static", "seed": [0, 0]})
    jobs = [Job("static", 0), Job("static", 1), Job("random", 0)]
    assert variants.left(table, "1", jobs) == jobs[1:]
    assert variants.left(table, "3", jobs) == jobs
    assert variants.left(pd.DataFrame(), "1", jobs) == jobs


def test_exact_policies_judge_themselves_as_the_optimum(recorded: dict[str, Yardstick]) -> None:
    late = recorded["late-starts"]
    optimum = [curve for curve in late.curves if curve.policy == "optimum"][:1]
    rows = pd.DataFrame(curve_rows(optimum)).assign(
        task="late-starts", method="optimal", seed=0, setting="", subjects=1, points=1,
        fit_seconds=0.0, rollout_seconds=0.0,
    )  # fmt: skip
    table = judged(rows, {0: late})
    assert table["gain_accuracy"].dropna().tolist() == pytest.approx([1.0] * (len(table) - 1))
    assert (table["noct_gain_accuracy"].dropna() < 0.9).all()
    found = summary(table, late, {0: late}).query("measure == 'accuracy'").set_index("method")
    assert found.loc["optimal", "mean"] == pytest.approx(1.0, abs=1e-6)
    assert found.loc[NOCT, "mean"] == pytest.approx(0.812, abs=1e-3)
    assert found.loc["optimal", "middle"] == 3
    assert found.loc["optimal", "widest"] == pytest.approx(1.5 / 3.7346, abs=1e-4)


@pytest.mark.parametrize("task", ["late-starts", "6", "9"])
def test_the_curves_of_record_are_what_is_computed(
    task: str, recorded: dict[str, Yardstick]
) -> None:
    computed = variants.compute_yardstick(variants.source(task, 1))
    for ours, theirs in zip(recorded[task].curves, computed.curves, strict=True):
        assert ours.points == pytest.approx(theirs.points, abs=1e-4)
        assert ours.cross_entropy == pytest.approx(theirs.cross_entropy, abs=1e-4)


def test_the_page_has_the_numbers_of_record(recorded: dict[str, Yardstick]) -> None:
    page = variants.PAGE if variants.PAGE.is_file() else ROOT / variants.PAGE
    text = page.read_text("utf-8")
    for line in (*example_lines(), *family_lines(recorded)):
        assert line in text, "Run: python benchmarks/variants.py --exact"


def test_a_page_without_markers_is_refused() -> None:
    text = "a\n<!-- x: written by benchmarks/variants.py -->\nold\n<!-- end of x -->\nb"
    assert replaced(text, "x", ["new"]).splitlines()[2] == "new"
    with pytest.raises(SystemExit, match="no markers 'y'"):
        replaced(text, "y", ["new"])
