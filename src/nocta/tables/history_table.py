"""Reads the partial histories of one or more subjects from a long table, for planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import DataError, TimeError, did_you_mean
from nocta.core.history import History
from nocta.tables.assemble import flags_by_slot, read_context, values_by_slot
from nocta.tables.calendar import Calendar
from nocta.tables.columns import Numbers, to_ids
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.rows import Rows, read_rows, read_subjects
from nocta.tables.schema import Schema
from nocta.tables.schema_file import load_schema
from nocta.tables.source import Source, open_source
from nocta.tables.table import SchemaLike, note_closed, prepare, read_catalog, table_name
from nocta.tables.validate import DIVIDING, UNAVAILABLE, check_columns, read_numbers

Absent = Literal["not acquired", "unavailable", "refuse"]
_OPTIONAL = DIVIDING | {"label", "event", "context", "features"}


@dataclass(frozen=True)
class HistoryTable:
    """Partial histories read from a table."""

    history: History
    subjects: NDArray[Any]
    #: (n,) slot of each subject's last visit; -1 before the first. The last slot if a visit is
    #: after the schedule, so that nothing is planned for a time that is past.
    time: NDArray[np.int64]
    notes: tuple[str, ...]  # what was left out or ignored
    calendar: Calendar = field(default_factory=Calendar.undated)
    late: Mapping[int, str] = field(default_factory=dict)  # by position: what is after the schedule

    def __len__(self) -> int:
        return len(self.subjects)

    def row_of(self, subject: object | None, name: str, option: str = "subject=") -> int:
        """The position of a subject; the only one by default. `name` is that of the table."""
        names = [str(found) for found in self.subjects]
        if subject is None and len(names) == 1:
            return 0
        if str(subject) in names:
            return names.index(str(subject))
        if subject is None:
            raise DataError(
                f"{name} has {len(names)} subjects; choose one with {option}: "
                f"{enumerate_some(names, 8)}."
            )
        hint = did_you_mean(str(subject), names) or f" It has: {enumerate_some(names, 8)}."
        raise DataError(f"{name} has no subject '{subject}'.{hint}")

    def slot_of_today(self, row: int, today: str) -> int:
        """The slot of a visit that happens today; a row of it may be in the table already."""
        slot = self.calendar.slot_of(row, today)
        if self.time[row] > slot:
            raise TimeError(
                f"Today, {today}, is before the last row of subject {self.subjects[row]}. Give the "
                "day of the visit to plan for, or remove later rows."
            )
        return slot

    def check_planned(self, row: int) -> None:
        """Raise if a visit of this subject is after the schedule: any plan would be in the past."""
        if row in self.late:
            raise TimeError(self.late[row])


def read_history(
    table: Any, schema: SchemaLike, catalog: Catalog | None = None, absent: Absent = "not acquired"
) -> HistoryTable:
    """Read what has been acquired so far, from a table like the training table.

    An empty cell means "not acquired"; the text `unavailable` means "requested but not
    available". Only the subject and the visit (or time) columns are required. A subject with one
    row and an empty visit has had no visit yet.

    Args:
        table: A frame, or the path of a CSV or Parquet file, one row per subject and visit.
        schema: The schema of the training table (`Schema.of(cohort)`).
        catalog: What can be acquired; that of the schema by default.
        absent: What it means if the table lacks the column of a feature: it was `"not acquired"`,
            it was `"unavailable"` at every visit so far, or `"refuse"` the table.

    Example:
        >>> import pandas as pd
        >>> features = {"alt": {"cost": 3.0}, "mri": {"cost": 90.0}}
        >>> schema = {"subject": "id", "visit": "visit", "n_visits": 4, "features": features}
        >>> scans = [None, "unavailable"]
        >>> rows = pd.DataFrame({"id": 7, "visit": [0, 1], "alt": [31.0, None], "mri": scans})
        >>> table = read_history(rows, schema)
        >>> table.history.acquired[0, :2].tolist(), table.history.unavailable[0, :2].tolist()
        ([[True, False], [False, False]], [[False, False], [False, True]])
        >>> table.time.tolist()
        [1]
    """
    issues = Issues()
    parsed = load_schema(schema, issues)
    source = open_source(table, issues)
    out = None
    if parsed is not None and source is not None:
        out = _histories(source, parsed, catalog, absent, issues)
    issues.raise_problems(table_name(table))
    assert out is not None
    return out


def _histories(
    source: Source, schema: Schema, catalog: Catalog | None, absent: Absent, issues: Issues
) -> HistoryTable | None:
    check_columns(source, schema, issues, optional=_OPTIONAL)
    if not len(source):
        issues.add_empty(source.name)
    if not len(source) or not {schema.subject, schema.clock} <= set(source.columns):
        return None
    if catalog is not None and not schema.grid:
        schema = schema.model_copy(update={"n_visits": catalog.n_times})
    source = read_subjects(prepare(source, schema, issues), schema, issues)
    rows = read_rows(source, schema, issues, history=True)
    catalog = catalog or read_catalog(schema, rows, issues)
    if catalog is None:
        return None
    _report_absent(source, schema, catalog, absent, issues)
    numbers = {
        name: read_numbers(source, name, schema, issues, allowed=UNAVAILABLE)
        for name in (*catalog.columns, *schema.context)
        if name in source.columns
    }
    cells = {name: n.values for name, n in numbers.items()}
    context = read_context(source, schema, rows, cells, issues)
    calendar = _calendar(schema, catalog, rows)
    late = _late(source, rows, calendar, issues)
    if issues.problems:
        return None
    values = values_by_slot(catalog, rows, cells)
    note_closed(catalog, values, issues)
    values = np.where(catalog.expand(catalog.open_slots), values, np.float32(np.nan))
    known = [~np.isnan(values[:, :, catalog.owner == m]) for m in range(catalog.n_features)]
    acquired = np.stack([columns.any(axis=2) for columns in known], axis=2)
    visits = flags_by_slot(rows, np.ones(len(source), dtype=bool))
    refused = _refused(source, catalog, rows, numbers)
    if absent == "unavailable":
        lacking = [not set(f.columns) & set(source.columns) for f in catalog.features]
        refused |= visits[:, :, None] & np.array(lacking)
    last = rows.n_slots - 1 - visits[:, ::-1].argmax(axis=1)
    time = np.where(visits.any(axis=1), last, -1).astype(np.int64)
    time[list(late)] = rows.n_slots - 1
    return HistoryTable(
        history=History(values, acquired, refused & ~acquired & catalog.open_slots, context),
        subjects=to_ids(rows.subjects),
        time=time,
        notes=tuple(issues.notes),
        calendar=calendar,
        late=late,
    )


def _report_absent(
    source: Source, schema: Schema, catalog: Catalog, absent: Absent, issues: Issues
) -> None:
    """Name the columns that the table lacks."""
    lacking = [c for c in catalog.columns if c not in source.columns]
    free = [c for c in schema.context if c not in source.columns]
    if absent == "refuse" and lacking + free:
        named = ", ".join(f"'{name}'" for name in lacking + free)
        issues.add(
            source.name,
            f"it has no column {named}, which the model uses.",
            "Add what is missing, with empty cells for what was not acquired, or use "
            "--allow-missing to treat these features as unavailable so far.",
        )
        return
    if absent == "unavailable":
        for name in lacking:
            issues.note(f"There is no column '{name}'; it counts as unavailable so far.")
    for name in free:
        issues.note(f"There is no column '{name}'; this context is treated as missing.")


def _refused(
    source: Source, catalog: Catalog, rows: Rows, numbers: Mapping[str, Numbers]
) -> NDArray[np.bool_]:
    """What was requested but not available, `(n, L, M)`."""
    refused = np.zeros((len(rows.subjects), rows.n_slots, catalog.n_features), dtype=bool)
    for column, m in zip(catalog.columns, catalog.owner, strict=True):
        if column in numbers:
            flags = np.zeros(len(source), dtype=bool)
            flags[list(numbers[column].wrong)] = True
            refused[:, :, m] |= flags_by_slot(rows, flags)
    return refused


def _calendar(schema: Schema, catalog: Catalog, rows: Rows) -> Calendar:
    starts = rows.clock.starts
    unknown = np.full(len(rows.subjects), np.nan)
    return Calendar(schema, catalog.n_times, unknown if starts is None else starts)


def _late(source: Source, rows: Rows, calendar: Calendar, issues: Issues) -> dict[int, str]:
    """For each subject with a visit after the schedule, the sentence that says so."""
    found = {}
    for row in rows.late[np.argsort(rows.times[rows.late], kind="stable")].tolist():
        code = int(rows.subject[row])
        found[code] = (
            f"Subject {rows.subjects[code]} has a visit ({source.place(row)}) at "
            f"{calendar.beyond(float(rows.times[row]))}"
        )
    if found:
        issues.note(
            f"{len(rows.late)} row(s) are left out: they are beyond the schedule this model "
            f"knows, which ends at {calendar.named(rows.end)}. Nothing more is planned for their "
            "subjects."
        )
    return found
