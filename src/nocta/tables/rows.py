"""Finds the subject and the visit slot of every row of a long table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.tables.columns import factorize, find_date_orders, to_days, to_text
from nocta.tables.dates import DateOrder, visit_number, visit_prefix
from nocta.tables.grid import count_shared, grid_end, place_on_grid
from nocta.tables.problems import Issues
from nocta.tables.schema import Schema
from nocta.tables.source import MISSING, Source
from nocta.tables.validate import read_numbers

#: More slots than this are a calendar, not a visit schedule.
MOST_SLOTS = 1000
#: Units in which dates can be counted.
DAYS_IN = {"days": 1.0, "weeks": 7.0, "months": 30.4375, "years": 365.25}


@dataclass(frozen=True)
class Rows:
    """The place of every row."""

    subjects: list[str]  # identifiers, in order of first appearance
    subject: NDArray[np.int64]  # (n_rows,) position in `subjects`; -1 if the cell is empty
    slot: NDArray[np.int64]  # (n_rows,) visit slot; -1 if the row has none
    order: NDArray[np.int64]  # rows with a subject and a slot, by time within each subject
    n_slots: int
    clock: Clock
    times: NDArray[np.float64]  # (n_rows,) NaN if unknown
    late: NDArray[np.int64]  # rows of subjects that lie after the last slot
    end: float  # time at which the last slot ends; with `visit`, the number of the last visit


@dataclass(frozen=True)
class Clock:
    """How the times of a table are written, so that later tables are read alike."""

    date_order: DateOrder | None = None  # if times are dates
    visit_prefix: str | None = None
    starts: NDArray[np.float64] | None = None  # (n,) day since 1970 of each subject's time 0

    def keys(self) -> dict[str, str]:
        """The keys of the schema."""
        found = {"date_order": self.date_order, "visit_prefix": self.visit_prefix}
        return {key: value for key, value in found.items() if value is not None}


def read_subjects(source: Source, schema: Schema, issues: Issues) -> Source:
    """The source with the subject of each row; rows without one are problems."""
    subjects = to_text(source.frame[schema.subject])
    empty = [source.place(i) for i, s in enumerate(subjects) if s is None]
    where = f"{source.name}, column '{schema.subject}'"
    issues.add_each(where, "no subject", empty, "Fill in the subject, or remove the row.")
    return replace(source, subjects=subjects)


def read_rows(source: Source, schema: Schema, issues: Issues, *, history: bool = False) -> Rows:
    """Place every row; rows that cannot be placed are problems.

    In a `history`, a subject may have no visit yet, or one after the last slot (`Rows.late`).
    """
    return _Placing(source, schema, issues).rows(history)


class _Placing:
    """The subject codes and times of a table, with the checks on them."""

    def __init__(self, source: Source, schema: Schema, issues: Issues) -> None:
        assert schema.clock is not None
        self.source, self.schema, self.issues = source, schema, issues
        self.clock = schema.clock
        self.codes, self.names = factorize(source.subjects)
        self.read = Clock()
        self.times, self.blank = self._read_clock()
        self.known = ~np.isnan(self.times)

    def rows(self, history: bool) -> Rows:
        if not history:
            self._check_blank()
        is_visit = self.schema.visit is not None
        slots, n_slots, end = self._slots_of_visits() if is_visit else self._slots_of_times()
        self._check_duplicates()
        placed = self.known & (slots >= 0) & (self.codes >= 0)
        inside, after = placed & (slots < n_slots), placed & (slots >= n_slots)
        if not history:
            self._check_late(after, inside, n_slots, end)
        slots = np.where(inside, slots, -1)
        order = np.flatnonzero(inside)
        order = order[np.lexsort((self.times[order], self.codes[order]))]
        if n_shared := count_shared(self.codes[order], slots[order]):
            self.issues.note(
                f"{n_shared} row(s) share a slot with a later row of the subject; the last value "
                "of each feature and the last label count."
            )
        late = np.flatnonzero(after)
        return Rows(self.names, self.codes, slots, order, n_slots, self.read, self.times, late, end)

    def _check_late(
        self, after: NDArray[np.bool_], inside: NDArray[np.bool_], n_slots: int, end: float
    ) -> None:
        if self.schema.visit is not None:
            self._problem(
                f"after the last of {n_slots} visits",
                self._found_at(after),
                "Raise n_visits, or remove the rows.",
            )
            return
        if after.any():
            self.issues.note(
                f"{int(after.sum())} row(s) at or after {self.clock} = {end:g} are left out: the "
                "grid ends."
            )
        gone = sorted({*self.codes[after].tolist()} - {*self.codes[inside].tolist()})
        self._problem(
            "subjects with no visit on the grid (all lie after its end)",
            [self.names[c] for c in gone],
            "Extend grid or end, or remove them.",
        )

    def _problem(self, what: str, items: Sequence[str], remedy: str) -> None:
        where = f"{self.source.name}, column '{self.clock}'"
        self.issues.add_each(where, what, items, remedy, "time")

    def _found_at(self, rows: NDArray[np.bool_]) -> list[str]:
        found = np.flatnonzero(rows).tolist()
        return [f"{self.times[i]:g} ({self.source.place_of(i)})" for i in found]

    def _read_clock(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The time of every row, NaN if unknown, and which cells are empty."""
        orders = self._date_orders() if self.schema.visit is None else []
        if orders:
            return self._read_dates(orders)
        self._read_names()
        numbers = read_numbers(
            self.source,
            self.clock,
            self.schema,
            self.issues,
            kind="time",
            prefix=self.read.visit_prefix or "",
        )
        blank = np.isnan(numbers.values)
        blank[[*numbers.wrong, *numbers.infinite]] = False
        return numbers.values, blank

    def _date_orders(self) -> list[DateOrder]:
        """The orders in which every time is a date; of several, the one that the schema gives."""
        found = find_date_orders(self.source.frame[self.clock])
        given = self.schema.date_order
        if given in found:
            return [given]
        if found and given in ("dmy", "mdy") and found != ["ymd"]:
            where = f"{self.source.name}, column '{self.clock}'"
            what = f"its dates are not in the order {given} (day, month, year) of the schema."
            self.issues.add(where, what, "Write them so, or as YYYY-MM-DD.", "time")
        return found

    def _read_dates(self, orders: list[DateOrder]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        cells, unit = self.source.frame[self.clock], self.schema.time_unit
        where = f"{self.source.name}, column '{self.clock}'"
        order = orders[0]
        if len(orders) > 1:
            found = "its dates could begin with the day or with the month."
            remedy = 'Add date_order = "dmy" or date_order = "mdy" to the schema.'
            self.issues.add(where, found, remedy, "time")
        days = to_days(cells, order)
        if unit not in DAYS_IN:
            self.issues.add(
                where,
                f"it holds dates, and time_unit is {unit!r}.",
                f"Set time_unit to one of {', '.join(DAYS_IN)}; times then count from each "
                "subject's first row.",
                "time",
            )
            return np.full(len(days), np.nan), np.isnan(days)
        written = find_date_orders(cells)
        if len(orders) == 1 and written != ["ymd"] and self.schema.date_order is None:
            first = "day" if order == "dmy" else "month"
            self.issues.note(f"{where}: dates begin with the {first}.")
        starts = first_times(days, self.codes)
        self.read = Clock(self.schema.date_order or order, None, starts[:-1])
        return (days - starts[self.codes]) / DAYS_IN[unit], np.isnan(days)

    def _read_names(self) -> None:
        """Find what stands before the number of every visit, as in `V1`."""
        if self.schema.visit_prefix is not None:
            self.read = Clock(visit_prefix=self.schema.visit_prefix)
            return
        texts = [t for t in self.source.texts.get(self.clock, ()) if t.lower() not in MISSING]
        prefix = visit_prefix(texts) if texts else None
        if prefix is not None:
            self.read = Clock(visit_prefix=prefix)
            self.issues.note(
                f"{self.source.name}, column '{self.clock}': '{texts[0]}' is read as number "
                f"{visit_number(texts[0], prefix).lstrip('0') or 0}."
            )

    def _slots_of_visits(self) -> tuple[NDArray[np.int64], int, float]:
        schema, times, known = self.schema, self.times, self.known
        self._problem(
            "visits that are not whole numbers",
            self._found_at(known & (times % 1 != 0)),
            "Number the visits, or use time = with a grid.",
        )
        slots = np.where(known, np.floor(np.where(known, times, 0)), -1).astype(np.int64)
        slots = np.where(known, slots - schema.first_visit, -1)
        self._check_early(slots, schema.first_visit)
        if schema.n_visits is not None:
            return slots, schema.n_visits, float(schema.first_visit + schema.n_visits - 1)
        n_slots = int(slots.max(initial=0)) + 1
        if n_slots > MOST_SLOTS:
            self._problem(
                f"visit numbers would need {n_slots} slots (at most {MOST_SLOTS} are possible)",
                [f"the largest is {times[int(slots.argmax())]:g}"],
                "Number the visits 0, 1, 2, ..., or use time = with a grid.",
            )
        n_slots = min(n_slots, MOST_SLOTS)
        return slots, n_slots, float(schema.first_visit + n_slots - 1)

    def _slots_of_times(self) -> tuple[NDArray[np.int64], int, float]:
        schema, grid = self.schema, self.schema.grid
        if not grid:  # already a problem of the schema
            return np.full(len(self.times), -1, dtype=np.int64), 1, np.inf
        end = grid_end(grid, schema.snap) if schema.end is None else schema.end
        slots = place_on_grid(np.where(self.known, self.times, grid[0]), grid, schema.snap, end)
        self._check_early(slots, grid[0])
        return slots, len(grid), end

    def _check_early(self, slots: NDArray[np.int64], first: float) -> None:
        self._problem(
            f"before the first slot ({first:g})",
            self._found_at(self.known & (slots < 0)),
            "Start the slots earlier, or remove the rows.",
        )

    def _check_blank(self) -> None:
        has_visit = np.zeros(len(self.names) + 1, dtype=bool)
        has_visit[self.codes[~self.blank]] = True
        never = [self.names[i] for i in np.flatnonzero(~has_visit[:-1]).tolist()]
        empty = np.flatnonzero(self.blank & has_visit[self.codes] & (self.codes >= 0)).tolist()
        remedy = f"Fill in '{self.clock}', or remove the rows."
        self._problem("subjects with no visit", never, remedy)
        self._problem("no visit", [self.source.place_of(i) for i in empty], remedy)

    def _check_duplicates(self) -> None:
        codes, times, place = self.codes, self.times, self.source.place
        usable = np.flatnonzero((codes >= 0) & self.known)
        order = usable[np.lexsort((usable, times[usable], codes[usable]))]
        same = (np.diff(codes[order]) == 0) & (np.diff(times[order]) == 0)
        pairs = [
            f"subject {self.source.subjects[b]} at {times[b]:g} ({place(a)} and {place(b)})"
            for a, b in zip(order[:-1][same], order[1:][same], strict=True)
        ]
        self._problem(
            "the same subject and visit twice", pairs, "Keep one row per subject and visit."
        )


def since_first(times: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Time since the subject's first row; `codes` is -1 for rows without a subject."""
    return np.asarray(times - first_times(times, codes)[codes])


def first_times(times: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The first time of each subject; the last entry is for rows without one (code -1)."""
    first = np.full(codes.max(initial=-1) + 2, np.inf)
    np.fmin.at(first, codes, times)
    return first
