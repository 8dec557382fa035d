"""Reads the partial histories of one or more subjects from a long table, for planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.tables.assemble import context_by_subject, flags_by_slot, values_by_slot
from nocta.tables.columns import to_ids
from nocta.tables.problems import Issues
from nocta.tables.rows import read_rows, read_subjects
from nocta.tables.schema import Schema
from nocta.tables.schema_file import load_schema
from nocta.tables.source import Source, open_source
from nocta.tables.table import SchemaLike, read_catalog, table_name
from nocta.tables.validate import DIVIDING, UNAVAILABLE, check_columns, read_numbers

_OPTIONAL = DIVIDING | {"label", "context", "features"}


@dataclass(frozen=True)
class HistoryTable:
    """Partial histories read from a table."""

    history: History
    subjects: NDArray[Any]
    time: NDArray[np.int64]  # (n,) slot of each subject's last visit; -1 before the first
    notes: tuple[str, ...]  # what was left out or ignored

    def __len__(self) -> int:
        return len(self.subjects)


def read_history(table: Any, schema: SchemaLike, catalog: Catalog | None = None) -> HistoryTable:
    """Read what has been acquired so far, from a table like the training table.

    An empty cell means "not acquired"; the text `unavailable` means "requested but not
    available". Only the subject and the visit (or time) columns are required. A subject with one
    row and an empty visit has had no visit yet.

    Args:
        table: A frame, or the path of a CSV or Parquet file, one row per subject and visit.
        schema: The schema of the training table (`Schema.of(cohort)`).
        catalog: What can be acquired; that of the schema by default.

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
    source = open_source(table, issues, parsed.text_columns() if parsed else ())
    out = None
    if parsed is not None and source is not None:
        out = _histories(source, parsed, catalog, issues)
    issues.raise_problems(table_name(table))
    assert out is not None
    return out


def _histories(
    source: Source, schema: Schema, catalog: Catalog | None, issues: Issues
) -> HistoryTable | None:
    check_columns(source, schema, issues, optional=_OPTIONAL)
    if not len(source):
        issues.add_empty(source.name)
    if not len(source) or not {schema.subject, schema.clock} <= set(source.columns):
        return None
    if catalog is not None and not schema.grid:
        schema = schema.model_copy(update={"n_visits": catalog.n_times})
    source = read_subjects(source, schema, issues)
    rows = read_rows(source, schema, issues, may_wait=True)
    catalog = catalog or read_catalog(schema, rows, issues)
    if catalog is None:
        return None
    numbers = {
        name: read_numbers(source, name, schema, issues, allowed=UNAVAILABLE)
        for name in (*catalog.columns, *catalog.context)
        if name in source.columns
    }
    cells = {name: n.values for name, n in numbers.items()}
    context = context_by_subject(source, catalog.context, rows, cells, issues)
    if issues.problems:
        return None
    refused = np.zeros((len(rows.subjects), rows.n_slots, catalog.n_features), dtype=bool)
    for column, m in zip(catalog.columns, catalog.owner, strict=True):
        if column in numbers:
            flags = np.zeros(len(source), dtype=bool)
            flags[list(numbers[column].wrong)] = True
            refused[:, :, m] |= flags_by_slot(rows, flags)
    values = values_by_slot(catalog, rows, cells)
    values = np.where(catalog.expand(catalog.offered_slots), values, np.float32(np.nan))
    known = [~np.isnan(values[:, :, catalog.owner == m]) for m in range(catalog.n_features)]
    acquired = np.stack([columns.any(axis=2) for columns in known], axis=2)
    for name in catalog.context:
        if name not in source.columns:
            issues.note(f"There is no column '{name}'; this context is treated as missing.")
    visits = flags_by_slot(rows, np.ones(len(source), dtype=bool))
    last = rows.n_slots - 1 - visits[:, ::-1].argmax(axis=1)
    return HistoryTable(
        history=History(values, acquired, refused & ~acquired & catalog.offered_slots, context),
        subjects=to_ids(rows.subjects),
        time=np.where(visits.any(axis=1), last, -1).astype(np.int64),
        notes=tuple(issues.notes),
    )
