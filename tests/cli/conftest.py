"""One real fit of a small table, for the commands that need a model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def small_clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first seventy patients of the example, with its schema."""
    folder = tmp_path_factory.mktemp("clinic")
    lines = (EXAMPLES / "clinic.csv").read_text("utf-8").splitlines()
    few = [line for line in lines[1:] if int(line[1:4]) <= 70]
    (folder / "clinic.csv").write_text("\n".join([lines[0], *few]) + "\n", "utf-8")
    shutil.copy(EXAMPLES / "clinic.schema.toml", folder)
    return folder / "clinic.csv"


@pytest.fixture(scope="session")
def fitted_output(small_clinic: Path) -> tuple[Path, str]:
    """A model folder and what `nocta fit` said."""
    out = small_clinic.parent / "model"
    args = ["fit", str(small_clinic), "--out", str(out), "--quick", "--quiet"]
    found = CliRunner().invoke(app, args)
    assert found.exit_code == 0, found.output
    return out, " ".join(found.output.split())


@pytest.fixture(scope="session")
def fitted_model(fitted_output: tuple[Path, str]) -> Path:
    return fitted_output[0]
