"""What was answered is on disk, whatever happens; nothing in the history changes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nocta.service.problems import Conflict, NotFound, StoreError
from nocta.service.store import MIGRATIONS, Request, Store

ME = Request("me", "model")
WRITER = Path(__file__).parent / "keeps_writing.py"


def entered(n: int) -> list[tuple[str, dict[str, int]]]:
    return [("entered", {"n": n})]


def test_the_history_cannot_be_changed(store: Store, tmp_path: Path) -> None:
    store.add_case("a", "A", {}, ME)
    other = sqlite3.connect(tmp_path / "cases.db")
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        other.execute("UPDATE events SET body = '{}'")
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        other.execute("DELETE FROM events")
    other.close()


def test_it_is_written_through(store: Store) -> None:
    assert store.query("PRAGMA journal_mode") == [("wal",)]
    assert store.query("PRAGMA synchronous") == [(2,)]


def test_what_is_written_is_there_after_opening_again(store: Store, tmp_path: Path) -> None:
    store.add_case("a", "A", {"x": 1}, ME)
    store.add_events("a", ME, lambda _: entered(2))
    store.close()
    again = Store(tmp_path / "cases.db")
    events = again.events("a")
    assert [(e.version, e.kind, e.body, e.who, e.model) for e in events] == [
        (1, "opened", {"x": 1}, "me", "model"),
        (2, "entered", {"n": 2}, "me", "model"),
    ]
    assert again.case("a").version == 2
    again.close()


def test_a_change_is_whole_or_not_at_all(store: Store) -> None:
    store.add_case("a", "A", {}, ME)

    def half(_: object) -> list[tuple[str, dict[str, object]]]:
        return [("entered", {}), ("entered", {"cannot be written": object()})]

    with pytest.raises(TypeError):
        store.add_events("a", Request("me", "model", "key", "hash"), half)
    assert len(store.events("a")) == 1
    assert store.answered(Request("me", "model", "key", "hash")) is None
    with pytest.raises(NotFound):
        store.add_events("nothing", ME, lambda _: entered(1))


def test_only_one_of_two_writers_wins_a_version(store: Store) -> None:
    store.add_case("a", "A", {}, ME)
    refused: list[str] = []

    def write() -> None:
        try:
            store.add_events("a", ME, lambda _: entered(1), expected_version=1)
        except Conflict as error:
            refused.append(str(error))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(store.events("a")), len(refused)) == (2, 7)


def test_a_locked_file_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "cases.db", patience=0.05)
    store.add_case("a", "A", {}, ME)
    other = sqlite3.connect(tmp_path / "cases.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="being written by another process"):
        store.add_events("a", ME, lambda _: entered(1))
    other.execute("ROLLBACK")
    other.close()
    store.add_events("a", ME, lambda _: entered(2))
    assert [e.body for e in store.events("a")] == [{}, {"n": 2}]
    store.close()


def test_a_full_disk_is_an_error_and_nothing_is_written(store: Store) -> None:
    store.add_case("a", "A", {}, ME)
    pages = store.query("PRAGMA page_count")[0][0]
    store.query(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="the disk is full"):
        store.add_events("a", ME, lambda _: [("entered", {"text": "x" * 100_000})])
    store.query(f"PRAGMA max_page_count = {pages + 1000}")
    store.add_events("a", ME, lambda _: entered(2))
    assert [e.body for e in store.events("a")] == [{}, {"n": 2}]


def test_read_only_reads(store: Store, tmp_path: Path) -> None:
    store.add_case("a", "A", {}, ME)
    reader = Store(tmp_path / "cases.db", read_only=True)
    assert reader.case("a").name == "A"
    with pytest.raises(StoreError, match="started with --read-only"):
        reader.add_case("b", "B", {}, ME)
    reader.close()
    with pytest.raises(StoreError, match="does not exist"):
        Store(tmp_path / "nothing.db", read_only=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_without_permission_is_an_error(store: Store, tmp_path: Path) -> None:
    store.close()
    (tmp_path / "cases.db").chmod(stat.S_IRUSR)
    with pytest.raises(StoreError, match="read-only"):
        Store(tmp_path / "cases.db").add_case("a", "A", {}, ME)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    text, foreign, newer = (tmp_path / name for name in ("a.db", "b.db", "c.db"))
    text.write_text("not a database, but long enough to look like one " * 40)
    sqlite3.connect(foreign).execute("CREATE TABLE t (x)").connection.close()
    Store(newer).close()
    db = sqlite3.connect(newer)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(StoreError, match="is not a store of nocta"):
        Store(text)
    with pytest.raises(StoreError, match="database of another program"):
        Store(foreign)
    with pytest.raises(StoreError, match="written by a newer nocta"):
        Store(newer)
    with pytest.raises(StoreError, match="Does its folder exist"):
        Store(tmp_path / "no" / "folder" / "x.db")


def test_a_backup_is_complete_while_the_store_is_in_use(store: Store, tmp_path: Path) -> None:
    store.add_case("a", "A", {}, ME)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.add_events("a", ME, lambda _: [("entered", {}), ("entered", {})])

    thread = threading.Thread(target=write)
    thread.start()
    reader = Store(tmp_path / "cases.db", read_only=True)
    for i in range(3):
        reader.backup(tmp_path / f"copy{i}.db")
    stop.set()
    thread.join()
    reader.close()
    for i in range(3):
        copy = Store(tmp_path / f"copy{i}.db")
        versions = [e.version for e in copy.events("a")]
        assert versions == list(range(1, len(versions) + 1))
        assert len(versions) % 2 == 1  # both events of a change, or none
        copy.close()
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_while_writing_nothing_answered_is_lost(tmp_path: Path) -> None:
    file, draw = tmp_path / "cases.db", random.Random(0)
    Store(file).close()
    answered = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, str(WRITER), str(file)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(draw.randint(1, 40)):
            answered = int(process.stdout.readline())
        process.kill()
        said = process.stdout.read().split("\n")[:-1]  # a line that was not finished is no answer
        process.wait()
        process.stdout.close()
        answered = int(said[-1]) if said else answered
        store = Store(file)
        assert store.query("PRAGMA integrity_check") == [("ok",)]
        versions = [e.version for e in store.events("a")]
        assert versions == list(range(1, len(versions) + 1))
        assert len(versions) >= answered
        store.close()
