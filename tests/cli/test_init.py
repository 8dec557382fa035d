"""`nocta init` writes a schema, says what it guessed, and never overwrites unasked."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.cli.data import data_source

EXAMPLES = Path(__file__).parents[2] / "examples"
runner = CliRunner()


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    return Path(shutil.copy(EXAMPLES / "clinic.csv", tmp_path / "clinic.csv"))


def test_a_draft_is_written_beside_the_data(clinic: Path) -> None:
    shown = runner.invoke(app, ["init", str(clinic)])
    assert shown.exit_code == 0
    assert "Please check:\n  - grid:" in shown.stdout
    assert "The table can be read with this draft: Cohort('clinic': 300 subjects" in shown.stdout
    assert tomllib.loads((clinic.parent / "schema.toml").read_text("utf-8"))["label"] == "stage"
    assert len(data_source(str(clinic)).load(0)) == 300


def test_nothing_is_overwritten_unasked(clinic: Path) -> None:
    mine = clinic.parent / "schema.toml"
    mine.write_text("mine")
    shown = runner.invoke(app, ["init", str(clinic)])
    assert shown.exit_code == 2
    assert "already exists. Add --force" in shown.stderr
    assert mine.read_text() == "mine"
    assert runner.invoke(app, ["init", str(clinic), "--force"]).exit_code == 0
    assert mine.read_text() != "mine"


def test_a_schema_of_its_own_counts_as_there(clinic: Path) -> None:
    own = clinic.with_name("clinic.schema.toml")
    own.write_text("mine")
    assert runner.invoke(app, ["init", str(clinic)]).exit_code == 2
    elsewhere = clinic.with_name("new.toml")
    assert runner.invoke(app, ["init", str(clinic), "--out", str(elsewhere)]).exit_code == 0
    assert elsewhere.is_file()
    assert own.read_text() == "mine"


def test_prices_are_filled_in(clinic: Path) -> None:
    prices = clinic.with_name("prices.csv")
    prices.write_text("feature,cost,group\nbilirubin,7,blood\nalbumin,5,blood\n")
    shown = runner.invoke(app, ["init", str(clinic), "--costs", str(prices)])
    assert shown.exit_code == 0
    schema = tomllib.loads((clinic.parent / "schema.toml").read_text("utf-8"))
    assert schema["features"]["bilirubin"] == {"cost": 7.0, "group": "blood"}
    assert "no price for" in shown.stdout


def test_a_table_that_does_not_read_is_explained(clinic: Path) -> None:
    clinic.write_text(clinic.read_text().replace("P001,0.0,71,M,5,1,0.43", "P001,0.0,71,M,5,1,low"))
    shown = runner.invoke(app, ["init", str(clinic)])
    assert shown.exit_code == 0
    assert "cannot be read with this draft yet" in shown.stdout
    assert "not a number: 'low' (line 2, subject P001)" in shown.stdout


@pytest.mark.parametrize("args", [["none.csv"], ["clinic.csv", "--costs", "none.csv"]])
def test_a_missing_file_is_named(
    clinic: Path, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clinic.parent)
    shown = runner.invoke(app, ["init", *args])
    assert shown.exit_code == 2
    assert "File 'none.csv' does not exist" in shown.stderr


def test_the_table_itself_is_never_replaced(clinic: Path) -> None:
    before = clinic.read_bytes()
    shown = runner.invoke(app, ["init", str(clinic), "--out", str(clinic), "--force"])
    assert shown.exit_code == 2
    assert "is also an input file; choose another path" in shown.stderr
    assert clinic.read_bytes() == before


def test_the_folder_of_the_schema_is_made(clinic: Path) -> None:
    target = clinic.parent / "schemas" / "clinic.toml"
    assert runner.invoke(app, ["init", str(clinic), "--out", str(target)]).exit_code == 0
    assert target.is_file()
    below = runner.invoke(app, ["init", str(clinic), "--out", str(clinic / "schema.toml")])
    assert below.exit_code == 2
    assert "is a file. Choose another path" in below.stderr


def test_a_folder_is_not_taken_for_a_missing_file(tmp_path: Path) -> None:
    shown = runner.invoke(app, ["init", str(tmp_path)])
    assert shown.exit_code == 2
    assert "is a folder; give one of its files" in shown.stderr


def test_a_number_is_cut_and_an_event_is_named(clinic: Path) -> None:
    cut = runner.invoke(app, ["init", str(clinic), "--label", "bilirubin", "--bins", "0.9,1.5"])
    assert cut.exit_code == 0, cut.output
    schema = tomllib.loads((clinic.parent / "schema.toml").read_text("utf-8"))
    assert (schema["label"], schema["bins"]) == ("bilirubin", [0.9, 1.5])
    ranges = runner.invoke(app, ["init", str(clinic), "--label", "albumin", "--bins=3", "--force"])
    assert "6 features, 3 classes)" in ranges.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "stag"], "Did you mean 'stage'"),
        (["--bins", "few"], "not a list of numbers"),
        (["--event", "years"], "name two columns"),
        (["--event", "a,b", "--bins", "3"], "leave out --label and --bins"),
        (["--within", "2"], "add --event TIME,STATUS"),
    ],
)
def test_wishes_about_the_label_are_checked(clinic: Path, options: list[str], message: str) -> None:
    found = runner.invoke(app, ["init", str(clinic), *options])
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())
    assert not (clinic.parent / "schema.toml").exists()
