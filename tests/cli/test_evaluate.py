"""`nocta evaluate` judges a saved model on subjects it was kept from."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import nocta
from nocta.cli.app import app
from nocta.runs import evaluate_run
from nocta.runs.results import COLUMNS


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def setting_name(row: dict[str, str]) -> object:
    """The cost weight of a row, or the name of an end of the curve."""
    setting = json.loads(row["setting"])
    return setting.get("cost_weight", setting.get("acquire"))


def test_the_models_own_weights_on_its_test_subjects(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    out, figure = tmp_path / "r.csv", tmp_path / "f.png"
    status, shown = invoke(
        "evaluate", fitted_model, small_clinic, "--out", out, "--figure", figure, "--quiet"
    )
    assert status == 0, shown
    record = nocta.load(fitted_model).record_
    found = rows(out)
    assert tuple(found[0]) == COLUMNS
    assert [setting_name(r) for r in found] == [
        "nothing",
        *record["cost_weights"],
        "everything",
        "plan",
    ]
    assert {r["split"] for r in found} == {"test"}
    assert {int(r["n_subjects"]) for r in found} == {record["n_test"]}
    assert [r["method"] for r in found] == ["nocta-amortized"] * (len(found) - 1) + ["static"]
    assert f"{record['n_test']} subjects kept aside" in shown
    assert "No leak found" in shown
    assert "mean AP ROC cross- weight cost accuracy (95 %) AUC entropy" in shown
    for name in ("cost", "accuracy", "ap", "roc_auc", "cross_entropy"):
        assert all(
            float(r[f"{name}_low"]) <= float(r[name]) <= float(r[f"{name}_high"]) for r in found
        )
    assert float(found[1]["ap_low"]) < float(found[1]["ap_high"])
    assert figure.stat().st_size > 1000


def test_a_report_of_one_model(fitted_model: Path, small_clinic: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "r.csv", tmp_path / "r.html"
    args = ["evaluate", fitted_model, small_clinic, "--out", out, "--quiet", "--points", 2]
    status, shown = invoke(*args, "--report", page)
    assert status == 0, shown
    assert f"Wrote {page}." in shown
    assert "Drift: The model " in shown
    text = page.read_text("utf-8")
    for said in (
        "NOCT-Amortized on clinic",
        "a subject gives average precision",
        "subjects kept aside when the model was fitted",
        "Promise kept?",
        "Does the model still fit?",
        "sex = F",
        "Sensitivity and specificity",
        "nocta evaluate",
        f"operating point is {nocta.load(fitted_model).default_point.reason}",
    ):
        assert said in text, said
    assert "Paired" not in text
    assert "seeds;" not in text
    nothing, cheap, *_, dear, everything, plan = rows(out)
    assert float(cheap["expected_cost"]) < float(dear["expected_cost"])
    assert float(cheap["realized_loss"]) > 0
    for row in (nothing, everything, plan):  # promised from validation
        assert float(row["expected_loss"]) > 0
    assert float(nothing["expected_cost"]) == 0 < float(everything["expected_cost"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.csv", "r.html"]
    status, shown = invoke(*args, "--report", tmp_path / "r.pdf")
    assert (status, "end its name in .html" in shown) == (2, True)


def test_an_older_model_has_no_training_summary(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    model = nocta.load(fitted_model)
    del model.record_["training"], model.record_["subgroups"]
    model.save(tmp_path / "old")
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.02"]
    status, shown = invoke("evaluate", tmp_path / "old", small_clinic, *args)
    assert status == 0, shown
    assert "Drift: not recorded: this model was fitted by a version that kept no" in shown


def test_rows_are_what_the_model_does(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.csv"
    args = ["--cost-weights", "0.001,0.01", "--out", out, "--quiet"]
    status, shown = invoke("evaluate", fitted_model, small_clinic, *args)
    assert status == 0, shown
    model = nocta.load(fitted_model)
    cohort = nocta.Cohort.from_table(small_clinic, model.schema_)
    test = cohort.split((0.7, 0.15, 0.15), seed=0)[2]
    found = rows(out)
    assert [r["cost_weight"] for r in found] == ["0.01", "0.001"]
    for row in found:
        done = model.rollout(test, float(row["cost_weight"]))
        assert float(row["cost"]) == pytest.approx(done.cost)
        expected = done.summary(threshold=model.record_["threshold"])
        for name in ("accuracy", "tests", "visits", "threshold", "detection_delay"):
            found_value = float(row[name]) if row[name] else math.nan
            assert found_value == pytest.approx(expected[name], nan_ok=True)


def test_budgets_and_weights_make_pairs(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.csv"
    args = ["--budgets", "30,10", "--cost-weights", "0,0.01", "--out", out, "--quiet"]
    assert invoke("evaluate", fitted_model, small_clinic, *args)[0] == 0
    found = [(float(r["budget"]), float(r["cost_weight"])) for r in rows(out)]
    assert found == [(10, 0.01), (10, 0), (30, 0.01), (30, 0)]
    assert all(float(r["cost"]) <= float(r["budget"]) for r in rows(out))


def test_fewer_points_keep_both_ends_and_the_default(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.csv"
    args = ["--points", 2, "--availability", "known", "--out", out, "--quiet"]
    assert invoke("evaluate", fitted_model, small_clinic, *args)[0] == 0
    kept = nocta.load(fitted_model).record_["cost_weights"]
    found = rows(out)
    default = nocta.load(fitted_model).default_point.cost_weight
    own = sorted({kept[0], default, kept[-1]}, reverse=True)
    assert [setting_name(r) for r in found] == ["nothing", *own, "everything", "plan"]
    assert {r["availability"] for r in found} == {"known"}


def test_other_data_are_used_whole_and_have_no_test_part(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    head, *lines = small_clinic.read_text("utf-8").splitlines()
    other = tmp_path / "other.csv"
    few = [line for line in lines if line.startswith("P00")]
    other.write_text("\n".join([head, *(f"X{line[1:]}" for line in few)]) + "\n", "utf-8")
    out = tmp_path / "r.csv"
    args = ["--out", out, "--quiet", "--cost-weights", "0.005"]
    status, shown = invoke("evaluate", fitted_model, other, *args, "--part", "test")
    assert status == 2
    assert "is not what the model was fitted on" in shown
    status, shown = invoke("evaluate", fitted_model, other, *args)
    assert status == 0, shown
    assert {r["split"] for r in rows(out)} == {"all"}
    assert rows(out)[0]["n_subjects"] == "9"


def test_all_subjects_of_its_own_data_come_with_a_warning(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.02", "--part", "all"]
    status, shown = invoke("evaluate", fitted_model, small_clinic, *args)
    assert status == 0
    assert "scores are optimistic" in shown
    assert "Drift: The model still fits these data" in shown
    assert rows(tmp_path / "r.csv")[0]["n_subjects"] == "70"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--part", "train"], "use 'test' or 'all'"),
        (["--cost-weights", "x"], "not a list of numbers"),
        (["--figure", "f.txt"], "has an unknown format; use one of .png"),
    ],
)
def test_impossible_options_are_refused(
    options: list[str], said: str, fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    args = ["--out", tmp_path / "r.csv", "--quiet", *options]
    status, shown = invoke("evaluate", fitted_model, small_clinic, *args)
    assert status == 2
    assert said in shown
    assert not (tmp_path / "r.csv").exists()


def test_data_of_another_study_are_refused(fitted_model: Path, tmp_path: Path) -> None:
    args = ["--out", tmp_path / "r.csv", "--quiet"]
    status, shown = invoke("evaluate", fitted_model, "synthetic", *args)
    assert status == 2
    assert "The data do not match the model" in shown
    assert "features: the model has drinks_per_week" in shown


def test_other_prices_keep_the_test_subjects(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    text = small_clinic.with_name("clinic.schema.toml").read_text("utf-8")
    costlier = tmp_path / "costlier.toml"
    costlier.write_text(text.replace("cost = 60.0", "cost = 6000.0"), "utf-8")
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.001"]
    assert invoke("evaluate", fitted_model, small_clinic, *args, "--schema", costlier)[0] == 0
    (row,) = rows(tmp_path / "r.csv")
    assert row["split"] == "test"
    assert float(row["cost"]) < 6000


def test_a_stopped_evaluation_keeps_its_points(
    fitted_model: Path, small_clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r.csv"
    args = ["evaluate", fitted_model, small_clinic, "--out", out, "--cost-weights", "0.01,0.001"]
    done: list[object] = []
    real = evaluate_run.rollout

    def stop_at_the_second(policy: object, cohort: object, **rest: object):  # type: ignore[no-untyped-def]
        if done:
            raise KeyboardInterrupt
        done.append(policy)
        return real(policy, cohort, **rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_run, "rollout", stop_at_the_second)
        status, shown = invoke(*args, "--quiet")
    assert status == 130
    assert "run the same command again to continue" in shown
    assert [r["cost_weight"] for r in rows(out)] == ["0.01"]
    first = rows(out)[0]
    status, shown = invoke(*args, "--quiet")
    assert status == 0
    assert "1 of 2 operating points were finished before" in shown
    assert rows(out)[0] == first
    assert [r["cost_weight"] for r in rows(out)] == ["0.01", "0.001"]
    assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("content", ["a,b\n1,2\n", ""])
def test_a_file_of_somebody_else_is_left_alone(
    fitted_model: Path, small_clinic: Path, tmp_path: Path, content: str
) -> None:
    notes = tmp_path / "notes.csv"
    notes.write_text(content)
    status, shown = invoke("evaluate", fitted_model, small_clinic, "--out", notes, "--quiet")
    assert status == 2
    assert "exists and is not a nocta results file; choose another --out" in shown
    assert notes.read_text() == content


def test_the_table_itself_is_never_replaced(fitted_model: Path, small_clinic: Path) -> None:
    before = small_clinic.read_bytes()
    status, shown = invoke("evaluate", fitted_model, small_clinic, "--out", small_clinic)
    assert (status, small_clinic.read_bytes()) == (2, before), shown


@pytest.fixture(scope="module")
def divided_model(fitted_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose table assigned every patient to a part, and patients to families."""
    model = nocta.load(fitted_model)
    model.schema_ |= {"split": "part", "group": "family"}
    folder = tmp_path_factory.mktemp("divided") / "model"
    model.save(folder)
    return folder


def test_other_data_need_not_say_how_they_are_divided(
    divided_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    head, *lines = small_clinic.read_text("utf-8").splitlines()
    few = [f"X{line[1:]}" for line in lines if line.startswith("P00")]
    other = tmp_path / "other.csv"
    other.write_text("\n".join([f"{head},parts", *(f"{line},x" for line in few)]) + "\n", "utf-8")
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.005"]
    status, shown = invoke("evaluate", divided_model, other, *args)
    assert status == 0, shown
    assert "Note: Columns not in the schema are ignored: parts." in shown
    assert invoke("plan", divided_model, other, "--subject", "X001")[0] == 0
    frame = pd.read_csv(other).drop(columns=["stage"])
    frame.to_parquet(tmp_path / "other.parquet")
    to = tmp_path / "scores.parquet"
    status, shown = invoke("score", divided_model, tmp_path / "other.parquet", "--out", to)
    assert status == 0, shown


def test_other_data_need_not_show_every_class(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    table = pd.read_csv(small_clinic).query("stage == 'stable' and years > 0.3")
    table.to_csv(tmp_path / "stable.csv", index=False)
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.005"]
    status, shown = invoke("evaluate", fitted_model, tmp_path / "stable.csv", *args)
    assert status == 0, shown
    table.assign(stage=None).to_csv(tmp_path / "none.csv", index=False)
    status, shown = invoke("evaluate", fitted_model, tmp_path / "none.csv", *args)
    assert status == 2
    assert "no row has a label, so there is nothing to judge by" in shown


def test_test_subjects_are_not_guessed_where_the_split_is_not_told(
    divided_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.005"]
    status, shown = invoke("evaluate", divided_model, small_clinic, *args)
    assert status == 2
    assert "with column 'part' as its split, but the table was read with no column" in shown
    assert invoke("evaluate", divided_model, small_clinic, *args, "--part", "all")[0] == 0


def test_another_split_of_the_same_data_is_refused(
    fitted_model: Path, small_clinic: Path, tmp_path: Path
) -> None:
    head, *lines = small_clinic.read_text("utf-8").splitlines()
    own = tmp_path / "clinic.csv"
    parts = [f"{line},{'train' if line < 'P030' else 'test'}" for line in lines]
    own.write_text("\n".join([f"{head},part", *parts]) + "\n", "utf-8")
    schema = tmp_path / "schema.toml"
    before = small_clinic.with_name("clinic.schema.toml").read_text("utf-8")
    schema.write_text(f'split = "part"\n{before}', "utf-8")
    args = ["--out", tmp_path / "r.csv", "--quiet", "--cost-weights", "0.005", "--schema", schema]
    status, shown = invoke("evaluate", fitted_model, own, *args)
    assert status == 2
    assert "with no column as its split, but the table was read with column 'part'" in shown
