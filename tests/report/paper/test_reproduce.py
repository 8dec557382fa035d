"""Recipes from end to end: run, continued, written; failures are reported, not fatal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.core.errors import ConfigError
from nocta.exact import solve_yardstick, synthetic_task
from nocta.report.paper import Recipe, Request, find_recipe, reproduce
from nocta.report.paper.complexity import (
    QUICK,
    Scale,
    Size,
    complexity_page,
    exponent,
    write_cohort,
)
from nocta.report.paper.recipes import Arm
from nocta.report.paper.theory import noct_sheet
from nocta.runs.learning import Learning
from nocta.runs.setup import DataSource

runner = CliRunner()


class Plain(Recipe):
    """A recipe that compares methods without training."""

    def arms(self, preset: str) -> list[Arm]:
        return [Arm(name, {}, {}, name) for name in ("random", "static")]


def plain(kind: str = "table", **options) -> Recipe:
    return Plain("table-plain", "synthetic", "a plain table", kind=kind, n_points=3, **options)  # type: ignore[arg-type]


def invoke(*args: object) -> tuple[int, str]:
    found = runner.invoke(app, ["reproduce", *(str(a) for a in args)])
    return found.exit_code, " ".join(found.output.split())


def test_a_table_is_run_written_and_continued(small: Request) -> None:
    page = reproduce(plain(), small)
    names = {path.name for path in page.write(small.out)}
    assert {"table-plain.md", "table-plain.csv", "table-plain.html"} <= names
    assert "reproduce table-plain" in (small.out / "table-plain.html").read_text("utf-8")
    (folder,) = (small.out / "runs").iterdir()
    kept = {path: path.stat().st_mtime_ns for path in (folder / "jobs").glob("*.json")}
    assert len(kept) == 4
    again = reproduce(plain(), small)
    assert again.markdown() == page.markdown()
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())


def test_other_jobs_of_the_folder_are_left_out(small: Request) -> None:
    reproduce(plain(), replace(small, n_seeds=2))
    page = reproduce(plain(), replace(small, n_seeds=1))
    assert set(page.sheets[""][1].frame["seeds"]) == {1}


def here(learning, function, *args):
    """Learn in this process, where methods are patched."""
    return function(learning, *args)


def test_a_failed_job_is_reported_and_the_rest_goes_on(
    small: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self, *args, **rest):
        raise RuntimeError("out of ink")

    monkeypatch.setattr("nocta.methods.reference.method.Random.fit", fail)
    monkeypatch.setattr(Learning, "_elsewhere", here)
    page = reproduce(plain(), replace(small, n_seeds=1))
    assert page.failures == ["random, seed 0: RuntimeError: out of ink"]
    assert set(page.sheets[""][-1].frame["method"]) == {"static"}
    assert "1 job(s) failed" in page.markdown()
    monkeypatch.undo()
    assert not reproduce(plain(), replace(small, n_seeds=1)).failures


def test_nothing_finished_is_an_error(small: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Random", "Static"):
        monkeypatch.setattr(f"nocta.methods.reference.method.{name}.fit", None)
    monkeypatch.setattr(Learning, "_elsewhere", here)
    with pytest.raises(ConfigError, match="No job of 'table-plain' finished on 'synthetic'"):
        reproduce(plain(), replace(small, n_seeds=1))


def test_data_that_are_not_there_are_drawn_as_published(
    small: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NOCTA_DATA", raising=False)
    load = DataSource.load
    monkeypatch.setattr(DataSource, "load", lambda self, seed: load(self, seed).subset(range(60)))
    page = reproduce(
        plain("frontiers", data=("synthetic", "adni")), replace(small, sources=(), n_seeds=1)
    )
    shown = [axes for axes in page.figures[""].axes if axes.get_visible()]
    titles = [axes.get_title(loc="left") for axes in shown]
    assert titles == ["synthetic", "", "adni (as published)"]  # the second: shares of the optimum
    assert "`nocta datasets adni` says how to get it" in page.markdown()


def test_data_that_are_not_there_are_named_in_tables(
    small: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NOCTA_DATA", raising=False)
    load = DataSource.load
    monkeypatch.setattr(DataSource, "load", lambda self, seed: load(self, seed).subset(range(60)))
    page = reproduce(plain(data=("synthetic", "adni")), replace(small, sources=(), n_seeds=1))
    assert "adni is left out because it is not on this machine" in page.markdown()
    assert "synthetic is left out" not in page.markdown()


def test_data_that_were_asked_for_must_be_there(
    small: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NOCTA_DATA", raising=False)
    for args in (["table-adni"], ["figure-roc"], ["table-beta", "--data", "oai-klg"]):
        status, shown = invoke(*args, "--quick", "--quiet", "--out", tmp_path / "o")
        assert status == 2
        assert "adni" in shown.lower() or "oai" in shown.lower()
        assert "http" in shown


def test_dynamics_show_what_is_acquired_together(small: Request) -> None:
    page = reproduce(plain("dynamics"), replace(small, n_seeds=1))
    figure = page.figures[""]
    assert len(figure.axes) == 6
    assert figure.axes[4].patches  # arrows
    together = page.sheets[""][1].frame
    assert (together["time"].astype(float) < together["later_time"].astype(float)).all()
    assert page.sheets[""][0].frame.groupby("method")["share_last_request"].sum().to_list() == (
        pytest.approx([1.0, 1.0])
    )


def test_theory_holds_on_every_task(tmp_path: Path) -> None:
    page = reproduce(find_recipe("theory"), Request(tmp_path, quick=True))
    frame = page.sheets[""][0].frame
    assert set(frame["holds"]) == {"yes"}
    assert (frame[["bound_least", "replan_least"]] >= 0).all(axis=None)
    assert frame["bound_most"].max() > 0


def test_exact_planning_is_set_beside_the_optimum() -> None:
    table = noct_sheet(solve_yardstick(synthetic_task(horizon=4))).frame
    assert set(table["loss"]) == {"error", "cross-entropy"}
    assert not table.duplicated(["loss", "cost"]).any()
    assert (table["share_of_optimum"] <= 1 + 1e-9).all()
    assert table["share_of_optimum"].max() == pytest.approx(1.0)
    assert table["gain_accuracy"].max() == pytest.approx(1.0)
    assert (table["gain_cross_entropy"].dropna() <= 1 + 1e-9).all()
    assert table["cost"].max() > table["cost"].min() == 0.0


def test_growth_is_measured_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = {"L": (3, 4), "O": (5, 20), "n": (40, 60)}
    tiny = partial(complexity_page, scale=Scale(axes, Size(3, 2, 5, 40), n_val=20, n_test=20))
    monkeypatch.setattr("nocta.report.paper.make.complexity_page", tiny)

    class Few(Recipe):
        @property
        def rows(self):
            return [row for row in super().rows if row.method == "nocta-amortized"]

    recipe = Few("table-complexity", "complexity", "growth", kind="complexity", data=())
    page = reproduce(recipe, Request(tmp_path, quick=True))
    growth, times = (sheet.frame for sheet in page.sheets[""])
    assert growth["grows_with"].tolist() == ["L", "|O|"]
    assert growth["paper_exponent"].tolist() == [2, 1]
    assert (times["milliseconds"] > 0).all()
    assert page.notes[0].startswith("**Quick run**")
    again = reproduce(recipe, Request(tmp_path, quick=True))
    pd.testing.assert_frame_equal(again.sheets[""][1].frame, times)


def test_exponents_are_slopes_of_logarithms() -> None:
    assert exponent([1, 2, 4], [3.0, 6.0, 12.0]) == pytest.approx(1.0)
    assert exponent([2], [1.0]) != exponent([2], [1.0])  # NaN: one size has no slope


def test_drawn_cohorts_have_the_size_asked_for(tmp_path: Path) -> None:
    source = write_cohort(QUICK.base, tmp_path)
    train, val, test = source.split(source.load(0), 0)
    assert (len(train), train.n_times, train.catalog.n_features) == (60, 4, 2)
    assert (len(val), len(test)) == (60, 120)


def test_the_list_names_everything() -> None:
    status, shown = invoke("--list")
    assert status == 0
    assert "figure-dynamics" in shown
    assert "Table 11" in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "--list"),
        (["table-adn"], "Did you mean 'table-adni'"),
        (["table-8"], "Table 8 is 'table-synthetic'"),
        (["figure-3"], "Figure 3 is 'figure-performance'"),
        (["theory", "--data", "pbc-stage"], "makes its own tasks"),
        (["table-kappa", "--path", "x", "--data", "adni", "--data", "oai-klg"], "one data set"),
        (["table-kappa", "--from", "nowhere"], "results.csv' not found"),
        (["table-kappa", "--preset", "default"], "has no option 'n_top_plans'"),
    ],
)
def test_wrong_input_exits_with_status_two(args: list[str], message: str, tmp_path: Path) -> None:
    status, shown = invoke(*args, "--quiet", "--out", tmp_path / "o")
    assert status == 2
    assert message in shown


def test_a_folder_without_what_is_wanted_is_refused(small: Request) -> None:
    reproduce(plain(), replace(small, n_seeds=1))
    (folder,) = (small.out / "runs").iterdir()
    status, shown = invoke("table-embedding", "--from", folder, "--out", small.out)
    assert status == 2
    assert "has no results that belong to 'table-embedding'. It has: random, static." in shown


def test_downloaded_data_are_found_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "datasets")
    from dataset_layouts import complete_patient, write_adni

    kinds = ("CN", "MCI", "Dementia")
    rows = [row for i in range(45) for row in complete_patient(i, kinds[i % 3])]
    source = DataSource("adni", path=str(write_adni(tmp_path / "ADNIMERGE.csv", rows)))
    recipe = Plain("table-adni", "adni", "ADNI", n_points=2)
    rules = {"audit_subjects": 0, "predictor": "learned"}
    request = Request(tmp_path / "o", (source,), n_seeds=1, quick=True, n_jobs=1, rules=rules)
    first = reproduce(recipe, request).sheets[""][0].frame
    assert len(first) == 21
    assert {"paper_ap", "our_ap", "paper_roc_auc", "our_roc_auc"} <= set(first)
    assert "--path" in request.command(recipe)
