"""Data sets of other installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta import datasets
from nocta.cli.app import app
from nocta.core.errors import ConfigError
from nocta.core.plugins import plugins
from nocta.runs.optimum import finite_task
from nocta.runs.setup import DataSource

MODULE = """
from dataclasses import replace

from nocta import datasets
from nocta.testing import tiny_cohort


def load(log, *, n: int = 5):
    log.read("a ward")
    return tiny_cohort(n)


WARD = datasets.Dataset(replace(datasets.card("pbc-event"), name="ward", options={}), load)
"""
ENTRY_POINTS = """[nocta.datasets]
ward = ward_data:WARD
renamed = ward_data:WARD
class = nocta.datasets:Dataset
broken = ward_data_that_is_gone:WARD
synthetic = ward_data:WARD
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package as an installer leaves it."""
    site = tmp_path_factory.mktemp("site")
    info = site / "ward_data-1.0.dist-info"
    info.mkdir()
    (site / "ward_data.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ward-data\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return site


@pytest.fixture
def _installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(package)
    plugins.cache_clear()
    yield
    plugins.cache_clear()


@pytest.mark.usefixtures("_installed")
def test_installed_data_set_is_loaded_by_name() -> None:
    assert "ward" in datasets.names()
    assert len(datasets.load("ward", n="6")) == 6
    assert not datasets.is_local("ward")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"cannot be imported: ModuleNotFoundError: .*ward_data_that_is_gone"),
        ("synthetic", r"'synthetic' \(ward_data:WARD\), but this name is built in"),
        ("renamed", r"a data set named 'ward'; expected .* whose card is named 'renamed'"),
        ("class", r"holds a class; expected a nocta\.datasets\.Dataset whose"),
    ],
)
def test_wrong_entry_point_is_explained(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        datasets.get(name)


@pytest.mark.usefixtures("_installed")
def test_name_of_an_installed_data_set_is_taken() -> None:
    with pytest.raises(ConfigError, match="already a data set 'ward'"):
        datasets.register(datasets.get("ward"))


@pytest.mark.usefixtures("_installed")
def test_list_shows_a_broken_package_beside_the_others() -> None:
    shown = CliRunner().invoke(app, ["datasets"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    words = " ".join(shown.output.split())
    assert "broken" in words
    assert "cannot be imported" in words
    assert "physionet2019" in words


@pytest.mark.usefixtures("_installed")
def test_a_broken_package_does_not_hide_which_optima_are_known() -> None:
    with pytest.raises(ConfigError, match="The optimum of 'pbc-stage' is not known"):
        finite_task(DataSource("pbc-stage"))


def test_other_processes_find_it(package: Path) -> None:
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "from nocta import datasets; print(len(datasets.load('ward')))"
    shown = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout == "5\n"
