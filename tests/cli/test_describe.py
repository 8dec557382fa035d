"""`nocta describe` shows the card of built-in data and of tables, or all that is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.cli.data import data_source, find_schema, is_table, say_what_was_read, table_stem
from nocta.core.errors import DataFileMissing

ROOT = Path(__file__).parents[2]
CLINIC = ROOT / "examples" / "clinic.csv"
MISTAKES = ROOT / "tests" / "tables" / "data" / "mistakes.csv"
runner = CliRunner()


def test_the_card_of_a_table(tmp_path: Path) -> None:
    card, figure = tmp_path / "new" / "card.md", tmp_path / "new" / "card.png"
    shown = runner.invoke(
        app, ["describe", str(CLINIC), "--out", str(card), "--figure", str(figure)]
    )
    assert shown.exit_code == 0
    assert shown.stdout == card.read_text("utf-8")
    assert "- 300 subjects, 5 visit slots (years); 1,221 visits took place" in shown.stdout
    assert "| elastography    | stiffness, attenuation | $60" in shown.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_help_says_when_a_figure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for args in (["--help"], ["describe", "--help"]):
        shown = " ".join(runner.invoke(app, args, env={"COLUMNS": "120"}).stdout.split())
        assert "Show the data card of a cohort; draw it with --figure." in shown
    monkeypatch.chdir(tmp_path)
    assert runner.invoke(app, ["describe", str(CLINIC)]).exit_code == 0
    assert not list(tmp_path.iterdir())


def test_the_card_of_a_built_in_data_set() -> None:
    shown = runner.invoke(app, ["describe", "synthetic"])
    assert shown.exit_code == 0
    assert "8,000 subjects, 10 visit slots" in shown.stdout


def test_twelve_mistakes_exit_with_status_two() -> None:
    shown = runner.invoke(app, ["describe", str(MISTAKES)])
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert "Error: mistakes.csv cannot be used: 12 problems." in shown.stderr
    assert " 12. " in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["synthetc"], "Did you mean 'synthetic'?"),
        (["none.csv"], "'none.csv' does not exist"),
        (["synthetic", "--schema", "x.toml"], "--schema is for table files"),
        ([str(CLINIC), "--path", "x"], "--path is for built-in data sets"),
        ([str(CLINIC), "--schema", "none.toml"], "Schema file 'none.toml' does not exist"),
        ([str(CLINIC), "--figure", "card.txt"], "has an unknown format; use one of .png"),
    ],
)
def test_wrong_arguments_are_explained(args: list[str], message: str) -> None:
    shown = runner.invoke(app, ["describe", *args])
    assert shown.exit_code == 2
    assert message in shown.stderr


def test_a_schema_is_found_beside_the_table(tmp_path: Path) -> None:
    table = Path(shutil.copy(CLINIC, tmp_path / "clinic.csv.gz"))
    with pytest.raises(DataFileMissing, match="Draft one with `nocta init"):
        find_schema(table)
    (tmp_path / "schema.toml").touch()
    assert find_schema(table).name == "schema.toml"
    (tmp_path / "clinic.schema.toml").touch()
    assert find_schema(table).name == "clinic.schema.toml"
    assert table_stem(table) == "clinic"


def test_names_are_told_from_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("visits").touch()
    assert [is_table(d) for d in ("a.csv", "a.PARQUET", "dir/a", "visits")] == [True] * 4
    assert not is_table("pbc-event")


def test_what_was_read_and_left_out_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,visit,alt,room,ill\n1,0,2.5,a,0\n2,0,3.5,b,1\n")
    (tmp_path / "schema.toml").write_text(
        'subject = "id"\nvisit = "visit"\nlabel = "ill"\n[features.alt]\ncost = 1\n'
    )
    say_what_was_read(data_source(str(table)))
    assert capsys.readouterr().err.splitlines() == [
        "t: 2 subjects, 2 visits in 1 slots, 2 labels, 0.0% of the values missing; "
        f"read from {table}.",
        "Note: Columns not in the schema are ignored: room.",
    ]


def test_options_reach_the_loader() -> None:
    shown = runner.invoke(app, ["describe", "synthetic", "--data-option", "n_subjects=7"])
    assert shown.exit_code == 0
    assert "- 7 subjects, 10 visit slots" in shown.stdout


@pytest.mark.parametrize("name", ["clinic.csv", "schema.toml"])
def test_what_is_read_is_never_replaced(tmp_path: Path, name: str) -> None:
    shutil.copy(CLINIC, tmp_path / "clinic.csv")
    shutil.copy(CLINIC.with_name("clinic.schema.toml"), tmp_path / "schema.toml")
    before = (tmp_path / name).read_bytes()
    args = ["describe", str(tmp_path / "clinic.csv"), "--out", str(tmp_path / name)]
    shown = runner.invoke(app, args)
    assert shown.exit_code == 2
    assert "is also an input file; choose another path" in shown.stderr
    assert (tmp_path / name).read_bytes() == before


def test_a_folder_is_neither_a_table_nor_a_card(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    found = CliRunner().invoke(app, ["describe", str(tmp_path / "tables")])
    assert found.exit_code == 2
    found = CliRunner().invoke(app, ["describe", "pbc-event", "--out", str(tmp_path)])
    assert found.exit_code == 2
    assert "is a folder; give the path of a file" in found.output


def test_a_folder_named_like_nothing_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables").mkdir()
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["describe", "tables"])
    assert found.exit_code == 2
    assert "'tables' is a folder without Parquet files" in found.output
