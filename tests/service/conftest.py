"""One service over a quick fit of the example, with an empty store for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra [service]")

from fastapi import FastAPI
from fastapi.testclient import TestClient
from over_http import KEY, WEIGHT, Connect

from nocta.service.access import Access
from nocta.service.app import Settings, create_app
from nocta.service.desk import Desk
from nocta.service.planner import ServedModel
from nocta.service.store import Store


@pytest.fixture(scope="session")
def served(fitted_model: Path) -> ServedModel:
    return ServedModel(fitted_model, WEIGHT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    kept = Store(tmp_path / "cases.db")
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def application(served: ServedModel) -> Iterator[FastAPI]:
    """Made once, since its routes take a while; every test gives it a store."""
    nothing = Store(":memory:")
    yield create_app(served, nothing, Settings(hosts=("*",)))
    nothing.close()


@pytest.fixture
def connect(application: FastAPI, served: ServedModel, store: Store) -> Connect:
    """A client of the service over the store of the test."""

    def connect(token: str | None = KEY, per_second: float = 50.0, **settings: Any) -> TestClient:
        app = application
        if settings:
            app = create_app(served, store, Settings(**{"hosts": ("*",), **settings}))
        app.state.desk = Desk(store, served)
        app.state.access = Access(store, KEY, per_second)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return TestClient(app, headers=headers, raise_server_exceptions=False)

    return connect


@pytest.fixture
def client(connect: Connect) -> TestClient:
    return connect(per_second=10_000)


@pytest.fixture
def case(client: TestClient) -> str:
    """A case before its first visit."""
    known = {"age": 64, "sex": "F"}
    body = {"name": "N001", "context": known, "start": "2026-01-10"}
    answer = client.post("/api/cases", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
