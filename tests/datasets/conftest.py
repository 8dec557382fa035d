"""Where the tests find shared data, and small downloads made for the purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dataset_layouts import write_oai

REPOSITORY = Path(__file__).resolve().parents[2]
#: Where the PhysioNet 2012 table may be; read here, before `nowhere` takes the variable away.
PLACES = [
    *([Path(os.environ["NOCTA_DATA"]).expanduser()] if os.environ.get("NOCTA_DATA") else []),
    REPOSITORY.parent / "shared" / "data",
]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the PhysioNet 2012 table and some raw records; skipped where absent."""
    for folder in PLACES:
        if (folder / "physionet2012.csv.gz").is_file():
            return folder
    looked = ", ".join(f"'{folder}'" for folder in PLACES)
    pytest.skip(f"needs physionet2012.csv.gz, which is not in {looked}; set NOCTA_DATA")


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
