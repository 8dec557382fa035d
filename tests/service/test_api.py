"""A case from start to finish through the API, and what is refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from over_http import KEY, WEIGHT, Connect

from nocta.model.nocta import NOCTA
from nocta.service.app import Settings, create_app
from nocta.service.planner import ServedModel
from nocta.service.store import Store
from nocta.tables.history_table import read_history

FIRST = {"fatigue": {"value": 4}, "bilirubin": {"value": 1.6}, "albumin": {"value": 3.6}}


def visit(client: TestClient, case: str, **body: Any) -> Any:
    return client.post(f"/api/cases/{case}/visits", json=body)


def test_a_case_from_start_to_finish(client: TestClient, case: str) -> None:
    new = client.get(f"/api/cases/{case}").json()
    assert (new["now"], new["next"]["slot"], new["spent"]) == (-1, 0, 0.0)
    assert new["next"]["due"] == "2026-01-10"
    first = visit(client, case, date="2026-01-12", results=FIRST).json()
    assert (first["now"], first["slots"][0]["date"]) == (0, "2026-01-12")
    assert first["spent"] == 1 + 7 + 5 + 10 + 5
    assert [sum(cost for _, cost in line["items"]) for line in first["ledger"]] == [28.0]
    states = {f["name"]: [c["state"] for c in f["cells"]] for f in first["features"]}
    assert states["bilirubin"][0] == "acquired"
    assert states["platelets"][0] == "passed over"
    assert states["drinks_per_week"][1] == "closed"
    planned = {
        (slot, f["name"])
        for f in first["features"]
        for slot, c in enumerate(f["cells"])
        if c["state"] == "planned"
    }
    best = first["next"]["plans"][0]["visits"]
    assert planned == {(int(slot), name) for slot, names in best.items() for name in names}
    second = visit(client, case, slot=1, results={"albumin": {"unavailable": True}}).json()
    assert second["features"][3]["cells"][1]["state"] == "unavailable"
    assert second["spent"] == first["spent"]
    done = client.post(f"/api/cases/{case}/close", json={"reason": "moved"}).json()
    assert (done["open"], done["read_only"]) == (False, "This case is closed.")
    assert visit(client, case, slot=2).status_code == 409
    kinds = [e["kind"] for e in client.get(f"/api/cases/{case}/history").json()]
    assert kinds == ["opened", "visited", "entered", "visited", "entered", "closed"]


def test_it_plans_what_the_model_decides(
    client: TestClient, case: str, served: ServedModel
) -> None:
    entered = visit(client, case, slot=0, results=FIRST).json()
    history = served.history(client.app.state.desk.case(case))  # type: ignore[attr-defined]
    decided = served.model.decide(history, WEIGHT)
    options = [decided.plan, decided.runner_up]
    assert entered["next"]["plans"][0]["visits"] in [
        {str(t): f for t, f in plan.visits.items()} for plan in options if plan is not None
    ]
    assert entered["next"]["predictions"][0] == pytest.approx(decided.prediction, abs=1e-6)


def test_the_export_is_a_history_that_plan_reads(
    client: TestClient, case: str, served: ServedModel, tmp_path: Path
) -> None:
    visit(client, case, date="2026-01-10", results=FIRST)
    gone = {"elastography": {"unavailable": True}}
    visit(client, case, date="2026-07-20", results=gone)
    file = tmp_path / "case.csv"
    file.write_text(client.get(f"/api/cases/{case}/export").text)
    model: NOCTA = served.model
    table = read_history(file, model.schema_, model.catalog_)
    ours = served.history(client.app.state.desk.case(case))  # type: ignore[attr-defined]
    assert table.time.tolist() == [1]
    for name in ("values", "acquired", "unavailable", "context"):
        left, right = getattr(table.history, name), getattr(ours, name)
        assert (left == right)[left == left].all()
        assert left.shape == right.shape
    both = client.get(f"/api/cases/{case}/export?format=json").json()
    assert both["case"]["id"] == case
    assert len(both["history"]) == 5


def test_a_correction_stays_in_the_history(client: TestClient, case: str) -> None:
    visit(client, case, slot=0, results=FIRST)
    body = {"slot": 0, "feature": "bilirubin", "result": {"value": 6.1}, "reason": "typed 1.6"}
    after = client.post(f"/api/cases/{case}/corrections", json=body).json()
    cell = after["features"][2]["cells"][0]
    assert (cell["values"], cell["corrected"]) == ({"bilirubin": 6.1}, True)
    last = client.get(f"/api/cases/{case}/history").json()[-1]["body"]
    assert (last["before"], last["after"]) == ({"bilirubin": 1.6}, {"bilirubin": 6.1})
    assert last["reason"] == "typed 1.6"
    back = {"slot": 0, "feature": "albumin"}
    gone = client.post(f"/api/cases/{case}/corrections", json=back).json()
    assert gone["features"][3]["cells"][0]["state"] == "passed over"
    older = {"context": "age", "value": 46}
    assert client.post(f"/api/cases/{case}/corrections", json=older).json()["context"]["age"] == 46


def test_results_can_follow_and_are_never_overwritten(client: TestClient, case: str) -> None:
    visit(client, case, slot=0, results=FIRST)
    address = f"/api/cases/{case}/visits/0/results"
    more = client.post(address, json={"results": {"platelets": {"value": 210}}})
    assert more.json()["features"][4]["cells"][0]["state"] == "acquired"
    again = client.post(address, json={"results": {"platelets": {"value": 220}}})
    assert again.status_code == 409
    assert "correct it instead" in again.json()["error"]


def test_a_repeated_request_changes_nothing(client: TestClient, case: str) -> None:
    headers = {"Idempotency-Key": "one"}
    body = {"slot": 0, "results": FIRST}
    address = f"/api/cases/{case}/visits"
    first = client.post(address, json=body, headers=headers)
    again = client.post(address, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    other = client.post(address, json={"slot": 1}, headers=headers)
    assert other.status_code == 422
    assert "used for another request" in other.json()["error"]
    opened = [
        client.post("/api/cases", json={"name": "twice"}, headers={"Idempotency-Key": "two"})
        for _ in range(2)
    ]
    assert opened[0].json()["id"] == opened[1].json()["id"]
    assert len(client.get("/api/cases").json()) == 2


def test_a_change_to_an_old_version_is_refused(client: TestClient, case: str) -> None:
    looked = client.get(f"/api/cases/{case}").headers["ETag"]
    assert visit(client, case, slot=0).status_code == 200
    address = f"/api/cases/{case}/visits"
    late = client.post(address, json={"slot": 1}, headers={"If-Match": looked})
    assert late.status_code == 409
    assert "changed elsewhere" in late.json()["error"]
    assert client.get(f"/api/cases/{case}").json()["now"] == 0


def test_what_if_changes_nothing(client: TestClient, case: str) -> None:
    before = visit(client, case, slot=0, results=FIRST).json()
    address = f"/api/cases/{case}/what-if"
    poor = client.post(address, json={"budget": before["spent"]}).json()
    assert (poor["stop"], poor["stop_reason"], poor["remaining"]) == (True, "budget", 0.0)
    lavish = client.post(address, json={"cost_weight": 0.0}).json()
    assert sum(map(len, lavish["plans"][0]["visits"].values())) > sum(
        map(len, before["next"]["plans"][0]["visits"].values())
    )
    ruled_out = before["next"]["features"][0]
    without = client.post(address, json={"ruled_out": [ruled_out]}).json()
    visits = without["plans"][0]["visits"].values()
    assert all(ruled_out not in names for names in visits)
    dear = client.post(address, json={"prices": {ruled_out: 1e6}}).json()
    assert ruled_out not in dear["features"]
    slot = before["next"]["slot"]
    later = client.post(address, json={"closed_visits": [slot]}).json()
    assert later["slot"] != slot
    assert client.get(f"/api/cases/{case}").json() == before


def test_what_to_acquire_at_a_visit_that_is_happening(client: TestClient, case: str) -> None:
    visit(client, case, slot=0, results=FIRST)
    body = {"arriving": 2, "closed_visits": [3, 4], "cost_weight": 0.0}
    found = client.post(f"/api/cases/{case}/what-if", json=body).json()
    assert found["slot"] == 2
    refused = client.post(f"/api/cases/{case}/what-if", json={"arriving": 0})
    assert refused.status_code == 409


def test_settings_are_kept(client: TestClient, case: str) -> None:
    address = f"/api/cases/{case}/settings"
    kept = client.patch(address, json={"budget": 40, "ruled_out": ["elastography"]}).json()
    assert (kept["next"]["budget"], kept["next"]["ruled_out"]) == (40, ["elastography"])
    assert kept["next"]["cost_weight"] == WEIGHT
    thorough = client.patch(address, json={"cost_weight": 0.0, "budget": None}).json()
    assert (thorough["next"]["budget"], thorough["next"]["cost_weight"]) == (None, 0.0)


def test_a_plan_without_a_case(client: TestClient, case: str) -> None:
    kept = visit(client, case, slot=0, results=FIRST).json()["next"]
    body = {"context": {"age": 64, "sex": "F"}, "visits": [{"slot": 0, "results": FIRST}]}
    found = client.post("/api/plan", json=body).json()
    assert {**found, "due": None} == {**kept, "due": None}
    back = {"visits": [{"slot": 1}, {"slot": 0}]}
    assert client.post("/api/plan", json=back).status_code == 409


def test_every_operating_point_is_an_alternative(
    client: TestClient, case: str, served: ServedModel
) -> None:
    found = client.get(f"/api/cases/{case}/alternatives").json()
    assert [f["cost_weight"] for f in found] == [p.cost_weight for p in served.points]


def test_the_demo_case_is_one_request(client: TestClient) -> None:
    demo = client.post("/api/demo-case").json()
    assert demo["name"] == "Demo"
    assert demo["now"] == 0
    assert demo["spent"] > 0
    assert not demo["next"]["stop"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"slot": 0, "results": {"bilirubim": {"value": 1}}}, 404, "Did you mean 'bilirubin'?"),
        ({"slot": 0, "results": {"bilirubin": {"value": "high"}}}, 422, "which is not a number"),
        ({"slot": 0, "results": {"bilirubin": {"value": 1e300}}}, 422, "not a finite number"),
        ({"slot": 0, "results": {"bilirubin": {}}}, 422, "has no value; give one"),
        (
            {"slot": 0, "results": {"bilirubin": {"value": 1, "unavailable": True}}},
            422,
            "either not available or has a value",
        ),
        ({"slot": 0, "results": {"elastography": {"value": 1}}}, 422, "give values by column"),
        (
            {"slot": 0, "results": {"elastography": {"values": {"stifness": 1}}}},
            422,
            "Did you mean 'stiffness'?",
        ),
        ({"slot": 1, "results": {"drinks_per_week": {"value": 1}}}, 422, "cannot be acquired at"),
        ({"slot": 99}, 422, "Visit 100 is beyond the schedule this model knows, which has 5"),
        ({"slot": -1}, 422, "slot: "),
        ({"date": "2046-01-01"}, 422, "which ends at 3.5 years"),
        ({"date": "2020-01-01"}, 422, "is before the case starts"),
        ({"date": "soon"}, 422, "date: "),
        ({}, 422, "give its slot, its date, or both"),
        ({"slot": 0, "extra": 1}, 422, "extra: "),
    ],
)
def test_a_visit_that_cannot_be(
    client: TestClient, case: str, body: dict[str, Any], status: int, message: str
) -> None:
    before = client.get(f"/api/cases/{case}").json()
    answer = visit(client, case, **body)
    assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert client.get(f"/api/cases/{case}").json() == before


def test_time_moves_forward(client: TestClient, case: str) -> None:
    assert visit(client, case, date="2026-07-10").json()["now"] == 1
    back = visit(client, case, slot=0)
    assert (back.status_code, "time moves forward" in back.json()["error"]) == (409, True)
    earlier = visit(client, case, slot=2, date="2026-03-01")
    assert "is before the visit of 2026-07-10" in earlier.json()["error"]


def test_odd_dates_and_values_are_remarked(client: TestClient, case: str) -> None:
    visit(client, case, slot=0, date="2026-01-10", results={"bilirubin": {"value": 740}})
    found = visit(client, case, slot=1, date="2027-01-10").json()["remarks"]
    assert "belongs to visit 3; it was due around" in found[0]
    assert "bilirubin is 740 at visit 1; most training subjects had" in found[1]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(client: TestClient, case: str, word: str) -> None:
    body = '{"slot": 0, "results": {"bilirubin": {"value": VALUE}}}'.replace("VALUE", word)
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/api/cases/{case}/visits", content=body, headers=headers)
    assert answer.status_code == 422
    assert client.get(f"/api/cases/{case}").json()["now"] == -1


def test_a_case_of_another_model_can_only_be_read(
    client: TestClient, case: str, store: Store, served: ServedModel, connect: Connect
) -> None:
    visit(client, case, slot=0, results=FIRST)
    other = object.__new__(ServedModel)
    other.__dict__.update(served.__dict__, hash="another")
    app = create_app(other, store, Settings(key=KEY, hosts=("*",)))
    later = TestClient(app, headers={"Authorization": f"Bearer {KEY}"})
    seen = later.get(f"/api/cases/{case}").json()
    assert "made with another model" in seen["read_only"]
    assert seen["next"] is None
    assert seen["features"][0]["cells"][0]["values"]
    assert visit(later, case, slot=1).status_code == 409
    assert later.post(f"/api/cases/{case}/what-if", json={}).status_code == 409
    assert later.get(f"/api/cases/{case}/export?format=json").status_code == 200
    assert "use format=json" in later.get(f"/api/cases/{case}/export").json()["error"]
    assert later.get("/api/cases").json()[0]["same_model"] is False


def test_large_bodies_are_refused(connect: Connect, case: str) -> None:
    client = connect(largest_body=2000)
    long = {"reason": "x" * 3000}
    assert client.post(f"/api/cases/{case}/close", json=long).status_code == 413

    def pieces() -> Any:
        yield from (b"x" * 500 for _ in range(10))

    answer = client.post(f"/api/cases/{case}/close", content=pieces())
    assert (answer.status_code, "larger than 2,000" in answer.json()["error"]) == (413, True)


def test_answers_carry_security_headers(client: TestClient, case: str) -> None:
    for address in ("/", "/api/cases", "/static/main.js", "/nowhere", f"/api/cases/{case}"):
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert client.get("/api/cases").headers["Cache-Control"] == "no-store"
    for trick in ("/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/app.py"):
        assert client.get(trick).status_code == 404


def test_other_host_names_are_refused(connect: Connect) -> None:
    client = connect(hosts=("127.0.0.1",))
    answer = client.get("/api/cases", headers={"Host": "evil.example"})
    assert answer.status_code == 400


def test_the_log_holds_no_values(
    client: TestClient, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="nocta.service"):
        visit(client, case, slot=0, results={"bilirubin": {"value": 7.654321}})
        client.post(f"/api/cases/{case}/close", json={"reason": "private"})
        client.get("/api/cases/private-id")
    said = caplog.text
    assert "POST /api/cases/{case_id}/visits 200" in said
    assert not any(word in said for word in ("7.654321", "private", case, "bilirubin"))


def test_an_unexpected_error_tells_nothing(
    client: TestClient, case: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("N" + "001" * 2)

    monkeypatch.setattr(ServedModel, "explain", broken)
    answer = client.get(f"/api/cases/{case}")
    assert (answer.status_code, answer.json()["error"]) == (500, "Unexpected error; see the log.")
    assert "RuntimeError" in caplog.text
    assert "N001001" not in caplog.text


def test_the_interface_is_described(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    assert "/api/cases/{case_id}/what-if" in described["paths"]
    assert "CaseView" in described["components"]["schemas"]
    json.dumps(described)
