"""A folder of Parquet parts from fit to score, by the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from small_models import QUICK_FIT


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


@pytest.fixture(scope="module")
def parts(small_clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small clinic in three parts, with its schema inside the folder."""
    folder = tmp_path_factory.mktemp("large") / "clinic"
    folder.mkdir()
    schema = small_clinic.with_name("clinic.schema.toml").read_text("utf-8")
    (folder / "schema.toml").write_text(schema, "utf-8")
    table = pd.read_csv(small_clinic)
    names = table["patient"].unique()
    for i, some in enumerate(np.array_split(names, 3)):
        table[table["patient"].isin(some)].to_parquet(folder / f"part-{i}.parquet")
    return folder


@pytest.fixture(scope="module")
def histories(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is known of each patient after the first half year."""
    folder = tmp_path_factory.mktemp("histories") / "known"
    folder.mkdir()
    for file in sorted(parts.glob("*.parquet")):
        table = pd.read_parquet(file)
        table[table["years"] < 0.7].to_parquet(folder / file.name)
    return folder


def test_a_fit_on_parts_equals_the_fit_on_the_table(
    parts: Path, fitted_model: Path, tmp_path: Path
) -> None:
    status, shown = invoke("fit", parts, "--out", tmp_path / "model", *QUICK_FIT)
    assert status == 0, shown
    arrays = [folder / "arrays.safetensors" for folder in (fitted_model, tmp_path / "model")]
    assert arrays[0].read_bytes() == arrays[1].read_bytes()


def test_scores_are_what_plan_says_of_each_patient(
    fitted_model: Path, histories: Path, tmp_path: Path
) -> None:
    out = tmp_path / "scores.parquet"
    args = ("--cost-weight", "0.0005", "--out", out, "--jobs", "1", "--quiet")
    status, shown = invoke("score", fitted_model, histories, *args)
    assert status == 0, shown
    assert "70 subjects at cost weight 0.0005 (as given)" in shown
    scores = pd.read_parquet(out).set_index("subject")
    assert len(scores) == 70
    acquired = scores[~scores["stop"]]
    assert 0 < len(acquired)
    for name in [*acquired.index[:3], *scores.index[scores["stop"]][:2]]:
        file = next(
            f for f in histories.glob("*.parquet") if name in set(pd.read_parquet(f)["patient"])
        )
        options = ("--subject", name, "--cost-weight", "0.0005", "--json")
        found = CliRunner().invoke(app, ["plan", str(fitted_model), str(file), *options])
        alone, row = json.loads(found.stdout), scores.loc[name]
        assert bool(row["stop"]) == alone["stop"]
        assert list(row["features"]) == alone["features"]
        assert row["now"] == alone["now"]
        if not alone["stop"]:
            assert row["time"] == alone["time"]
            assert row["cost"] == pytest.approx(alone["cost"])


def test_the_same_command_again_has_nothing_to_do(
    fitted_model: Path, histories: Path, tmp_path: Path
) -> None:
    args = ("score", fitted_model, histories, "--out", tmp_path / "scores", "--jobs", "1")
    assert invoke(*args, "--quiet")[0] == 0
    status, shown = invoke(*args, "--quiet")
    assert status == 0
    assert "3 of 3 parts were finished before" in shown
    status, shown = invoke(*args, "--budget", "10")
    assert status == 2
    assert "budget is None there and 10.0 here" in shown
    assert "--force" in shown


def test_mistakes_are_told_with_status_2(
    fitted_model: Path, histories: Path, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere"
    assert invoke("score", nowhere, histories, "--out", tmp_path / "s")[0] == 2
    status, shown = invoke("score", fitted_model, nowhere, "--out", tmp_path / "s")
    assert status == 2
    assert "does not exist; name a Parquet or CSV file, or a folder of Parquet" in shown
    csv = tmp_path / "table.csv"
    csv.write_text("patient\n")
    assert "has no rows" in invoke("score", fitted_model, csv, "--out", tmp_path / "s")[1]
