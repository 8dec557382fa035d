"""Where the tests find shared data, and small downloads made for the purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dataset_layouts import write_oai

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the PhysioNet 2012 table and some raw records; skipped where absent."""
    folder = Path(os.environ.get("NOCTA_SHARED_DATA", REPOSITORY.parent / "shared/data"))
    if not (folder / "physionet2012.csv.gz").is_file():
        pytest.skip(
            f"needs physionet2012.csv.gz, which is not in '{folder}'; "
            f"name its folder in NOCTA_SHARED_DATA"
        )
    return folder


@pytest.fixture(scope="session")
def oai_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up OAI download of twelve patients."""
    return write_oai(tmp_path_factory.mktemp("oai"))


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no data folder is found by chance."""
    place = tmp_path / "run" / "here"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    monkeypatch.delenv("NOCTA_DATA", raising=False)
