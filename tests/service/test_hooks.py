"""CDS Hooks: cards from FHIR records; what is not understood is said, never guessed."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("fhir.resources", reason="the service needs the extra [service]")

from fhir.resources.R4B.servicerequest import ServiceRequest

from nocta.service.hooks import HookIn, cards_for
from nocta.service.planner import ServedModel
from nocta.service.units import convert
from nocta.tables.schema import Schema

START = date(2026, 1, 12)
CODES = {"bilirubin": ("1975-2", "mg/dL"), "albumin": ("1751-7", "g/dL")}
PATIENT = {
    "resourceType": "Patient",
    "id": "1288992",
    "gender": "female",
    "birthDate": "1961-05-02",
}


def observation(code: str, value: float | None, unit: str, day: str, **more: Any) -> dict[str, Any]:
    quantity = {"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": unit}
    return {
        "resource": {
            "resourceType": "Observation",
            "status": "final",
            "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
            "effectiveDateTime": day,
            **({} if value is None else {"valueQuantity": quantity}),
            **more,
        }
    }


def bundle(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"resourceType": "Bundle", "type": "searchset", "entry": list(entries)}


USUAL = bundle(
    observation("1975-2", 1.6, "mg/dL", "2026-01-12T09:00:00+01:00"),
    observation("1751-7", 36.0, "g/L", "2026-01-12"),
)


def view(observations: Any, patient: Any = PATIENT) -> dict[str, Any]:
    """The example of the specification, with our records prefetched."""
    return {
        "hookInstance": "d1577c69-dfbe-44ad-ba6d-3e05e953b2ea",
        "fhirServer": "http://hooks.smarthealthit.org:9080",
        "hook": "patient-view",
        "fhirAuthorization": {"access_token": "some-token", "token_type": "Bearer"},
        "context": {"userId": "Practitioner/example", "patientId": "1288992", "encounterId": "89"},
        "prefetch": {"patient": patient, "observations": observations},
    }


def select(*codes: str) -> dict[str, Any]:
    orders = [
        {
            "resource": {
                "resourceType": "ServiceRequest",
                "id": f"order{i}",
                "status": "draft",
                "intent": "order",
                "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
                "subject": {"reference": "Patient/1288992"},
            }
        }
        for i, code in enumerate(codes)
    ]
    context = {
        "userId": "Practitioner/example",
        "patientId": "1288992",
        "selections": [f"ServiceRequest/order{i}" for i in range(len(codes))],
        "draftOrders": {"resourceType": "Bundle", "entry": orders},
    }
    return {**view(USUAL), "hook": "order-select", "context": context}


def test_the_services_are_listed_with_what_to_prefetch(client: TestClient) -> None:
    services = client.get("/cds-services").json()["services"]
    assert [s["hook"] for s in services] == ["patient-view", "order-select"]
    for service in services:
        assert {"id", "title", "description", "prefetch"} <= service.keys()
        assert "http://loinc.org|1975-2" in service["prefetch"]["observations"]


def test_a_card_says_what_to_order_today(served: ServedModel) -> None:
    half_a_year = START + timedelta(days=183)
    card = cards_for(HookIn(**view(USUAL)), served, half_a_year)[0]
    assert card.summary.startswith("Order ")
    assert " today, $" in card.summary
    assert len(card.summary) < 140
    assert "Worth the price here" in str(card.detail)
    assert card.suggestions
    for suggestion in card.suggestions:
        order = ServiceRequest.model_validate(suggestion["actions"][0]["resource"])
        assert order.code.coding[0].code in ("1975-2", "1751-7", "777-3")
    soon = cards_for(HookIn(**view(USUAL)), served, START + timedelta(days=3))[0]
    assert " around 20" in soon.summary
    assert soon.suggestions == []


def test_the_card_is_the_plan_for_the_same_records(client: TestClient) -> None:
    body = view(USUAL)
    body["prefetch"]["patient"] = None
    card = client.post("/cds-services/nocta-patient-view", json=body).json()["cards"][0]
    results = {"bilirubin": {"value": 1.6}, "albumin": {"value": 3.6}}
    asked = {"visits": [{"slot": 0, "results": results}]}
    slots = [None, *range(1, 5)]
    plans = [
        client.post("/api/plan", json=asked if s is None else {**asked, "arriving": s}).json()
        for s in slots
    ]
    assert any(
        set(p["reasons"]) <= set(card["detail"].replace("- ", "").split("\n")) for p in plans
    )
    assert card["indicator"] == "info"
    assert card["source"] == {"label": "nocta"}


def test_an_order_that_is_not_worth_it_gets_a_card(served: ServedModel) -> None:
    today = START + timedelta(days=183)
    planned = cards_for(HookIn(**view(USUAL)), served, today)[0].summary
    for name, (code, _) in CODES.items():
        cards = cards_for(HookIn(**select(code)), served, today)
        assert (not cards) == (name in planned)
    assert cards_for(HookIn(**select("99999-9")), served, today) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (observation("99999-9", 1.0, "mg/dL", "2026-01-12"), "1 observation has a code"),
        (observation("1975-2", 27.0, "umol/L", "2026-01-12"), "does not convert to mg/dL"),
        (observation("1975-2", None, "mg/dL", "2026-01-12"), "has no number"),
        (observation("1975-2", 1.0, "mg/dL", "2026"), "has no date"),
        (observation("1975-2", 1.0, "mg/dL", "2036-01-12"), "beyond the schedule"),
        ({"resource": {"resourceType": "Observation", "status": 5}}, "is not valid FHIR R4"),
    ],
)
def test_what_is_left_out_is_said(served: ServedModel, entry: Any, said: str) -> None:
    entries = [*USUAL["entry"], entry]
    card = cards_for(HookIn(**view(bundle(*entries))), served, START + timedelta(days=183))[0]
    assert said in str(card.detail)
    usual = cards_for(HookIn(**view(USUAL)), served, START + timedelta(days=183))[0]
    assert card.summary == usual.summary


def test_what_was_entered_in_error_does_not_count(served: ServedModel) -> None:
    wrong = observation("1975-2", 44.0, "mg/dL", "2026-01-12", status="entered-in-error")
    today = START + timedelta(days=183)
    with_it = cards_for(HookIn(**view(bundle(*USUAL["entry"], wrong))), served, today)[0]
    assert with_it.detail == cards_for(HookIn(**view(USUAL)), served, today)[0].detail


@pytest.mark.parametrize(
    ("prefetch", "summary"),
    [
        (None, "observations were not sent along"),
        ({"observations": {"resourceType": "OperationOutcome"}}, "could not be read"),
        ({"observations": {"resourceType": "Bundle"}}, "Nothing that this model uses"),
    ],
)
def test_missing_records_are_an_information_card(
    client: TestClient, prefetch: Any, summary: str
) -> None:
    body = {**view(USUAL), "prefetch": prefetch}
    answer = client.post("/cds-services/nocta-patient-view", json=body)
    assert answer.status_code == 200
    card = answer.json()["cards"][0]
    assert (summary in card["summary"], card["indicator"]) == (True, "info")


def test_a_wrong_service_or_hook_is_refused(client: TestClient) -> None:
    assert client.post("/cds-services/nowhere", json=view(USUAL)).status_code == 404
    crossed = client.post("/cds-services/nocta-order-select", json=view(USUAL))
    assert crossed.status_code == 422


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "expected"),
    [
        (16.0, "mg/L", "mg/dL", 1.6),
        (36.0, "g/L", "g/dL", 3.6),
        (210.0, "10*9/L", "10*3/uL", 210.0),
        (210.0, "x10^9/L", "10*3/uL", 210.0),
        (5.0, "mmol/L", "umol/L", 5000.0),
        (120.0, "mmHg", "mm[Hg]", 120.0),
        (16.0, "kPa", "mm[Hg]", 120.009),
        (1.7, "m", "cm", 170.0),
        (88.0, "umol/L", "mg/dL", None),
        (88.0, "nonsense", "mg/dL", None),
        (88.0, "", "mg/dL", None),
        (3.0, "score", "score", 3.0),
    ],
)
def test_units_convert_or_do_not(
    value: float, unit: str, wanted: str, expected: float | None
) -> None:
    found = convert(value, unit, wanted)
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-4))


def test_codes_survive_fitting(served: ServedModel) -> None:
    schema = Schema.model_validate(served.model.schema_)
    assert schema.features["bilirubin"].loinc == "1975-2"
    assert schema.features["bilirubin"].unit == "mg/dL"
