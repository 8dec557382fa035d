"""A checkpoint keeps whole pieces of one request, and nothing of another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nocta.core.errors import ConfigError
from nocta.runs.checkpoint import Checkpoint, differences

REQUEST = {"seed": 0, "source": {"data": "a.csv"}, "data_hash": "x"}


@pytest.fixture
def finished(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "finished", REQUEST)


def test_nothing_is_written_before_the_first_piece(finished: Checkpoint) -> None:
    finished.open()
    assert not finished.folder.exists()
    finished.put("a.json", {"cost": float("nan")})
    assert finished.get("a.json") == {"cost": None}
    assert json.loads(finished.file.read_text("utf-8")) == REQUEST


def test_pieces_of_the_same_request_are_kept(finished: Checkpoint) -> None:
    finished.put("a.json", 1)
    again = Checkpoint(finished.folder, REQUEST)
    again.open()
    assert again.get("a.json") == 1
    again.clear()
    assert not finished.folder.exists()


def test_pieces_of_another_request_are_refused_or_discarded(finished: Checkpoint) -> None:
    finished.put("a.json", 1)
    other = Checkpoint(finished.folder, {**REQUEST, "source": {"data": "b.csv"}})
    with pytest.raises(ConfigError, match=r"data is 'a.csv' there and 'b.csv' here. Do this"):
        other.open(remedy="Do this.")
    assert finished.get("a.json") == 1
    other.open(discard=True)
    assert other.get("a.json") is None


@pytest.mark.parametrize("damaged", ["{", "[]", "3", "null"])
def test_pieces_of_an_unknown_request_are_discarded(finished: Checkpoint, damaged: str) -> None:
    finished.put("a.json", 1)
    finished.file.write_text(damaged, "utf-8")
    finished.open()
    assert finished.get("a.json") is None


def test_an_entry_that_is_not_an_object_differs(finished: Checkpoint) -> None:
    finished.put("a.json", 1)
    finished.file.write_text(json.dumps({**REQUEST, "source": 3}), "utf-8")
    with pytest.raises(ConfigError, match="source is 3 there"):
        finished.open()


def test_a_folder_that_others_use_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    shared = Checkpoint(tmp_path, REQUEST, own=False)
    shared.put("a.json", 1)
    Checkpoint(tmp_path, {"seed": 1}, own=False).open(discard=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not shared.file.exists()
    shared.file.write_text("{", "utf-8")
    with pytest.raises(ConfigError, match="is damaged; delete it"):
        shared.open()


def test_a_damaged_piece_counts_as_missing(finished: Checkpoint) -> None:
    finished.put("a.json", 1)
    finished.path("a.json").write_text("{", "utf-8")
    assert finished.get("a.json") is None
    finished.write("b.txt", lambda path: path.write_text("seven"))
    assert finished.read("b.txt", lambda path: int(path.read_text())) is None
    assert finished.read("b.txt", Path.read_text) == "seven"
    assert finished.read("c.txt", Path.read_text) is None


def test_half_a_piece_is_never_seen(finished: Checkpoint) -> None:
    def save(folder: Path, *, stop: bool) -> None:
        folder.mkdir()
        (folder / "one").write_text("1")
        if stop:
            raise KeyboardInterrupt
        (folder / "two").write_text("2")

    for _ in range(2):  # a folder that is there is replaced
        with pytest.raises(KeyboardInterrupt):
            finished.write("piece", lambda folder: save(folder, stop=True))
        assert finished.names("[!.]*") in ([], ["piece"])
        finished.write("piece", lambda folder: save(folder, stop=False))
        assert sorted(path.name for path in finished.path("piece").iterdir()) == ["one", "two"]


def test_what_an_older_version_did_not_write_had_its_default() -> None:
    older = {"seed": 0, "source": {"data": "a.csv"}}
    newer = {**older, "n_trials": 2}
    assert differences(older, {**newer, "n_trials": 0}, {"n_trials": 0}) == []
    assert differences(older, newer, {"n_trials": 0}) == ["n_trials is 0 there and 2 here"]
