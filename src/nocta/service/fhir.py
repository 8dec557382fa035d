"""FHIR R4 resources become visits of a case: what is used, and what is left out and why.

Observations are mapped to columns by the LOINC codes of `schema.toml`. Nothing is guessed: an
unknown code, a unit that does not convert or a resource that is not valid becomes a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from nocta.service.cases import Case, Visit
from nocta.service.planner import ServedModel
from nocta.service.problems import ServiceError
from nocta.service.units import convert
from nocta.tables.schema import Schema

LOINC = "http://loinc.org"
#: Observations that count; others are not results yet, or were entered by mistake.
_COUNTED = ("final", "amended", "corrected")


@dataclass(frozen=True)
class Coding:
    """What a code means to the model."""

    feature: str
    column: str
    unit: str | None


@dataclass
class Records:
    """What the resources of one subject say."""

    case: Case
    notes: list[str] = field(default_factory=list)  # what was left out, in sentences
    n_used: int = 0


@dataclass(frozen=True)
class _Reading:
    """One value of one column on one day; `None` if it was asked for and is not available."""

    day: date
    coding: Coding
    value: float | None


def codings(schema: Schema) -> dict[str, Coding]:
    """What each LOINC code of a schema means."""
    found = {}
    for name, feature in schema.features.items():
        columns = feature.columns or [name]
        for column in columns:
            code = _of_column(feature.loinc, column, columns)
            if code is not None:
                found[code] = Coding(name, column, _of_column(feature.unit, column, columns))
    return found


def _of_column(given: str | dict[str, str] | None, column: str, columns: list[str]) -> str | None:
    if isinstance(given, dict):
        return given.get(column)
    return given if len(columns) == 1 else None


def read_records(
    patient: Mapping[str, Any] | None, bundle: Mapping[str, Any], served: ServedModel
) -> Records:
    """A case from a Patient and a Bundle of Observations."""
    from fhir.resources.R4B.observation import Observation

    records, known, unknown = Records(Case("")), codings(served.schema), Counter[str]()
    readings: list[_Reading] = []
    for resource in _resources(bundle, "Observation"):
        observation = _valid(Observation, resource, records)
        if observation is not None and resource.get("status") in _COUNTED:
            readings += _readings(resource, known, unknown, records, served)
    if unknown:
        n = unknown.total()
        records.notes.append(
            f"{n} {'observation has a code' if n == 1 else 'observations have codes'} that this "
            f"model does not use."
        )
    readings.sort(key=lambda reading: reading.day)
    start = readings[0].day if readings else None
    records.case.start = None if start is None else start.isoformat()
    for reading in readings:
        _place(reading, records, served)
    _read_patient(patient, start, records, served)
    return records


def _resources(bundle: Mapping[str, Any], kind: str) -> Iterable[dict[str, Any]]:
    entries = bundle.get("entry") or []
    if bundle.get("resourceType") != "Bundle" or not isinstance(entries, list):
        raise ServiceError(f"Expected a FHIR Bundle; found '{bundle.get('resourceType')}'.")
    for entry in entries:
        resource = entry.get("resource") if isinstance(entry, dict) else None
        if isinstance(resource, dict) and resource.get("resourceType") == kind:
            yield resource


def _valid(kind: Any, resource: dict[str, Any], records: Records) -> Any:
    """The resource as FHIR defines it, or `None` with a note of where it is wrong."""
    from pydantic import ValidationError

    try:
        return kind.model_validate(resource)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        name = resource.get("resourceType", "resource")
        records.notes.append(f"One {name} is not valid FHIR R4 (at '{place[:80]}') and left out.")
        return None


def _readings(
    resource: dict[str, Any],
    known: Mapping[str, Coding],
    unknown: Counter[str],
    records: Records,
    served: ServedModel,
) -> list[_Reading]:
    """The values of an Observation and its components."""
    day, found = _day_of(resource), []
    for part in (resource, *(resource.get("component") or ())):
        coding = next((known[code] for code in _codes(part) if code in known), None)
        if coding is None:
            if part is not resource or not resource.get("component"):
                unknown[resource.get("id", "")] += 1
            continue
        if day is None:
            records.notes.append(f"One {coding.column} has no date and is left out.")
            continue
        if part.get("dataAbsentReason"):
            found.append(_Reading(day, coding, None))
            continue
        value = _value(part, coding, records, served)
        if value is not None:
            found.append(_Reading(day, coding, value))
    return found


def _codes(part: Mapping[str, Any]) -> list[str]:
    codings = (part.get("code") or {}).get("coding") or []
    return [c.get("code", "") for c in codings if c.get("system") == LOINC]


def _day_of(resource: Mapping[str, Any]) -> date | None:
    period = resource.get("effectivePeriod") or {}
    text = (
        resource.get("effectiveDateTime")
        or resource.get("effectiveInstant")
        or period.get("start")
        or ""
    )
    try:
        return datetime.fromisoformat(text).date() if len(text) > 10 else date.fromisoformat(text)
    except ValueError:  # also a year or a month without a day
        return None


def _value(
    part: Mapping[str, Any], coding: Coding, records: Records, served: ServedModel
) -> float | None:
    """The value in the unit of the model, or `None` with a note."""
    categories = served.schema.categories.get(coding.column)
    concept, quantity = part.get("valueCodeableConcept"), part.get("valueQuantity")
    if categories is not None:
        texts = [part.get("valueString"), (concept or {}).get("text")]
        texts += [c.get("display") for c in (concept or {}).get("coding") or []]
        match = next((categories.index(t) for t in texts if t in categories), None)
        if match is None:
            known = ", ".join(categories)
            records.notes.append(f"One {coding.column} is none of {known} and left out.")
        return None if match is None else float(match)
    if not quantity or quantity.get("value") is None:
        records.notes.append(f"One {coding.column} has no number and is left out.")
        return None
    if quantity.get("comparator"):
        records.notes.append(
            f"One {coding.column} is only known as {quantity['comparator']} a limit; left out."
        )
        return None
    value = float(quantity["value"])
    if coding.unit is None:
        records.notes.append(
            f"{coding.column} has no unit in schema.toml, so one value of it is left out."
        )
        return None
    unit = quantity.get("code") or quantity.get("unit") or ""
    converted = convert(value, str(unit), coding.unit)
    if converted is None:
        records.notes.append(
            f"One {coding.column} is in '{str(unit)[:30]}', which does not convert to "
            f"{coding.unit}; left out."
        )
    return converted


def _place(reading: _Reading, records: Records, served: ServedModel) -> None:
    """Put a reading into its visit; the last one of a visit counts."""
    case, coding = records.case, reading.coding
    assert case.start is not None
    try:
        slot = served.schedule.slot_of(reading.day, case.start)
    except ServiceError as error:
        records.notes.append(f"One {coding.column} is left out: {error}")
        return
    m = served.catalog.names.index(coding.feature)
    if not served.catalog.open_slots[slot, m]:
        records.notes.append(f"{coding.feature} is not used at visit {slot + 1}; left out.")
        return
    visit = case.visits.setdefault(slot, Visit(reading.day.isoformat()))
    before = visit.results.get(coding.feature)
    if reading.value is not None:
        visit.results[coding.feature] = {**(before or {}), coding.column: reading.value}
    elif before is None:
        visit.results[coding.feature] = None
    records.n_used += 1


def _read_patient(
    patient: Mapping[str, Any] | None, start: date | None, records: Records, served: ServedModel
) -> None:
    """Age and sex, if the model uses them under these names; other context stays unknown."""
    patient, categories = patient or {}, served.schema.categories
    for name in served.catalog.context:
        value: float | None = None
        if name == "age" and start is not None:
            value = _age(patient.get("birthDate"), start)
        elif name in ("sex", "gender") and name in categories:
            gender = str(patient.get("gender", ""))
            forms = {gender, gender[:1].upper(), gender.capitalize()} - {""}
            value = next((float(i) for i, c in enumerate(categories[name]) if c in forms), None)
        records.case.context[name] = value
        if value is None:
            records.notes.append(f"{name} is not known and treated as missing.")


def _age(born: Any, day: date) -> float | None:
    try:
        return float((day - date.fromisoformat(str(born))).days // 365.25)
    except ValueError:
        return None
