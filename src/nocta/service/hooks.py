"""CDS Hooks: cards for the software of a hospital, from the records it sends along.

`patient-view` says what to acquire today, or when next; `order-select` says what a chosen order is
worth. The service asks no other system: what is not prefetched is answered with a card that says
so.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from nocta.model.wording import listed
from nocta.service.caller import Reader, TheDesk
from nocta.service.fhir import LOINC, Records, codings, read_records
from nocta.service.planner import Conditions, ServedModel
from nocta.service.problems import NotFound, ServiceError
from nocta.service.view import Recommended, recommend

Hook = Literal["patient-view", "order-select"]
_LONGEST_SUMMARY = 140  # the specification asks for fewer characters
router = APIRouter(prefix="/cds-services", tags=["CDS Hooks"])


class HookIn(BaseModel):
    """A call of a service; what is not used here is allowed and ignored."""

    model_config = ConfigDict(extra="allow")

    hook: str = Field(max_length=100)
    hookInstance: str = Field(max_length=200)
    context: dict[str, Any]
    prefetch: dict[str, Any] | None = None


class CdsService(BaseModel):
    """One service in the list."""

    hook: Hook
    id: str
    title: str
    description: str
    prefetch: dict[str, str]


class CdsServices(BaseModel):
    """What this server offers."""

    services: list[CdsService]


class Source(BaseModel):
    """Where a card comes from."""

    label: str = "nocta"


class Card(BaseModel):
    """One card."""

    uuid: str = Field(default_factory=lambda: str(uuid4()))
    summary: str
    indicator: Literal["info", "warning", "critical"] = "info"
    detail: str | None = None
    source: Source = Source()
    suggestions: list[dict[str, Any]] = []
    selectionBehavior: Literal["any"] | None = None


class Cards(BaseModel):
    """The answer to a call."""

    cards: list[Card]


@router.get("")
def discover(desk: TheDesk, person: Reader) -> CdsServices:
    """The services, and what to prefetch for them."""
    codes = ",".join(f"{LOINC}|{code}" for code in codings(desk.served.schema))
    patient = "Patient/{{context.patientId}}"
    observations = f"Observation?patient={{{{context.patientId}}}}&code={codes}"
    prefetch = {"patient": patient, "observations": observations}
    return CdsServices(
        services=[
            CdsService(
                hook="patient-view",
                id="nocta-patient-view",
                title="What to acquire next",
                description="What to acquire today or next, what it costs, and why.",
                prefetch=prefetch,
            ),
            CdsService(
                hook="order-select",
                id="nocta-order-select",
                title="What this order is worth",
                description="Whether a chosen order is worth its cost for this patient now.",
                prefetch=prefetch,
            ),
        ]
    )


@router.post("/{service_id}", response_model_exclude_none=True)
def answer(
    desk: TheDesk,
    person: Reader,
    service_id: Annotated[str, Path(max_length=100)],
    asked: HookIn,
) -> Cards:
    """Cards for one patient; nothing is stored."""
    hooks: dict[str, Hook] = {
        "nocta-patient-view": "patient-view",
        "nocta-order-select": "order-select",
    }
    if service_id not in hooks:
        raise NotFound(f"There is no CDS service '{service_id[:60]}'.")
    if asked.hook != hooks[service_id]:
        raise ServiceError(f"'{service_id}' answers the hook '{hooks[service_id]}'.")
    return Cards(cards=cards_for(asked, desk.served, date.today()))


def cards_for(asked: HookIn, served: ServedModel, today: date) -> list[Card]:
    """The cards of one call, made on a day."""
    if not codings(served.schema):
        return [_info("No feature of this model has a LOINC code.", _NO_CODES)]
    if not served.schedule.is_dated:
        return [_info("This model counts visits, not dates.", _NO_DATES)]
    prefetch = asked.prefetch or {}
    bundle = prefetch.get("observations")
    if not isinstance(bundle, dict):
        return [_info("The patient's observations were not sent along.", _NO_PREFETCH)]
    try:
        records = read_records(_mapping(prefetch.get("patient")), bundle, served)
    except ServiceError as error:
        return [_info("The observations could not be read.", str(error))]
    if not records.n_used:
        notes = [*records.notes, "Without a dated value of the model, there is no plan."]
        return [_info("Nothing that this model uses was found.", _bullets(notes))]
    slot, found = _plan_for(records, served, today)
    if asked.hook == "order-select":
        return _order_cards(asked, found, slot, served, records)
    return [_plan_card(asked, found, slot, served, records)]


_NO_CODES = 'Add `loinc = "..."` and `unit = "..."` to the features in schema.toml; fit again.'
_NO_DATES = "Cards need a schedule with dates: `time`, `grid` and `time_unit` in schema.toml."
_NO_PREFETCH = (
    "This service asks no other system. Configure the prefetch templates that "
    "`GET /cds-services` lists, in particular `observations`."
)


def _plan_for(records: Records, served: ServedModel, today: date) -> tuple[int | None, Recommended]:
    """The slot of today, if it can still be planned, and the plan from there."""
    case = records.case
    assert case.start is not None
    try:
        slot: int | None = served.schedule.slot_of(today, case.start)
    except ServiceError:
        slot = None
    if slot is None or slot <= case.now:
        return None, recommend(case, served, Conditions(served.cost_weight))
    return slot, recommend(case, served, Conditions(served.cost_weight, arriving=slot))


def _plan_card(
    asked: HookIn, found: Recommended, slot: int | None, served: ServedModel, records: Records
) -> Card:
    now = slot is not None and found.slot == slot
    when = "today" if now else f"around {found.due}"
    words = served.words
    if found.stop:
        summary = "Nothing more to acquire"
    else:
        summary = f"Order {listed(found.features)} {when}, {words.money(found.cost)}"
        summary += _not_before(found, served, records)
    detail = [*found.reasons, *(f"Note: {note}" for note in records.notes)]
    detail.append(f"From {records.n_used} values since {records.case.start}.")
    suggestions = [] if found.stop or not now else _suggestions(asked, found, served)
    return Card(
        summary=_short(summary),
        detail=_bullets(detail),
        suggestions=suggestions,
        selectionBehavior="any" if suggestions else None,
    )


def _not_before(found: Recommended, served: ServedModel, records: Records) -> str:
    """What is planned, but only later: the most expensive of it."""
    visits, first = found.plans[0].visits, found.slot
    later = {
        name: slot
        for slot in sorted(visits, reverse=True)
        for name in visits[slot]
        if slot != first and name not in found.features
    }
    if not later:
        return ""
    costs = served.catalog.costs
    name = max(later, key=lambda n: costs[later[n], served.catalog.names.index(n)])
    due = served.schedule.date_of(later[name], records.case.start)
    return f"; no {name} before {due}"


def _order_cards(
    asked: HookIn, found: Recommended, slot: int | None, served: ServedModel, records: Records
) -> list[Card]:
    """A card for each chosen order that the plan does not contain now."""
    known = codings(served.schema)
    chosen = [
        known[coding["code"]].feature
        for order in _chosen_orders(asked)
        for coding in _list((_mapping(order.get("code")) or {}).get("coding"))
        if _is_known(coding, known)
    ]
    now = found.features if slot is not None and found.slot == slot else []
    worth = {e.feature: e for e in found.passed_over}
    cards = []
    for name in dict.fromkeys(chosen):
        if name in now:
            continue
        effect = worth.get(name)
        detail = [found.headline]
        if effect is not None and effect.worth is not None:
            price = served.words.money(effect.cost)
            detail.insert(0, f"Worth {served.words.money(max(effect.worth, 0))}, costs {price}.")
        detail += [f"Note: {note}" for note in records.notes]
        summary = _short(f"{name} is not expected to be worth its cost today")
        cards.append(Card(summary=summary, detail=_bullets(detail)))
    return cards


def _chosen_orders(asked: HookIn) -> list[dict[str, Any]]:
    """The drafts that were selected; all of them if the call does not say which."""
    selections = _list(asked.context.get("selections"))
    drafts = _list((_mapping(asked.context.get("draftOrders")) or {}).get("entry"))
    orders = [_mapping((_mapping(draft) or {}).get("resource")) or {} for draft in drafts]
    names = [f"{order.get('resourceType')}/{order.get('id')}" for order in orders]
    return [o for o, n in zip(orders, names, strict=True) if not selections or n in selections]


def _is_known(coding: Any, known: dict[str, Any]) -> bool:
    if not isinstance(coding, dict) or coding.get("system") != LOINC:
        return False
    return isinstance(coding.get("code"), str) and coding["code"] in known


def _suggestions(asked: HookIn, found: Recommended, served: ServedModel) -> list[dict[str, Any]]:
    """Draft orders that the user can accept, for features with a code."""
    subject = {"reference": f"Patient/{asked.context.get('patientId', '')}"}
    made = []
    for code, coding in codings(served.schema).items():
        if coding.feature not in found.features:
            continue
        order = {
            "resourceType": "ServiceRequest",
            "status": "draft",
            "intent": "proposal",
            "code": {"coding": [{"system": LOINC, "code": code}], "text": coding.column},
            "subject": subject,
        }
        action = {"type": "create", "description": f"Order {coding.column}", "resource": order}
        label = f"Order {coding.column}"
        made.append({"label": label, "uuid": str(uuid4()), "actions": [action]})
    return made


def _mapping(given: Any) -> dict[str, Any] | None:
    return given if isinstance(given, dict) else None


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _info(summary: str, detail: str) -> Card:
    return Card(summary=_short(summary), detail=detail)


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _short(text: str) -> str:
    return text if len(text) < _LONGEST_SUMMARY else f"{text[: _LONGEST_SUMMARY - 2]}…"
