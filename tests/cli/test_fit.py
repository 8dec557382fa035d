"""`nocta fit` writes a whole model, keeps its test subjects apart, and survives a kill."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import nocta
from nocta.cli.app import app
from nocta.core.cohort import Cohort
from nocta.methods.saving import load_saved
from nocta.model.archive import ARRAYS, read_manifest
from nocta.model.folders import PARTIAL
from nocta.model.nocta import NOCTA
from nocta.model.persistence import save_predictor
from nocta.predictors.bayes import BayesPredictor
from nocta.runs import fit_run
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.model_card import model_card
from small_models import QUICK_FIT

QUICK = ("--quick", "--quiet")


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def test_the_folder_holds_a_model_a_card_and_a_log(fitted_output: tuple[Path, str]) -> None:
    out, shown = fitted_output
    assert sorted(p.name for p in out.iterdir()) == [ARRAYS, "card.md", "log.json", "manifest.json"]
    assert "clinic: 70 subjects" in shown
    assert "kept aside for testing" in shown
    assert "On validation, cheapest first" in shown
    assert "best at epoch" in shown
    assert f"nocta plan {out}"[:20] in shown
    stages = json.loads((out / "log.json").read_text("utf-8"))["stages"]
    assert [s["stage"] for s in stages] == ["predictor", "estimator", "operating points"]
    assert len(stages[0]["runs"][0]["validation_losses"]) > 0


def test_the_manifest_says_how_the_model_was_made(fitted_model: Path) -> None:
    manifest = read_manifest(fitted_model)
    record = manifest["record"]
    assert record["dataset"] == "clinic"
    assert record["n_train"] + record["n_val"] + record["n_test"] == 70
    assert record["request"]["seed"] == manifest["seed"] == 0
    assert 1 <= len(record["cost_weights"]) <= 4
    costs = [point["cost"] for point in record["validation"]]
    assert costs == sorted(costs)
    assert manifest["schema"]["features"]["elastography"]["columns"] == ["stiffness", "attenuation"]
    assert next(iter(manifest["schema"]["features"])) == "drinks_per_week"


def test_the_card_names_data_costs_limits_and_privacy(fitted_model: Path) -> None:
    card = (fitted_model / "card.md").read_text("utf-8")
    for said in (
        "A quick run",
        "never used",
        "split by subject with seed 0",
        "| elastography | stiffness, attenuation | $60.00 |",
        "blood: $10.00",
        "no subject's data",
        "not a medical device",
        "### By context",
        "| sex = F | ",
        "every slot of the price list would be $482.00",
    ):
        assert said in card


def test_names_in_the_card_are_no_markup(fitted_model: Path) -> None:
    evil = "<script>alert(1)</script>|x"
    saved = load_saved(fitted_model)
    features = tuple(replace(f, name=evil + f.name) for f in saved.catalog_.features)
    catalog = replace(saved.catalog_, features=features, context=(evil,))
    record = {**saved.record_, "dataset": evil}
    groups = [{**group, "name": evil} for group in record["subgroups"]["groups"]]
    record["subgroups"] = {**record["subgroups"], "groups": groups}
    card = model_card(replace(saved, catalog_=catalog, classes_=(evil,), record_=record))
    assert "<script" not in card
    assert card.count("&lt;script") > 5


def test_test_subjects_are_never_touched(
    small_clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fitted_model: Path
) -> None:
    """Fitting again on data whose test subjects are nonsense gives the same arrays."""
    request = fit_run.FitRequest(
        fit_run.DataSource(str(small_clinic), str(small_clinic.with_name("clinic.schema.toml"))),
        method="nocta-amortized",
        quick=True,
    )
    cohort, _, _, test = request.parts()
    load = fit_run.DataSource.load

    def spoilt(self: fit_run.DataSource, seed: int) -> Cohort:
        found = load(self, seed)
        found.values[[s in set(test.subjects) for s in found.subjects]] *= -7.0
        return found

    monkeypatch.setattr(fit_run.DataSource, "load", spoilt)
    fit_run.fit_to_folder(request, tmp_path / "m")
    from nocta.runs.setup import _read

    _read.cache_clear()  # the spoilt cohort must not reach other tests
    assert (tmp_path / "m" / ARRAYS).read_bytes() == (fitted_model / ARRAYS).read_bytes()
    assert len(cohort) == 70


def test_a_stopped_fit_goes_on_without_doing_stages_again(
    small_clinic: Path, fitted_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"

    def killed(*args: Any, **options: Any) -> NOCTA:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NOCTA, "fit", killed)
        status, shown = invoke("fit", small_clinic, "--out", out, *QUICK_FIT)
    assert status == 130
    assert "continue with --resume" in shown
    assert [p.name for p in out.iterdir()] == [PARTIAL]

    status, shown = invoke("fit", small_clinic, "--out", out, *QUICK_FIT)
    assert status == 2
    assert "unfinished fit; continue it with --resume" in shown
    status, shown = invoke("plan", out, small_clinic)
    assert status == 2
    assert "continue it with --resume" in shown
    status, shown = invoke("fit", small_clinic, "--out", out, "--resume", "--seed", 1, *QUICK_FIT)
    assert status == 2
    assert "seed is 0 there and 1 here" in shown

    with monkeypatch.context() as patch:
        patch.setattr(fit_run, "fit_predictor", killed)  # must not be called again
        status, shown = invoke("fit", small_clinic, "--out", out, "--resume", *QUICK_FIT)
    assert status == 0, shown
    assert "predictor: kept from before." in shown
    assert (out / ARRAYS).read_bytes() == (fitted_model / ARRAYS).read_bytes()
    assert not (out / PARTIAL).exists()


def test_a_kill_after_the_estimator_keeps_it(
    small_clinic: Path, fitted_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m"
    record = nocta.load(fitted_model).record_
    finished = Checkpoint(out / PARTIAL, record["request"])
    predictor = nocta.load(fitted_model).planner_.predictor
    finished.write("estimator", lambda folder: shutil.copytree(fitted_model, folder))
    finished.write("predictor", lambda folder: save_predictor(predictor, folder))
    for stage in json.loads((fitted_model / "log.json").read_text("utf-8"))["stages"][:2]:
        finished.put(f"{stage['stage']}.json", stage)

    def never(*args: Any, **options: Any) -> NOCTA:
        raise AssertionError("fitted again")

    monkeypatch.setattr(NOCTA, "fit", never)
    status, shown = invoke("fit", small_clinic, "--out", out, "--resume", *QUICK_FIT)
    assert status == 0, shown
    assert "estimator: kept from before." in shown
    again, first = nocta.load(out).record_, record
    assert again["cost_weights"] == first["cost_weights"]
    assert again["fit_seconds"] == first["fit_seconds"]


def test_a_finished_model_is_not_overwritten(small_clinic: Path, fitted_model: Path) -> None:
    before = (fitted_model / "manifest.json").read_bytes()
    status, shown = invoke("fit", small_clinic, "--out", fitted_model, *QUICK_FIT)
    assert status == 2
    assert "holds a model already; replace it with --force" in shown
    status, shown = invoke("fit", small_clinic, "--out", fitted_model, "--resume", *QUICK_FIT)
    assert status == 0
    assert "finished already" in shown
    assert (fitted_model / "manifest.json").read_bytes() == before


def test_a_method_without_a_model_is_fitted_and_judged(small_clinic: Path, tmp_path: Path) -> None:
    out, results = tmp_path / "m", tmp_path / "r.csv"
    fit = ("fit", small_clinic, "--out", out, "--method", "first-visit", *QUICK)
    status, shown = invoke(*fit)
    assert status == 0, shown
    card = (out / "card.md").read_text("utf-8")
    for said in ("# `first-visit` for", '"n_slots": 1', "blood: $10.00", "no subject's data"):
        assert said in card
    status, shown = invoke(*fit, "--resume")
    assert "finished already" in shown
    status, shown = invoke("evaluate", out, small_clinic, "--points", 2, "--out", results)
    assert status == 0, shown
    table = pd.read_csv(results)
    names = [json.loads(setting).get("acquire") for setting in table["setting"]]
    assert names == ["nothing", None, None, "everything", "plan"]
    status, shown = invoke("evaluate", out, small_clinic, "--cost-weights", "1", "--out", results)
    assert status == 2
    assert "'first-visit' has no cost weight" in shown
    for command in (("plan", out, small_clinic), ("score", out, small_clinic, "--out", tmp_path)):
        status, shown = invoke(*command)
        assert status == 2
        assert "holds the method 'first-visit'; expected a model" in shown


def test_a_method_gets_the_predictor_that_was_asked_for(tmp_path: Path) -> None:
    data = ("synthetic", "--data-option", "n_subjects=80", "--predictor", "bayes")
    status, shown = invoke("fit", *data, "--out", tmp_path / "m", "--method", "everything", *QUICK)
    assert status == 0, shown
    assert isinstance(nocta.load(tmp_path / "m").predictor_.members[0], BayesPredictor)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "nocta-amortised"], "Did you mean 'nocta-amortized'?"),
        (["--preset", "papr"], "use 'default' or 'paper'"),
        (["--fractions", "a,b"], "not a list of numbers"),
        (["--fractions", ".5,.6,.1"], "sum to 1"),
        (["--split-column", "hospital"], "hospital"),
    ],
)
def test_impossible_options_are_refused(
    options: list[str], said: str, small_clinic: Path, tmp_path: Path
) -> None:
    status, shown = invoke("fit", small_clinic, "--out", tmp_path / "m", *options, *QUICK)
    assert status == 2
    assert said in shown
    assert not (tmp_path / "m").exists()


def test_a_folder_of_other_things_is_left_alone(small_clinic: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    status, shown = invoke("fit", small_clinic, "--out", tmp_path, "--force", *QUICK_FIT)
    assert status == 2
    assert "holds no model" in shown
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_class_that_cannot_be_learned_stops_the_fit_before_it_begins(
    small_clinic: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(small_clinic)
    ever = rows["patient"].isin(rows.loc[rows["stage"] == "decompensated", "patient"])
    rows["part"] = "train"
    rows.loc[rows["patient"] <= "P020", "part"] = "test"
    rows.loc[ever, "part"] = "val"
    rows.to_csv(tmp_path / "clinic.csv", index=False)
    schema = small_clinic.with_name("clinic.schema.toml")
    args = ["--schema", schema, "--split-column", "part", "--out", tmp_path / "m", *QUICK_FIT]
    status, shown = invoke("fit", tmp_path / "clinic.csv", *args)
    assert status == 2
    assert "validation, class 'decompensated': it occurs" in shown
    assert "but never in the training data" in shown
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fractions", ".7,.3"], "fractions are 0.7, 0.3; expected the sizes of train"),
        (["--fractions", ".7,.3,.5"], "three numbers above 0 that sum to 1"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["-o", "nope=1"], "has no option 'nope'"),
    ],
)
def test_what_cannot_be_fitted_leaves_no_folder(
    options: list[str], said: str, small_clinic: Path, tmp_path: Path
) -> None:
    status, shown = invoke("fit", small_clinic, "--out", tmp_path / "m", *options, *QUICK)
    assert status == 2
    assert said in shown
    assert not (tmp_path / "m").exists()
