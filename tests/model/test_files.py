"""What a killed process left is removed, or brought back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nocta.model.files import save_atomically, write_atomically


@pytest.fixture(scope="module")
def dead() -> int:
    """Number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def a_folder(text: str, path: Path) -> None:
    path.mkdir()
    (path / "own.txt").write_text(text)


def test_half_written_files_of_killed_processes_are_removed(tmp_path: Path, dead: int) -> None:
    (tmp_path / f".a.txt.{dead}.part").write_text("half")
    a_folder("half", tmp_path / f".a.txt.{os.getpid()}.part")
    write_atomically(tmp_path / "a.txt", "whole")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_files_of_other_names_and_running_processes_stay(tmp_path: Path, dead: int) -> None:
    others = {f".a.{os.getppid()}.part", f".a.txt.{dead}.part", f".b.{dead}.old"}
    for name in others:
        (tmp_path / name).write_text("other")
    write_atomically(tmp_path / "a", "whole")
    assert {p.name for p in tmp_path.iterdir()} == {"a", *others}


def test_a_folder_that_was_set_aside_comes_back(tmp_path: Path, dead: int) -> None:
    a_folder("older", tmp_path / f".m.{dead}.old")

    def fail(path: Path) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        save_atomically(tmp_path / "m", fail)
    assert (tmp_path / "m" / "own.txt").read_text() == "older"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("replaced", [True, False])
def test_what_others_keep_survives_a_kill(tmp_path: Path, dead: int, replaced: bool) -> None:
    aside = tmp_path / f".m.{dead}.old"
    a_folder("older", aside)
    (aside / "results.csv").write_text("mine")
    if replaced:
        a_folder("newer", tmp_path / "m")
    save_atomically(tmp_path / "m", lambda path: a_folder("newest", path), own=["own.txt"])
    found = {p.name: p.read_text() for p in (tmp_path / "m").iterdir()}
    assert found == {"own.txt": "newest", "results.csv": "mine"}
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_failed_swap_brings_the_older_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_folder("older", tmp_path / "m")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        save_atomically(tmp_path / "m", lambda path: a_folder("newer", path))
    assert (tmp_path / "m" / "own.txt").read_text() == "older"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
