"""Who may do what: bearer tokens, roles, expiry, sessions of the page, and rate limits.

A store holds hashes of tokens, never tokens. A service without any token listens on loopback only
and makes a key at each start, which is printed with the address and gone when the process ends.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from nocta.core.errors import ConfigError
from nocta.service.problems import Forbidden, TooMany, Unauthorized
from nocta.service.store import Store, timestamp

Role = Literal["read", "write"]
#: Seconds a session of the page lasts without being used.
SESSION_SECONDS = 12 * 3600
#: Wrong tokens from one address within a minute, before it has to wait.
MOST_FAILURES = 10
#: Sessions, addresses and callers remembered at once.
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Person:
    """Who sends a request."""

    name: str
    role: Role

    def require(self, role: Role) -> None:
        """Raise unless this person has the role."""
        if role == "write" and self.role != "write":
            raise Forbidden("This token may only read. Use one with the role 'write'.")


@dataclass(frozen=True)
class TokenRow:
    """What is known of a token, which is not the token itself."""

    name: str
    role: str
    created: str
    expires: str | None
    revoked: str | None

    @property
    def state(self) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= timestamp() else "valid"


def create_token(store: Store, name: str, role: Role, days: float | None) -> str:
    """Make a token and return it; only its hash is kept."""
    if any(row.name == name for row in list_tokens(store)):
        raise ConfigError(f"There is a token '{name}' already; revoke it, or choose another name.")
    token = f"nocta_{secrets.token_urlsafe(32)}"
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)
    expires = None if until is None else until.isoformat(timespec="milliseconds")
    sql = "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)"
    store.execute(sql, name, hash_token(token), role, timestamp(), expires)
    return token


def list_tokens(store: Store) -> list[TokenRow]:
    """Every token there is or was, by name."""
    sql = "SELECT name, role, created, expires, revoked FROM tokens ORDER BY name"
    return [TokenRow(*row) for row in store.query(sql)]


def revoke_token(store: Store, name: str) -> None:
    """From now on the token is refused; its name stays in the list."""
    sql = "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL"
    if not store.execute(sql, timestamp(), name):
        raise ConfigError(f"There is no valid token '{name}'.")


def hash_token(token: str) -> str:
    """What is stored of a token. Tokens are random and long, so one round is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


class Access:
    """Recognizes people by token, by the key of this start, or by the session of the page.

    Args:
        store: Holds the hashes of tokens.
        key: The key of this start, if the service has one.
        per_second: Requests per second and person, on average; ten times as many at once.
        clock: Seconds, for limits and sessions.
    """

    def __init__(
        self,
        store: Store,
        key: str | None = None,
        per_second: float = 50.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._clock = store, clock
        self._key = None if key is None else hash_token(key)
        self._sessions: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._rates = _Buckets(per_second, per_second * 10, clock)
        self._failures = _Buckets(MOST_FAILURES / 60, MOST_FAILURES, clock)
        self._lock = threading.Lock()

    def of_token(self, token: str, address: str) -> Person:
        """The person with this token."""
        return self._of_hash(hash_token(token), address)

    def of_session(self, session: str, address: str) -> Person:
        """The person who opened this session; their token must still be valid."""
        with self._lock:
            found = self._sessions.get(session)
            if found is None or found[1] < self._clock():
                self._sessions.pop(session, None)
                raise Unauthorized("The session is over; open the page with the key or a token.")
            self._sessions[session] = (found[0], self._clock() + SESSION_SECONDS)
        return self._of_hash(found[0], address)

    def open_session(self, token: str, address: str) -> str:
        """A session for the person with this token."""
        self.of_token(token, address)
        session = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[session] = (hash_token(token), self._clock() + SESSION_SECONDS)
            while len(self._sessions) > _MOST_REMEMBERED:
                self._sessions.popitem(last=False)
        return session

    def close_session(self, session: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session, None)

    def count(self, person: Person) -> None:
        """Count a request; raise if there were too many."""
        if not self._rates.take(person.name):
            raise TooMany("Too many requests; wait a moment and try again.")

    def _of_hash(self, hashed: str, address: str) -> Person:
        if self._key is not None and hmac.compare_digest(hashed, self._key):
            return Person("key of this start", "write")
        sql = "SELECT name, role, created, expires, revoked FROM tokens WHERE hash = ?"
        rows = [TokenRow(*row) for row in self._store.query(sql, hashed)]
        if not rows:
            # Right tokens still pass: people behind one server share its address.
            if not self._failures.take(address):
                raise TooMany("Too many wrong tokens from this address; wait a minute.")
            raise Unauthorized("The token is not known. Make one with `nocta token`.")
        if rows[0].state != "valid":
            raise Unauthorized(f"The token '{rows[0].name}' is {rows[0].state}. Ask for a new one.")
        return Person(rows[0].name, "write" if rows[0].role == "write" else "read")


class _Buckets:
    """Token buckets by name: `rate` per second, `most` at once."""

    def __init__(self, rate: float, most: float, clock: Callable[[], float]) -> None:
        self._rate, self._most, self._clock = rate, most, clock
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Take one; false if there is none."""
        with self._lock:
            level = self._now(name)
            if level < 1:
                return False
            self._level[name] = (level - 1, self._clock())
            self._level.move_to_end(name)
            while len(self._level) > _MOST_REMEMBERED:
                self._level.popitem(last=False)
            return True

    def _now(self, name: str) -> float:
        level, then = self._level.get(name, (self._most, self._clock()))
        return min(self._most, level + (self._clock() - then) * self._rate)
