"""Which subject and which visit slot every row of a long table belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nocta.tables.columns import factorize, is_dated, to_days, to_text
from nocta.tables.grid import count_shared, grid_end, place_on_grid
from nocta.tables.problems import Report, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.source import Source
from nocta.tables.validate import read_numbers

#: More slots than this are a calendar, not a visit schedule.
MOST_SLOTS = 1000
#: Units in which dates can be counted.
DAYS_IN = {"days": 1.0, "weeks": 7.0, "months": 30.4375, "years": 365.25}


@dataclass(frozen=True)
class Rows:
    """The place of every row.

    Args:
        subjects: Identifiers, in order of first appearance.
        subject: `(n_rows,)` position in `subjects`; -1 where the cell is empty.
        slot: `(n_rows,)` visit slot; -1 where the row has none.
        order: The rows that have a subject and a slot, by time within each subject.
        n_slots: Number of visit slots.
    """

    subjects: list[str]
    subject: NDArray[np.int64]
    slot: NDArray[np.int64]
    order: NDArray[np.int64]
    n_slots: int


def read_subjects(source: Source, schema: Schema, report: Report) -> Source:
    """The source with the subject of each row, reporting rows that have none."""
    subjects = to_text(source.frame[schema.subject])
    empty = [source.place(i) for i, s in enumerate(subjects) if s is None]
    if empty:
        report.add(
            f"{source.name}, column '{schema.subject}'",
            f"no subject: {enumerate_some(empty)}.",
            "Say whose row it is, or remove it.",
        )
    return replace(source, subjects=subjects)


def read_rows(source: Source, schema: Schema, report: Report, *, may_wait: bool = False) -> Rows:
    """Place every row, reporting those that cannot be.

    Args:
        source: The table, with its subjects.
        schema: Says which column tells the visit, and the grid.
        report: Receives problems and notes.
        may_wait: Whether a subject may have no visit yet, as in a history.
    """
    codes, names = factorize(source.subjects)
    assert schema.clock is not None
    column = f"{source.name}, column '{schema.clock}'"
    times, blank = _read_clock(source, schema, codes, column, report)
    if not may_wait:
        _report_blank(source, codes, names, blank, column, report)
    known = ~np.isnan(times)
    if schema.visit is not None:
        slots, n_slots = _slots_of_visits(source, schema, times, column, report)
    else:
        slots, n_slots = _slots_of_times(source, schema, times, column, report)
    _report_duplicates(source, codes, times, column, report)
    inside = known & (slots >= 0) & (slots < n_slots) & (codes >= 0)
    _report_absent(schema, codes, names, inside, known & (slots == n_slots), column, report)
    slots = np.where(inside, slots, -1)
    order = np.flatnonzero(inside)
    order = order[np.lexsort((times[order], codes[order]))]
    _note_shared(codes[order], slots[order], report)
    return Rows(names, codes, slots, order, n_slots)


def _read_clock(
    source: Source, schema: Schema, codes: NDArray[np.int64], column: str, report: Report
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """When every row was recorded, NaN where that is unknown, and which cells are empty."""
    assert schema.clock is not None
    cells = source.frame[schema.clock]
    if schema.visit is not None or not is_dated(cells):
        numbers = read_numbers(source, schema.clock, schema, report, kind="time")
        blank = np.isnan(numbers.values)
        blank[[*numbers.wrong, *numbers.infinite]] = False
        return numbers.values, blank
    days = to_days(cells)
    if schema.time_unit not in DAYS_IN:
        report.add(
            column,
            f"it holds dates, and time_unit is {schema.time_unit!r}.",
            f"Set time_unit to one of {', '.join(DAYS_IN)}; times then count from each "
            "subject's first row.",
            "time",
        )
        return np.full(len(days), np.nan), np.isnan(days)
    first = np.full(codes.max(initial=-1) + 2, np.inf)
    np.fmin.at(first, codes, days)  # the last entry collects rows without a subject
    return (days - first[codes]) / DAYS_IN[schema.time_unit], np.isnan(days)


def _slots_of_visits(
    source: Source, schema: Schema, times: NDArray[np.float64], column: str, report: Report
) -> tuple[NDArray[np.int64], int]:
    known = ~np.isnan(times)
    odd = np.flatnonzero(known & (times % 1 != 0)).tolist()
    broken = [f"{times[i]:g} ({source.place_of(i)})" for i in odd]
    if broken:
        report.add(
            column,
            f"visits are whole numbers, but found {enumerate_some(broken)}.",
            "Number the visits, or use time = with a grid.",
            "time",
        )
    slots = np.where(known, np.floor(np.where(known, times, 0)), -1).astype(np.int64)
    slots = np.where(known, slots - schema.first_visit, -1)
    _report_early(source, times, known & (slots < 0), schema.first_visit, column, report)
    if schema.n_visits is not None:
        _report_late(source, schema, times, known & (slots >= schema.n_visits), column, report)
        return slots, schema.n_visits
    n_slots = int(slots.max(initial=0)) + 1
    if n_slots > MOST_SLOTS:
        report.add(
            column,
            f"visits run up to {times[int(slots.argmax())]:g}, which would be {n_slots} slots.",
            "Number the visits 0, 1, 2, ..., or use time = with a grid.",
            "time",
        )
    return slots, min(n_slots, MOST_SLOTS)


def _slots_of_times(
    source: Source, schema: Schema, times: NDArray[np.float64], column: str, report: Report
) -> tuple[NDArray[np.int64], int]:
    grid = schema.grid
    if not grid:  # reported with the schema
        return np.full(len(times), -1, dtype=np.int64), 1
    known = ~np.isnan(times)
    end = grid_end(grid, schema.snap) if schema.end is None else schema.end
    slots = place_on_grid(np.where(known, times, grid[0]), grid, schema.snap, end)
    _report_early(source, times, known & (slots < 0), grid[0], column, report)
    n_late = int((known & (slots == len(grid))).sum())
    if n_late:
        report.note(
            f"{n_late} row(s) at or after {schema.clock} = {end:g} are left out: the grid ends."
        )
    return slots, len(grid)


def _report_early(
    source: Source,
    times: NDArray[np.float64],
    early: NDArray[np.bool_],
    first: float,
    column: str,
    report: Report,
) -> None:
    places = [f"{times[i]:g} ({source.place_of(i)})" for i in np.flatnonzero(early).tolist()]
    if places:
        report.add(
            column,
            f"before the first slot ({first:g}): {enumerate_some(places)}.",
            "Start the slots earlier, or remove the rows.",
            "time",
        )


def _report_late(
    source: Source,
    schema: Schema,
    times: NDArray[np.float64],
    late: NDArray[np.bool_],
    column: str,
    report: Report,
) -> None:
    places = [f"{times[i]:g} ({source.place_of(i)})" for i in np.flatnonzero(late).tolist()]
    if places:
        report.add(
            column,
            f"after the last of {schema.n_visits} visits: {enumerate_some(places)}.",
            "Raise n_visits, or remove the rows.",
            "time",
        )


def _report_blank(
    source: Source,
    codes: NDArray[np.int64],
    names: list[str],
    blank: NDArray[np.bool_],
    column: str,
    report: Report,
) -> None:
    has_visit = np.zeros(len(names) + 1, dtype=bool)
    has_visit[codes[~blank]] = True
    never = [names[i] for i in np.flatnonzero(~has_visit[:-1]).tolist()]
    if never:
        report.add(
            column,
            f"subjects with no visit: {enumerate_some(never)}.",
            "Say when their rows were recorded, or remove them.",
            "time",
        )
    places = [
        source.place_of(i) for i in np.flatnonzero(blank & has_visit[codes] & (codes >= 0)).tolist()
    ]
    if places:
        report.add(
            column,
            f"no visit: {enumerate_some(places)}.",
            "Say when they were recorded, or remove them.",
            "time",
        )


def _report_duplicates(
    source: Source,
    codes: NDArray[np.int64],
    times: NDArray[np.float64],
    column: str,
    report: Report,
) -> None:
    usable = np.flatnonzero((codes >= 0) & ~np.isnan(times))
    order = usable[np.lexsort((usable, times[usable], codes[usable]))]
    same = (np.diff(codes[order]) == 0) & (np.diff(times[order]) == 0)
    pairs = [
        f"subject {source.subjects[b]} at {times[b]:g} ({source.place(a)} and {source.place(b)})"
        for a, b in zip(order[:-1][same], order[1:][same], strict=True)
    ]
    if pairs:
        report.add(
            column,
            f"the same subject and visit twice: {enumerate_some(pairs)}.",
            "Keep one row per subject and visit.",
            "time",
        )


def _note_shared(codes: NDArray[np.int64], slots: NDArray[np.int64], report: Report) -> None:
    """Note rows that give way to a later one; both arrays are by time within each subject."""
    n_shared = count_shared(codes, slots)
    if n_shared:
        report.note(
            f"{n_shared} row(s) share a slot with a later one; the last value of each feature and "
            "the last label count."
        )


def _report_absent(
    schema: Schema,
    codes: NDArray[np.int64],
    names: list[str],
    inside: NDArray[np.bool_],
    late: NDArray[np.bool_],
    column: str,
    report: Report,
) -> None:
    """Subjects all of whose rows were left out because they lie after the end of the grid."""
    seen = set(codes[inside].tolist())
    gone = sorted({int(c) for c in codes[late & (codes >= 0)]} - seen)
    if gone and schema.visit is None:
        report.add(
            column,
            "subjects with no visit on the grid (all lie after its end): "
            f"{enumerate_some([names[c] for c in gone])}.",
            "Extend grid or end, or remove them.",
            "time",
        )
