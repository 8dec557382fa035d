"""`nocta plan`: what is next for one patient, in words and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nocta
from nocta.cli.app import app

PATIENT = Path(__file__).parents[2] / "examples" / "one-patient.csv"
HEAD = "patient,years,age,sex,fatigue,stiffness\n"


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def as_json(*args: object) -> dict:  # type: ignore[type-arg]
    found = CliRunner().invoke(app, ["plan", *(str(a) for a in args), "--json"])
    assert found.exit_code == 0, found.output
    return dict(json.loads(found.stdout))


def test_it_says_what_is_next_and_why(fitted_model: Path) -> None:
    status, shown = invoke("plan", fitted_model, PATIENT, "--cost-weight", "0.0001")
    assert status == 0
    assert "N001, at visit 2 of 5 (0.5 years)" in shown
    assert "Prediction: stable" in shown
    assert "Next:" in shown
    assert "$" in shown
    assert "without it" in shown
    assert "runner-up" in shown
    assert "Cost weight 0.0001, as given." in shown


def test_it_reads_well_on_eighty_columns(fitted_model: Path) -> None:
    command = ["plan", str(fitted_model), str(PATIENT), "--cost-weight", "0"]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "80"}).stdout
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any("price   expected charge   expected loss   objective" in line for line in lines)
    found = as_json(fitted_model, PATIENT, "--cost-weight", "0")
    first, features = found["time"], found["features"]
    visit = next(line for line in lines if line.startswith("  best  ") and " of 5 (" in line)
    assert f"{first + 1} of 5 (" in visit
    assert visit.split(")")[1].split()[0].rstrip(",") == features[0]
    n_visits = len(found["plan"]["visits"]) + len(found["runner_up"]["visits"])
    assert len(lines) <= 2 * n_visits + 20  # no feature is wrapped to a line of its own


def test_the_saved_operating_point_is_the_default(fitted_model: Path) -> None:
    default = nocta.load(fitted_model).record_["default"]
    status, shown = invoke("plan", fitted_model, PATIENT)
    assert status == 0
    assert "the cheapest point within one standard error of the best on validation" in shown
    found = as_json(fitted_model, PATIENT)
    assert {"cost_weight": found["cost_weight"]} == default["setting"]


def test_json_holds_everything(fitted_model: Path) -> None:
    found = as_json(fitted_model, PATIENT, "--cost-weight", "0.0001")
    assert found["subject"] == "N001"
    assert found["now"] == 1
    assert found["currency"] == "$"
    assert found["classes"] == ["stable", "progressing", "decompensated"]
    assert sum(found["prediction"]) == pytest.approx(1, abs=1e-5)
    assert found["time"] > 1
    assert found["plan"]["expected_loss"] < found["stopping"]["expected_loss"]
    assert "drinks_per_week" not in found["features"]  # asked at the first visit only


def test_it_is_what_the_model_decides(fitted_model: Path) -> None:
    from nocta.tables.history_table import read_history

    model = nocta.load(fitted_model)
    table = read_history(PATIENT, model.schema_, model.catalog_)
    assert table.history.unavailable[0, 1, model.catalog_.feature_index("elastography")]
    expected = model.decide(table.history, 0.001, time=1).to_dict()
    found = as_json(fitted_model, PATIENT, "--cost-weight", "0.001")
    assert found["features"] == expected["features"]
    assert found["plan"]["objective"] == expected["plan"]["objective"]


def test_a_budget_limits_the_plan(fitted_model: Path) -> None:
    found = as_json(fitted_model, PATIENT, "--cost-weight", "0", "--budget", "20")
    assert found["plan"]["cost"] <= 20
    nothing = as_json(fitted_model, PATIENT, "--cost-weight", "0", "--budget", "0")
    assert nothing["stop"]
    status, shown = invoke("plan", fitted_model, PATIENT, "--cost-weight", "0", "--budget", "0")
    assert status == 0
    reason = "nothing is affordable within the budget of $0.00; the cheapest costs $6.00"
    assert f"acquire nothing more ({reason})" in shown
    assert (nothing["stop_reason"], nothing["cheapest"]) == ("budget", 6.0)
    dear = invoke("plan", fitted_model, PATIENT, "--cost-weight", "1e6", "--budget", "20")[1]
    assert "no plan within the budget of $20.00 is expected to be worth its cost" in dear


def test_a_new_patient_and_a_finished_one(fitted_model: Path, tmp_path: Path) -> None:
    new, over = tmp_path / "new.csv", tmp_path / "over.csv"
    new.write_text(HEAD + "N7,,50,M,,\n")
    over.write_text(HEAD + "N8,3.0,50,M,2,4.1\n")
    assert as_json(fitted_model, new)["now"] == -1
    assert "before the first visit" in invoke("plan", fitted_model, new)[1]
    assert "this was the last visit" in invoke("plan", fitted_model, over)[1]


def test_several_subjects_need_a_name(fitted_model: Path, tmp_path: Path) -> None:
    several = tmp_path / "several.csv"
    several.write_text(HEAD + "N7,0,50,M,3,\nN8,0,60,F,1,\n")
    status, shown = invoke("plan", fitted_model, several)
    assert status == 2
    assert "has 2 subjects; choose one with --subject" in shown
    assert as_json(fitted_model, several, "--subject", "N8")["subject"] == "N8"
    status, shown = invoke("plan", fitted_model, several, "--subject", "n8")
    assert status == 2
    assert "Did you mean 'N8'?" in shown


def test_mistakes_are_reported_with_their_place(fitted_model: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(HEAD + "N7,0,50,M,high,\n")
    status, shown = invoke("plan", fitted_model, wrong)
    assert status == 2
    assert "'high' (line 2" in shown
    assert invoke("plan", tmp_path / "nowhere", PATIENT)[0] == 2
    assert invoke("plan", fitted_model, tmp_path / "nothing.csv")[0] == 2
    assert "it is a folder. Name one file in it." in invoke("plan", fitted_model, tmp_path)[1]
    assert invoke("plan", fitted_model, PATIENT, "--cost-weight", "-1")[0] == 2
