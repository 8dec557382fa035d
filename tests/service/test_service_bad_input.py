"""Whatever is sent to the API, it answers; it never fails."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="bad input is not tested: schemathesis is missing")

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from over_http import KEY

#: Requests per operation; `make soak-service` sends more.
N_EXAMPLES = 3


def test_nothing_makes_it_fail(client: TestClient) -> None:
    described = schemathesis.openapi.from_asgi("/api/openapi.json", client.app)
    for operation in described.get_all_operations():
        send_anything(operation.ok(), N_EXAMPLES)


def send_anything(operation: Any, n_examples: int) -> None:
    """Send drawn requests to one operation; none may fail."""

    @settings(
        max_examples=n_examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        answer = case.call(headers={"Authorization": f"Bearer {KEY}"})
        assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text[:200]}"

    send()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[" * 5000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"slot": 1e400}', "application/json"),
        (b'{"slot": ' + b"9" * 5000 + b"}", "application/json"),
        (b'{"slot": 0, "results": {"bilirubin": {"value": []}}}', "application/json"),
        (b'{"name": "\\ud800"}', "application/json"),
        (b'{"name": "\\u0000"}', "application/json"),
        (b"slot=1", "application/x-www-form-urlencoded"),
        (b"<xml/>", "text/xml"),
    ],
)
@pytest.mark.parametrize("path", ["/api/cases", "/api/plan", "/cds-services/nocta-patient-view"])
def test_broken_bodies_are_answered(
    client: TestClient, path: str, content: bytes, kind: str
) -> None:
    answer = client.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/json"
