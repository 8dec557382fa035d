"""A case as a file: CSV like the training table, or JSON with its whole history."""

from __future__ import annotations

import csv
import io
from datetime import date
from typing import Any

from nocta.service.cases import Case
from nocta.service.entering import UNAVAILABLE, as_typed
from nocta.service.planner import ServedModel
from nocta.service.store import Event
from nocta.tables.rows import DAYS_IN

#: Spreadsheets run cells that begin so as formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(case: Case, served: ServedModel) -> str:
    """One row per visit, with the columns of the training table: `nocta plan` reads it."""
    schema, catalog = served.schema, served.catalog
    clock = schema.clock or "visit"
    head = [schema.subject, clock, *catalog.context, *catalog.columns]
    context = [_cell(n, case.context.get(n), served) for n in catalog.context]
    rows = []
    for slot, visit in sorted(case.visits.items()):
        cells: dict[str, str] = {}
        for name, result in visit.results.items():
            columns = catalog.features[catalog.names.index(name)].columns
            if result is None:
                cells |= dict.fromkeys(columns, UNAVAILABLE)
            else:
                cells |= {c: _cell(c, v, served) for c, v in result.items()}
        when = _time(case, served, slot)
        rows.append(
            [_text(case.name), when, *context, *(cells.get(c, "") for c in catalog.columns)]
        )
    if not rows:
        rows = [[_text(case.name), "", *context, *("" for _ in catalog.columns)]]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


def to_history(events: list[Event]) -> list[dict[str, Any]]:
    """Everything that happened, in order: who, when, what, by which model."""
    return [event._asdict() for event in events]


def _time(case: Case, served: ServedModel, slot: int) -> str:
    """When a visit took place, as the training table says it."""
    if served.schema.visit is not None:
        return str(slot + served.schema.first_visit)
    times, unit = served.schedule.times, served.schedule.unit
    visit = case.visits[slot]
    if visit.date is not None and case.start is not None and unit in DAYS_IN and times:
        days = (date.fromisoformat(visit.date) - date.fromisoformat(case.start)).days
        return f"{times[0] + days / DAYS_IN[unit]:.6g}"
    return f"{times[slot]:g}" if times else str(slot)


def _cell(column: str, value: float | None, served: ServedModel) -> str:
    if value is None:
        return ""
    typed = as_typed(column, value, served.schema)
    return _text(typed) if isinstance(typed, str) else f"{typed:.9g}"


def _text(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
