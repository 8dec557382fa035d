"""What people type becomes values of the model, or a sentence that says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from nocta.core.catalog import Catalog, Feature
from nocta.core.errors import did_you_mean
from nocta.service.cases import Case, Result
from nocta.service.problems import Conflict, NotFound, ServiceError
from nocta.service.schemas import Cell, ResultIn
from nocta.tables.grid import grid_end, place_on_grid
from nocta.tables.rows import DAYS_IN
from nocta.tables.schema import Schema

_LARGEST = float(np.finfo(np.float32).max)
#: The text in place of a value that was requested but is not available.
UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Schedule:
    """The visit slots of a model, and where a date belongs."""

    schema: Schema
    n_slots: int
    times: tuple[float, ...] | None  # of each slot, in `unit`
    unit: str

    @property
    def is_dated(self) -> bool:
        """Whether dates can be placed on it."""
        return self.times is not None and self.unit in DAYS_IN

    def date_of(self, slot: int, start: str | None) -> str | None:
        """When a slot is due."""
        if start is None or self.times is None or self.unit not in DAYS_IN:
            return None
        days = round((self.times[slot] - self.times[0]) * DAYS_IN[self.unit])
        try:
            return (date.fromisoformat(start) + timedelta(days=days)).isoformat()
        except OverflowError:
            return None

    def start_before(self, today: date) -> str | None:
        """The date of the first slot if the second one is due today."""
        if not self.is_dated or self.times is None or self.n_slots < 2:
            return None
        days = round((self.times[1] - self.times[0]) * DAYS_IN[self.unit])
        return (today - timedelta(days=days)).isoformat()

    def slot_of(self, day: date, start: str) -> int:
        """The slot of a date; raises if it is before the schedule or past it."""
        assert self.times is not None
        elapsed = (day - date.fromisoformat(start)).days / DAYS_IN[self.unit] + self.times[0]
        if elapsed < self.times[0]:
            raise ServiceError(f"{day} is before the case starts, on {start}.")
        snap, end = self.schema.snap, self.schema.end
        slot = int(place_on_grid(np.array([elapsed]), self.times, snap, end)[0])
        if slot >= self.n_slots:
            last = grid_end(self.times, snap) if end is None else end
            raise ServiceError(
                f"{day} is {elapsed:.4g} {self.unit} after the start, beyond the schedule this "
                f"model knows, which ends at {last:g} {self.unit}."
            )
        return slot

    def check_slot(self, slot: int) -> int:
        """The slot, if there is one; raises otherwise."""
        if not 0 <= slot < self.n_slots:
            raise ServiceError(
                f"Visit {slot + 1} is beyond the schedule this model knows, which has "
                f"{self.n_slots} visits."
            )
        return slot


def find_visit(
    schedule: Schedule, case: Case, slot: int | None, day: date | None
) -> tuple[int, str | None]:
    """The slot of a visit that takes place now, and the date of the first slot if it is new.

    Raises if the visit is not after the last one, or is past the schedule.
    """
    start = case.start
    if day is not None and slot is None:
        if not schedule.is_dated:
            raise ServiceError("This model counts visits, not dates; say which visit it is.")
        start = start or day.isoformat()
        slot = schedule.slot_of(day, start)
    if slot is None:
        raise ServiceError("Say which visit it is: give its slot, its date, or both.")
    schedule.check_slot(slot)
    if slot == 0 and start is None and day is not None:
        start = day.isoformat()
    if slot <= case.now:
        where = "is the visit the case is at" if slot == case.now else "is over"
        raise Conflict(
            f"Visit {slot + 1} {where}; time moves forward. Enter results or corrections there."
        )
    dates = [visit.date for visit in case.visits.values() if visit.date is not None]
    if day is not None and dates and day.isoformat() < max(dates):
        raise ServiceError(f"{day} is before the visit of {max(dates)}.")
    return slot, None if start == case.start else start


def read_results(
    results: Mapping[str, ResultIn], catalog: Catalog, schema: Schema, slot: int
) -> dict[str, Result]:
    """Results by feature as values by column."""
    return {
        name: read_result(name, given, catalog, schema, slot) for name, given in results.items()
    }


def read_result(name: str, given: ResultIn, catalog: Catalog, schema: Schema, slot: int) -> Result:
    """The values of one feature by column, or `None` if it is not available."""
    feature = find_feature(name, catalog)
    if not catalog.open_slots[slot, catalog.names.index(name)]:
        raise ServiceError(f"'{name}' cannot be acquired at visit {slot + 1}.")
    if given.unavailable:
        if given.value is not None or given.values:
            raise ServiceError(f"'{name}' is either not available or has a value, not both.")
        return None
    cells = _cells(feature, given)
    values = {c: read_cell(c, cell, schema) for c, cell in cells.items() if c in feature.columns}
    for column in cells.keys() - values.keys():
        hint = did_you_mean(column, feature.columns)
        known = ", ".join(feature.columns)
        raise ServiceError(f"'{name}' has no column '{column}'.{hint} It has: {known}.")
    if not values:
        raise ServiceError(f"'{name}' has no value; give one, or say that it is not available.")
    return values


def _cells(feature: Feature, given: ResultIn) -> dict[str, Cell]:
    if given.value is None:
        return dict(given.values or {})
    if given.values:
        raise ServiceError(f"'{feature.name}' has both value and values; give one of them.")
    if len(feature.columns) > 1:
        known = ", ".join(feature.columns)
        raise ServiceError(
            f"'{feature.name}' has several columns ({known}); give values by column."
        )
    return {feature.columns[0]: given.value}


def read_cell(column: str, cell: Cell, schema: Schema) -> float:
    """One value; the text of a category becomes its number."""
    categories = schema.categories.get(column)
    if categories is not None:
        if isinstance(cell, str) and cell in categories:
            return float(categories.index(cell))
        hint = did_you_mean(str(cell), categories)
        raise ServiceError(
            f"'{column}' is '{cell}'; use one of {', '.join(categories)}.{hint} If something else "
            f"was found, leave it out: the model does not know it."
        )
    if isinstance(cell, str):
        raise ServiceError(f"'{column}' is '{cell}', which is not a number.")
    if not math.isfinite(cell) or abs(cell) > _LARGEST:
        raise ServiceError(f"'{column}' is not a finite number.")
    return float(cell)


def read_context(
    given: Mapping[str, Cell | None], catalog: Catalog, schema: Schema
) -> dict[str, float | None]:
    """Context by name; what is not given is unknown."""
    for name in given:
        if name not in catalog.context:
            known = ", ".join(catalog.context) or "none"
            hint = did_you_mean(name, catalog.context)
            raise ServiceError(f"There is no context '{name}'.{hint} The model knows: {known}.")
    cells = {name: given.get(name) for name in catalog.context}
    return {n: None if c is None else read_cell(n, c, schema) for n, c in cells.items()}


def find_feature(name: str, catalog: Catalog) -> Feature:
    """The feature of this name; raises if there is none."""
    if name not in catalog.names:
        hint = did_you_mean(name, catalog.names)
        raise NotFound(f"There is no feature '{name[:80]}'.{hint}")
    return catalog.features[catalog.names.index(name)]


def as_typed(column: str, value: float, schema: Schema) -> float | str:
    """A value as people typed it: the text of a category instead of its number."""
    categories = schema.categories.get(column)
    if categories is None or not 0 <= value < len(categories):
        return value  # also a case of another model, with other categories
    return categories[int(value)]
