"""`nocta compare` and `nocta optimum` keep their contract with scripts."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.exact import optimal_frontier, synthetic_task
from nocta.runs.optimum import CURVE_COLUMNS
from nocta.runs.results import COLUMNS

runner = CliRunner()
CLINIC = Path(__file__).parents[2] / "examples" / "clinic.csv"
QUICK = ["--jobs", "1", "--quiet", "--quick", "--predictor", "bayes"]


def invoke(*args: object) -> tuple[int, str]:
    found = runner.invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def test_a_comparison_from_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "d"
    args = ["compare", "synthetic", "--methods", "nothing,random", "--seeds", 1, "--out", out]
    status, shown = invoke(*args, *QUICK)
    assert status == 0
    assert "random" in shown
    assert "report.html" in shown
    assert "synthetic: 8,000 subjects, 80,000 visits in 10 slots" in shown
    names = {p.name for p in out.iterdir()}
    assert names >= {
        "results.csv",
        "summary.csv",
        "optimum.csv",
        "frontier.png",
        "report.html",
        "setup.json",
    }
    with (out / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["method"] for row in rows} == {"nothing", "random"}
    before = (out / "results.csv").read_bytes()
    assert invoke(*args, *QUICK)[0] == 0
    assert (out / "results.csv").read_bytes() == before
    status, shown = invoke(*args, "--points", 2, *QUICK)
    assert status == 2
    assert "n_points is 4 there and 2 here" in shown


def test_a_method_with_its_own_predictor_is_run_with_a_note(tmp_path: Path) -> None:
    few = ["--data-option", "n_subjects=80", "--option", "as.grid=[100]", "--seeds", 1]
    args = ["compare", "synthetic", "--methods", "nothing,as", *few, "--out", tmp_path / "d"]
    status, shown = invoke(*args, *QUICK)
    assert status == 0, shown
    assert "as trains its own predictor; --predictor does not apply to it." in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--methods", "statik"], "There is no method 'statik'. Did you mean 'static'?"),
        (["--methods", "static", "--preset", "best"], "use 'default' or 'paper'"),
        (["--methods", "static", "--availability", "no"], "use 'on-arrival' or 'known'"),
        (["--methods", "static", "--results", "no"], "use 'after-visit' or 'at-once'"),
        (["--methods", "static", "--budgets", "a,b"], "is not a list of numbers"),
        (["--methods", "static", "--budgets=-1"], "use a list, each a number of at least 0"),
        (["--methods", "static", "--split-column", "set"], "has no split of its own"),
        (["--methods", "static", "--fractions", ".5,.5,.5"], "three numbers above 0 that sum to 1"),
        (["--methods", "static", "--schema", "s.toml"], "--schema is for table files"),
        (["--methods", "static", "--seeds", "0"], "--seeds"),
        (
            ["--methods", "nocta-amortized", "-o", "nocta-amortized.hiden=32"],
            "Method 'nocta-amortized' has no option 'hiden'. Did you mean 'hidden'?",
        ),
        (
            ["--methods", "nocta-amortized", "-o", "nocta-amortized.hidden=many"],
            "hidden is 'many'; use a whole number of at least 1.",
        ),
        (
            ["--methods", "nocta-amortized", "-o", "nocta-amortised.hidden=3"],
            "which is not in --methods. Did you mean 'nocta-amortized'?",
        ),
        (["--methods", "static", "-o", "hidden=3"], "write METHOD.OPTION=VALUE"),
        (["--methods", "static", "-o", "static.hidden"], "write it as NAME=VALUE"),
        (["--methods", "random", "-o", "random.hidden=3"], "It has: none."),
    ],
)
def test_wrong_input_exits_with_status_two(args: list[str], message: str, tmp_path: Path) -> None:
    status, shown = invoke("compare", "synthetic", *args, "--out", tmp_path / "d", "--jobs", 1)
    assert status == 2
    assert message in shown.replace("│ ", "").replace(" │", "")
    assert not (tmp_path / "d" / "results.csv").exists()


def test_data_that_do_not_exist_exit_with_status_two(tmp_path: Path) -> None:
    for data, message in (
        ("synthetik", "Did you mean 'synthetic'"),
        ("no.csv", "'no.csv' does not exist"),
    ):
        status, shown = invoke("compare", data, "--methods", "static", "--out", tmp_path / "d")
        assert status == 2
        assert message in shown


def test_the_exact_filter_needs_a_finite_task(tmp_path: Path) -> None:
    status, shown = invoke(
        "compare", CLINIC, "--methods", "nothing", "--predictor", "bayes", "--out", tmp_path / "d"
    )
    assert status == 2
    assert "optimum of" in shown


def test_the_optimum_is_written_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nocta.runs.optimum.finite_task", lambda _: synthetic_task(horizon=2))
    out, figure = tmp_path / "new" / "f.csv", tmp_path / "f.png"
    status, shown = invoke("optimum", "synthetic", "--out", out, "--figure", figure, "--quiet")
    assert status == 0
    expected = optimal_frontier(synthetic_task(horizon=2))
    assert f"Wrote {len(expected)} vertices" in shown
    assert out.read_text("utf-8").startswith("cost,accuracy\n0,")
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    np.testing.assert_allclose(table, np.stack([expected.cost, expected.accuracy], 1), atol=1e-9)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_optimum_and_exact_noct_are_written_for_both_losses(tmp_path: Path) -> None:
    out, figure = tmp_path / "f.csv", tmp_path / "f.png"
    args = ("--data-option", "task=late-starts", "--noct", "--out", out, "--figure", figure)
    status, shown = invoke("optimum", "synthetic-family", *args, "--quiet")
    assert status == 0
    assert "Exact NOCT has 0.812 of the attainable gain in accuracy" in shown
    table = pd.read_csv(out)
    assert list(table.columns) == list(CURVE_COLUMNS)
    by_curve = table.groupby(["policy", "loss"])["cost"].agg(["min", "max"])
    assert by_curve["max"].round(2).to_dict() == {
        ("noct", "cross-entropy"): 5.54,
        ("noct", "error"): 5.02,
        ("optimum", "cross-entropy"): 3.73,
        ("optimum", "error"): 3.73,
    }
    assert (by_curve["min"] == 0).all()
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["pbc-stage", "--out", "f.csv"], "The optimum of 'pbc-stage' is not known"),
        (
            ["synthetic-family", "--data-option", "task=late", "--out", "f.csv"],
            "task is 'late'; use a whole number of at least 0 or 'late-starts'",
        ),
        (["synthetic", "--out", "."], "is a folder"),
        (
            ["synthetic", "--out", "f.csv", "--figure", "f.txt"],
            "has an unknown format; use one of .png",
        ),
    ],
)
def test_an_optimum_that_cannot_be_had_exits_at_once(args: list[str], message: str) -> None:
    status, shown = invoke("optimum", *args)
    assert status == 2
    assert message in shown


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "--methods", "nothing", "--seeds", 2, "--jobs", 1],
        ["fit", "--quick", "--method", "nocta-amortized"],
    ],
)
def test_a_class_that_a_part_never_shows_is_warned_of(args: list[object], tmp_path: Path) -> None:
    """Who is decompensated in the table is among the training subjects here."""
    import pandas as pd

    rows = pd.read_csv(CLINIC)
    rows = rows[rows["patient"] <= "P090"]
    ever = rows["patient"].isin(rows.loc[rows["stage"] == "decompensated", "patient"])
    number = rows["patient"].str[1:].astype(int)
    rows["part"] = np.where(ever | (number % 3 == 0), "train", np.where(number % 3, "val", ""))
    rows.loc[~ever & (number % 3 == 2), "part"] = "test"
    rows.to_csv(tmp_path / "clinic.csv", index=False)
    schema = CLINIC.with_name("clinic.schema.toml")
    command, *rest = args
    data = [tmp_path / "clinic.csv", "--schema", schema, "--split-column", "part"]
    status, shown = invoke(command, *data, *rest, "--out", tmp_path / "out", "--quiet")
    assert status == 0, shown
    for part in ("validation", "test"):
        said = f"Warning: class 'decompensated' has no labeled visit in the {part} part. Such"
        assert said in shown
    assert "training part" not in shown
