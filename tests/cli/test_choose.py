"""`nocta choose` changes the default of a saved model, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import nocta
from nocta.cli.app import app
from nocta.methods.saving import load_saved
from nocta.model.archive import ARRAYS, read_manifest, write_record

PATIENT = Path(__file__).parents[2] / "examples" / "one-patient.csv"


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


@pytest.fixture
def model(fitted_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted_model, tmp_path / "model"))


def test_the_choice_is_saved_shown_on_the_card_and_used(
    model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    arrays, figure = (model / ARRAYS).read_bytes(), tmp_path / "f.png"
    args = ["--within", 0, "--metric", "cross_entropy", "--figure", figure]
    status, shown = invoke("choose", model, *args)
    assert status == 0, shown
    assert "validation subjects of the fit" in shown
    assert figure.stat().st_size > 1000
    entry = read_manifest(model)["record"]["default"]
    assert entry["part"] == "validation"
    assert "best cross_entropy" in entry["reason"]
    assert "best cross_entropy" in (model / "card.md").read_text("utf-8")
    assert (model / ARRAYS).read_bytes() == arrays
    again = nocta.load(model)
    assert again.default_point.setting == entry["setting"]
    planned = CliRunner().invoke(app, ["plan", str(model), str(PATIENT), "--json"])
    assert json.loads(planned.output)["cost_weight"] == again.default_point.cost_weight


def test_a_dry_run_and_a_request_that_fails_change_nothing(model: Path, small_clinic: Path) -> None:
    before = {file.name: file.read_bytes() for file in model.iterdir()}
    status, shown = invoke("choose", model, small_clinic, "--at-most-cost", 500, "--dry-run")
    assert (status, "the model stays as it is" in shown) == (0, True), shown
    asked = ["--risk", "error", "--at-most", 0.001]
    status, shown = invoke("choose", model, small_clinic, *asked)
    assert status == 2
    assert "The default stays as it was" in shown
    assert "only strictly valid on subjects that the fit has not used" in shown
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before


def test_other_subjects_are_all_used_and_test_subjects_only_if_named(
    model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    head, *lines = small_clinic.read_text("utf-8").splitlines()
    other = tmp_path / "other.csv"
    few = [f"X{line[1:]}" for line in lines if line.startswith("P0")]
    other.write_text("\n".join([head, *few]) + "\n", "utf-8")
    asked = ["--at-most-cost", 500, "--dry-run"]
    assert "all subjects of other data" in invoke("choose", model, other, *asked)[1]
    status, shown = invoke("choose", model, other, *asked, "--part", "validation")
    assert (status, "has no validation part" in shown) == (2, True), shown
    shown = invoke("choose", model, small_clinic, *asked, "--part", "test")[1]
    assert "subjects kept aside when the model was fitted" in shown


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "Ask for one of --sensitivity"),
        (["--sensitivity", 0.9], "say which are positive: --positive"),
        (["--at-most-cost", 9, "--part", "train"], "use 'validation', 'test' or 'all'"),
    ],
)
def test_impossible_requests_are_refused(model: Path, asked: list[object], said: str) -> None:
    status, shown = invoke("choose", model, *asked)
    assert status == 2
    assert said in shown


def test_a_budget_means_the_same_everywhere(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    """The default point's cost weight rules under a budget, which only limits it."""
    out, model = tmp_path / "r.csv", nocta.load(fitted_model)
    weight = model.default_point.cost_weight
    args = ["--budgets", "40", "--out", out, "--quiet"]
    assert invoke("evaluate", fitted_model, small_clinic, *args)[0] == 0
    judged = pd.read_csv(out).iloc[0]
    assert float(judged["cost_weight"]) == pytest.approx(weight)
    test = nocta.Cohort.from_table(small_clinic, model.schema_).split((0.7, 0.15, 0.15), 0)[2]
    assert float(judged["cost"]) == pytest.approx(model.rollout(test, budget=40.0).cost)
    limited = ["plan", str(fitted_model), str(PATIENT), "--json", "--budget", "40"]
    assert json.loads(CliRunner().invoke(app, limited).output)["cost_weight"] == weight


def test_folders_of_earlier_versions_still_load(model: Path) -> None:
    record = dict(read_manifest(model)["record"])
    for name in ("default", "references"):
        del record[name]
    for point in record["validation"]:
        del point["intervals"]
    write_record(model, record, {})
    saved = load_saved(model)
    assert "middle one" in saved.default_point.reason
    status, shown = invoke("plan", model, PATIENT)
    assert (status, "`nocta choose` sets one" in shown) == (0, True), shown
    assert invoke("choose", model, "--at-most-cost", 500)[0] == 0
    assert load_saved(model).default_point.note == ""
