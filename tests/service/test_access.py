"""Who may do what: nothing without a token, and nothing changed by those who may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from over_http import KEY, Connect

from nocta.core.errors import ConfigError
from nocta.service.access import Access, create_token, list_tokens, revoke_token
from nocta.service.caller import COOKIE, PAGE_HEADER
from nocta.service.problems import TooMany, Unauthorized
from nocta.service.store import Store


def test_nothing_without_a_token(connect: Connect, client: TestClient, case: str) -> None:
    stranger = connect(token=None)
    described = client.get("/api/openapi.json").json()["paths"]
    for path, methods in described.items():
        address = (
            path.replace("{case_id}", case).replace("{slot}", "0").replace("{service_id}", "x")
        )
        for method in methods:
            answer = stranger.request(method, address, json={})
            assert answer.status_code == 401, (method, path)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert stranger.get("/health").json() == {"status": "ok"}
    assert client.get(f"/api/cases/{case}").json()["version"] == 1


@pytest.mark.parametrize("role", ["read", "write"])
def test_a_read_token_only_reads(
    role: str, store: Store, connect: Connect, client: TestClient, case: str
) -> None:
    client = connect(create_token(store, "me", role, days=1))  # type: ignore[arg-type]
    assert client.get(f"/api/cases/{case}").status_code == 200
    assert client.post(f"/api/cases/{case}/what-if", json={}).status_code == 200
    changes = [
        client.post("/api/cases", json={"name": "x"}),
        client.post("/api/demo-case"),
        client.post(f"/api/cases/{case}/visits", json={"slot": 0}),
        client.patch(f"/api/cases/{case}/settings", json={"budget": 1}),
        client.post(f"/api/cases/{case}/close", json={}),
    ]
    may = role == "write"
    assert all(answer.is_success == may for answer in changes)
    if not may:
        assert {answer.status_code for answer in changes} == {403}
        assert len(store.events(case)) == 1


def test_tokens_expire_and_are_revoked(store: Store, connect: Connect) -> None:
    old = create_token(store, "old", "write", days=0.0)
    gone = create_token(store, "gone", "write", days=None)
    revoke_token(store, "gone")
    for token, state in ((old, "expired"), (gone, "revoked")):
        answer = connect(token).get("/api/cases")
        assert (answer.status_code, state in answer.json()["error"]) == (401, True)
    assert [row.state for row in list_tokens(store)] == ["revoked", "expired"]
    with pytest.raises(ConfigError, match="no valid token 'gone'"):
        revoke_token(store, "gone")
    with pytest.raises(ConfigError, match="token 'old' already"):
        create_token(store, "old", "read", days=1)


def test_the_file_holds_no_token(store: Store, tmp_path: Path) -> None:
    token = create_token(store, "me", "write", days=1)
    store.close()
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert token.encode() not in data
    assert b"me" in data


def test_the_page_has_a_session(connect: Connect, store: Store, case: str) -> None:
    page = connect(token=None)
    assert page.get("/open?key=wrong", follow_redirects=False).status_code == 401
    opened = page.get(f"/open?key={KEY}", follow_redirects=False)
    assert (opened.status_code, opened.headers["Location"]) == (303, "/")
    cookie = opened.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert KEY not in page.cookies[COOKIE]
    assert page.get("/api/cases").status_code == 200
    # Another site cannot write with it.
    assert page.post("/api/cases", json={"name": "x"}).status_code == 403
    written = page.post("/api/cases", json={"name": "x"}, headers={PAGE_HEADER: "1"})
    assert written.status_code == 201
    page.delete("/session")
    assert page.get("/api/cases").status_code == 401


def test_a_token_opens_a_session_and_revoking_ends_it(connect: Connect, store: Store) -> None:
    token = create_token(store, "me", "read", days=1)
    page = connect(token=None)
    assert page.post("/session", json={"token": token}).status_code == 204
    assert page.get("/api/model").json()["role"] == "read"
    revoke_token(store, "me")
    assert page.get("/api/model").status_code == 401


def test_requests_are_limited(store: Store, connect: Connect) -> None:
    now = [0.0]
    access = Access(store, "key", per_second=0.5, clock=lambda: now[0])
    person = access.of_token("key", "here")
    for _ in range(5):
        access.count(person)
    with pytest.raises(TooMany):
        access.count(person)
    now[0] = 2.0
    access.count(person)
    assert connect(per_second=0.01).get("/api/cases").status_code == 429


def test_guessing_is_limited(store: Store) -> None:
    now = [0.0]
    access = Access(store, "key", clock=lambda: now[0])
    for _ in range(10):
        with pytest.raises(Unauthorized):
            access.of_token("guess", "somewhere")
    with pytest.raises(TooMany):
        access.of_token("guess", "somewhere")
    assert access.of_token("key", "somewhere").role == "write"
    with pytest.raises(Unauthorized):
        access.of_token("guess", "elsewhere")
    now[0] = 60.0
    with pytest.raises(Unauthorized):
        access.of_token("guess", "somewhere")


def test_sessions_end(store: Store) -> None:
    now = [0.0]
    access = Access(store, "key", clock=lambda: now[0])
    session = access.open_session("key", "here")
    now[0] = 11 * 3600.0
    assert access.of_session(session, "here").role == "write"
    now[0] += 13 * 3600.0
    with pytest.raises(Unauthorized, match="session is over"):
        access.of_session(session, "here")
