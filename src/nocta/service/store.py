"""Cases on disk: SQLite, one append-only list of events, an answered request is on disk.

Nothing of a case is ever changed or removed: a case is what its events add up to
(`nocta.service.cases`), so the list of events is also the audit trail: who, when, what, and by
which model. Triggers in the file itself refuse changes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nocta.service.problems import Conflict, NotFound, ServiceError, StoreError

#: Each raises the version of the file by one; never change one that was released.
MIGRATIONS = (
    """
    CREATE TABLE cases (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, model TEXT NOT NULL, created TEXT NOT NULL,
        changed TEXT NOT NULL, version INTEGER NOT NULL, open INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY, case_id TEXT NOT NULL REFERENCES cases (id),
        version INTEGER NOT NULL, at TEXT NOT NULL, who TEXT NOT NULL, model TEXT NOT NULL,
        kind TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (case_id, version)
    ) STRICT;
    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE (ABORT, 'the history of a case is never changed'); END;
    CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events
        BEGIN SELECT RAISE (ABORT, 'the history of a case is never removed'); END;
    CREATE TABLE answers (
        who TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, case_id TEXT NOT NULL,
        at TEXT NOT NULL, PRIMARY KEY (who, key)
    ) STRICT;
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
        created TEXT NOT NULL, expires TEXT, revoked TEXT
    ) STRICT;
    """,
)
#: Seconds to wait for another process that writes.
_PATIENCE = 5.0


class Event(NamedTuple):
    """One thing that happened to a case."""

    version: int
    at: str
    who: str
    model: str
    kind: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A case in the list of cases."""

    id: str
    name: str
    model: str
    created: str
    changed: str
    version: int
    open: bool


@dataclass(frozen=True)
class Request:
    """Who asks for a change, by which model, and how a repetition is recognized."""

    who: str
    model: str
    key: str | None = None  # idempotency key
    hash: str = ""  # of what is asked for: the same key with another request is refused


class Store:
    """One SQLite file with every case.

    Args:
        path: Made if it does not exist; `":memory:"` keeps nothing.
        read_only: Open an existing file without writing to it.
        patience: Seconds to wait while another process writes.
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, patience: float = _PATIENCE
    ) -> None:
        self.path, self.read_only = str(path), read_only
        self._lock = threading.RLock()
        with _explained(self.path):
            self._db = self._connect(patience)
            self._migrate()

    def _connect(self, patience: float) -> sqlite3.Connection:
        if self.read_only and not Path(self.path).is_file():
            raise StoreError(f"'{self.path}' does not exist, so it cannot be read.")
        address = Path(self.path).absolute().as_uri() + ("?mode=ro" if self.read_only else "")
        if self.path == ":memory:":
            address = "file::memory:"
        db = sqlite3.connect(
            address, uri=True, timeout=patience, check_same_thread=False, isolation_level=None
        )
        if not self.read_only:
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def _migrate(self) -> None:
        version = self._version()
        if version > len(MIGRATIONS):
            raise StoreError(
                f"'{self.path}' was written by a newer nocta (version {version} of the file; this "
                f"one reads up to {len(MIGRATIONS)}). Install that version."
            )
        if version == 0 and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreError(f"'{self.path}' is a database of another program; choose another.")
        if version < len(MIGRATIONS) and self.read_only:
            raise StoreError(
                f"'{self.path}' is of an older version; open it once without --read-only."
            )
        while (version := self._version()) < len(MIGRATIONS):
            script = f"BEGIN IMMEDIATE; {MIGRATIONS[version]} PRAGMA user_version = {version + 1};"
            self._db.executescript(f"{script} COMMIT;")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # -- reading --------------------------------------------------------------------

    def cases(self) -> list[Row]:
        """Every case, the one that changed last first."""
        rows = self._read("SELECT * FROM cases ORDER BY changed DESC, id")
        return [_row(row) for row in rows]

    def case(self, case_id: str) -> Row:
        """One case in the list."""
        rows = self._read("SELECT * FROM cases WHERE id = ?", case_id)
        if not rows:
            raise NotFound(f"There is no case '{case_id[:60]}'.")
        return _row(rows[0])

    def events(self, case_id: str) -> list[Event]:
        """Everything that happened to a case, in order."""
        found = "SELECT version, at, who, model, kind, body FROM events WHERE case_id = ?"
        rows = self._read(f"{found} ORDER BY version", case_id)
        if not rows:
            self.case(case_id)
        return [Event(v, at, who, m, kind, json.loads(b)) for v, at, who, m, kind, b in rows]

    def answered(self, request: Request) -> str | None:
        """The case that an equal request changed before."""
        if request.key is None:
            return None
        found = "SELECT request, case_id FROM answers WHERE who = ? AND key = ?"
        rows = self._read(found, request.who, request.key)
        if not rows:
            return None
        if rows[0][0] != request.hash:
            raise ServiceError(
                "This Idempotency-Key was used for another request; use a new key for each."
            )
        return str(rows[0][1])

    def _read(self, sql: str, *values: Any) -> list[Any]:
        with self._lock, _explained(self.path):
            return self._db.execute(sql, values).fetchall()

    # -- writing --------------------------------------------------------------------

    def add_case(self, case_id: str, name: str, body: Mapping[str, Any], request: Request) -> str:
        """Open a case; returns its id, or that of the case an equal request opened before."""
        with self._writing():
            before = self.answered(request)
            if before is not None:
                return before
            now = timestamp()
            row = (case_id, name, request.model, now, now, 0, 1)
            self._db.execute("INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            self._append(case_id, 1, "opened", body, request)
        return case_id

    def add_events(
        self,
        case_id: str,
        request: Request,
        make: Callable[[list[Event]], list[tuple[str, dict[str, Any]]]],
        expected_version: int | None = None,
    ) -> bool:
        """Append what `make` derives from the events so far; all of it or nothing.

        Returns whether anything was written: an equal request was answered before if not.
        """
        with self._writing():
            if self.answered(request) is not None:
                return False
            events = self.events(case_id)
            version = events[-1].version
            if expected_version is not None and expected_version != version:
                raise Conflict(
                    "The case was changed elsewhere meanwhile. Look at it again, then repeat."
                )
            for kind, body in make(events):
                version += 1
                self._append(case_id, version, kind, body, request)
        return True

    def _append(
        self, case_id: str, version: int, kind: str, body: Mapping[str, Any], request: Request
    ) -> None:
        now = timestamp()
        values = (case_id, version, now, request.who, request.model, kind, json.dumps(body))
        self._db.execute(
            "INSERT INTO events (case_id, version, at, who, model, kind, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        still_open = int(kind != "closed")
        self._db.execute(
            "UPDATE cases SET version = ?, changed = ?, open = ? WHERE id = ?",
            (version, now, still_open, case_id),
        )
        if request.key is not None:
            self._db.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
                (request.who, request.key, request.hash, case_id, now),
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; it is on disk when the block is left."""
        if self.read_only:
            raise StoreError("This service was started with --read-only; nothing can be changed.")
        with self._lock, _explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def execute(self, sql: str, *values: Any) -> int:
        """One statement in a transaction of its own; returns how many rows it changed."""
        with self._writing():
            return self._db.execute(sql, values).rowcount

    def query(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a statement that reads."""
        return self._read(sql, *values)

    def backup(self, target: Path) -> None:
        """Copy the whole file while it is in use; the copy is complete, or there is none."""
        from nocta.model.files import save_atomically

        def copy(partial: Path) -> None:
            with sqlite3.connect(partial) as other:
                self._db.backup(other)
            other.close()

        with self._lock, _explained(str(target)):
            save_atomically(target, copy, ())


def timestamp() -> str:
    """Now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _row(values: tuple[Any, ...]) -> Row:
    case_id, name, model, created, changed, version, still_open = values
    return Row(case_id, name, model, created, changed, version, bool(still_open))


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Errors of SQLite as sentences."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error).lower()
        known = {
            "locked": "is being written by another process. Nothing was changed; try again.",
            "full": "cannot grow: the disk is full. Nothing was changed; make room and try again.",
            "readonly": "cannot be written: it, or its folder, is read-only. Nothing was changed.",
            "read-only": "cannot be written: it, or its folder, is read-only. Nothing was changed.",
            "unable to open": "cannot be opened. Does its folder exist, and may you write there?",
            "not a database": "is not a store of nocta. Choose another file.",
            "malformed": "is damaged. Restore it from a backup (`nocta backup`).",
            "disk i/o": "cannot be written: the disk reports an error. Nothing was changed.",
        }
        what = next((text for sign, text in known.items() if sign in said), f"failed: {error}.")
        raise StoreError(f"'{path}' {what}") from error
