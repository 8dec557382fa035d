"""`--constraint` on the command line: for one call, beside what the schema says."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from nocta.cli.app import app

PATIENT = Path(__file__).parents[2] / "examples" / "one-patient.csv"


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def test_a_plan_obeys(fitted_model: Path) -> None:
    args = ["plan", fitted_model, PATIENT, "--cost-weight", "1", "--json"]
    status, shown = invoke(*args)
    assert status == 0, shown
    assert json.loads(shown)["stop"]
    status, shown = invoke(*args, "--constraint", "always elastography at 3")
    found = json.loads(shown)
    assert (found["time"], found["features"]) == (3, ["elastography"])
    assert found["stopping"]["visits"] == {"3": ["elastography"]}


def test_conflicts_and_misspelled_names_are_refused(fitted_model: Path) -> None:
    args = ["plan", fitted_model, PATIENT, "--constraint"]
    status, shown = invoke(*args, "never elastografy")
    assert status == 2
    assert "Did you mean 'elastography'?" in shown
    status, shown = invoke(*args, "always elastography", "--constraint", "never elastography")
    assert status == 2
    assert "always acquired at slot 0, but never acquired there" in shown
    status, shown = invoke(*args, "elastography sometimes")
    assert status == 2
    assert "is not a constraint. Write 'always NAME'" in shown


def test_scores_obey_and_are_not_mixed_with_others(fitted_model: Path, tmp_path: Path) -> None:
    orders = tmp_path / "orders.csv"
    args = ["score", fitted_model, PATIENT, "--cost-weight", "1", "--jobs", "1", "--quiet"]
    always = ["--constraint", "always elastography at 3"]
    assert invoke(*args, "--out", orders)[0] == 0
    assert pd.read_csv(orders)["features"].isna().all()
    assert invoke(*args, "--out", tmp_path / "bound.csv", *always)[0] == 0
    assert pd.read_csv(tmp_path / "bound.csv")["features"].tolist() == ["elastography"]
    table = tmp_path / "scores.parquet"
    assert invoke(*args, "--out", table)[0] == 0
    status, shown = invoke(*args, "--out", table, *always)
    assert (status, "made with other settings" in shown) == (2, True), shown
    conflict = ["--constraint", "always elastography", "--constraint", "never elastography"]
    status, shown = invoke(*args, "--out", tmp_path / "none.csv", *conflict)
    assert (status, "but never acquired there" in shown) == (2, True), shown


def test_an_evaluation_obeys(fitted_model: Path, small_clinic: Path, tmp_path: Path) -> None:
    free, bound = tmp_path / "free.csv", tmp_path / "bound.csv"
    args = ["evaluate", fitted_model, small_clinic, "--cost-weights", "0", "--quiet", "--out"]
    given = ["--constraint", "never elastography", "--constraint", "at most 1 visits"]
    for out, more in ((free, []), (bound, given)):
        status, shown = invoke(*args, out, *more)
        assert status == 0, shown
    assert pd.read_csv(bound)["cost"].max() < 0.5 * pd.read_csv(free)["cost"].max()
    always = ["--constraint", "always elastography", "--budgets", "1"]
    status, shown = invoke(*args, tmp_path / "none.csv", *always)
    assert status == 2
    assert "A budget of 1 does not cover what the constraints always acquire" in shown


def test_a_comparison_obeys_and_leaves_the_exact_frontier_out(tmp_path: Path) -> None:
    out = tmp_path / "d"
    args = ["compare", "synthetic", "--methods", "nothing,everything", "--seeds", 1, "--out", out]
    few = ["--data-option", "n_subjects=80", "--jobs", 1, "--quiet", "--quick"]
    given = ["--constraint", "at most 2 visits", "--constraint", "always digit at 1"]
    status, shown = invoke(*args, *few, "--predictor", "bayes", *given)
    assert status == 0, shown
    cost = pd.read_csv(out / "results.csv").set_index("method")["cost"]
    assert cost["nothing"] == 1
    assert cost["everything"] <= 6
    assert not (out / "optimum.csv").exists()
    status, shown = invoke(*args, *few, "--predictor", "bayes")
    assert status == 2
    assert "constraints" in shown
