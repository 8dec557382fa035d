"""`--data-option`: one spelling for every command, checked first, kept with what was made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nocta
from nocta.cli.app import app
from nocta.cli.data import data_source
from nocta.core.cohort import Cohort
from nocta.datasets import synthetic
from nocta.runs.setup import _read
from small_models import QUICK_FIT

CLINIC = Path(__file__).parents[2] / "examples" / "clinic.csv"
FEW = ["--data-option", "n_subjects=80"]


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, int]]]:
    """A model of eighty drawn subjects, and what was drawn for it (subjects, seed)."""
    out, draws, load = tmp_path_factory.mktemp("fit") / "model", [], synthetic.load

    def counted(n_subjects: int, seed: int) -> Cohort:
        draws.append((n_subjects, seed))
        return load(n_subjects, seed)

    _read.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "load", counted)
        args = ["--out", out, "--seed", 2, *QUICK_FIT]
        status, shown = invoke("fit", "synthetic", *FEW, *args)
    assert status == 0, shown
    assert "synthetic: 80 subjects, 800 visits" in shown
    return out, draws


def test_a_fit_reads_its_data_once(fitted: tuple[Path, list[tuple[int, int]]]) -> None:
    assert fitted[1] == [(80, 2)]


def test_a_model_keeps_the_options_of_its_data(
    fitted: tuple[Path, list[tuple[int, int]]], tmp_path: Path
) -> None:
    model = fitted[0]
    assert nocta.load(model).record_["request"]["source"]["data_options"] == {"n_subjects": 80}
    assert "`synthetic`, `n_subjects=80` (SHA-256" in (model / "card.md").read_text("utf-8")
    args = ["--out", tmp_path / "r.csv", "--cost-weights", "0.1", "--quiet"]
    status, shown = invoke("evaluate", model, "synthetic", *args)
    assert status == 0, shown
    assert "12 subjects kept aside" in shown
    status, shown = invoke("evaluate", model, "synthetic", *args, "--data-option", "n_subjects=30")
    assert status == 0, shown
    assert "30 subjects: all subjects of other data" in shown


def test_a_fit_is_resumed_only_with_the_same_options(
    fitted: tuple[Path, list[tuple[int, int]]],
) -> None:
    args = ["--out", fitted[0], "--seed", 2, *QUICK_FIT, "--resume"]
    assert "finished already" in invoke("fit", "synthetic", *FEW, *args)[1]
    status, shown = invoke("fit", "synthetic", "--data-option", "n_subjects=90", *args)
    assert status == 2
    assert "data_options is {'n_subjects': 80} there and {'n_subjects': 90} here" in shown


def test_a_model_of_an_older_version_had_no_options(
    fitted: tuple[Path, list[tuple[int, int]]], tmp_path: Path
) -> None:
    from nocta.runs.saved import subjects_to_judge

    model = nocta.load(fitted[0])
    del model.record_["request"]["source"]["data_options"]
    assert len(subjects_to_judge(model, "synthetic", table=False).cohort) == 8000


def test_a_comparison_is_continued_only_with_the_same_options(tmp_path: Path) -> None:
    out = tmp_path / "d"
    args = ["--methods", "nothing", "--seeds", 1, "--out", out, "--jobs", 1, "--quiet", "--quick"]
    args += ["--predictor", "bayes"]
    status, shown = invoke("compare", "synthetic", *FEW, *args)
    assert status == 0, shown
    setup = json.loads((out / "setup.json").read_text("utf-8"))["setup"]
    assert setup["source"]["data_options"] == {"n_subjects": 80}
    assert "--data-option n_subjects=80" in (out / "report.html").read_text("utf-8")
    assert invoke("compare", "synthetic", *FEW, *args)[0] == 0
    status, shown = invoke("compare", "synthetic", *args)
    assert status == 2
    assert "data_options is {'n_subjects': 80} there and {} here" in shown


COMMANDS = {
    "fit": ["fit", "adni", "--out", "m"],
    "describe": ["describe", "adni"],
    "compare": ["compare", "adni", "--methods", "static", "--out", "d"],
    "evaluate": ["evaluate", "no-model", "adni", "--out", "r.csv"],
    "reproduce": ["reproduce", "table-kappa", "--data", "adni", "--out", "d"],
    "datasets": ["datasets", "adni"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            "min_label=3",
            "'adni': There is no option 'min_label'. Did you mean 'min_labels'?",
        ),
        ("min_labels=a", "Data set 'adni': min_labels is 'a'; use a whole number"),
        ("features={'FDG': 'dear'}", "use options by name, each a number or null"),
        ("min_labels", "write it as NAME=VALUE"),
        ("path=x", "give the files with --path"),
    ],
)
def test_every_command_checks_the_options_before_it_reads_anything(
    command: str, option: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no data, no model: either would be said instead
    status, shown = invoke(*COMMANDS[command], "--data-option", option)
    assert status == 2
    assert said in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "visits"),
    [
        ("00,10", ["00", "10"]),
        ("00", ["00"]),
        ("00,01,03", ["00", "01", "03"]),
        ('["00", "10"]', ["00", "10"]),
        ("('00', '10')", ["00", "10"]),
        ('"00"', ["00"]),
    ],
)
def test_codes_that_look_like_numbers_stay_text(typed: str, visits: list[str]) -> None:
    source = data_source("oai-klg", options=[f"visits={typed}"])
    assert source.data_options == {"visits": visits}


def test_a_split_column_is_checked_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no data: that would be said instead
    args = ["--split-column", "sett", "--methods", "static", "--out", "d"]
    status, shown = invoke("compare", "physionet2012", *args)
    assert status == 2
    assert "no split column 'sett'. Did you mean 'set'?" in shown


@pytest.mark.parametrize("command", [["describe"], ["fit", "--out", "m"]])
def test_a_table_takes_no_options(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, shown = invoke(*command, CLINIC, "--data-option", "min_labels=3")
    assert status == 2
    assert "--data-option is for built-in data sets" in shown


def test_options_for_several_data_sets_at_once_are_refused(tmp_path: Path) -> None:
    args = ["--data", "adni", "--data", "oai-klg", "--data-option", "min_labels=3"]
    status, shown = invoke("reproduce", "table-kappa", *args, "--out", tmp_path / "d")
    assert status == 2
    assert "apply to one data set" in shown
