"""Turns placed rows into arrays: the last record of every slot, and one value per subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.tables.columns import to_text
from nocta.tables.problems import Issues
from nocta.tables.rows import Rows
from nocta.tables.schema import Schema
from nocta.tables.source import Source

Columns = Mapping[str, NDArray[np.float64]]


def values_by_slot(catalog: Catalog, rows: Rows, columns: Columns) -> NDArray[np.float32]:
    """Values `(n, L, D)`, NaN for what was not recorded.

    If several rows share a slot, each feature takes all its columns from the last row that
    records any of them, so two scans are never mixed.
    """
    shape = (len(rows.subjects), rows.n_slots, len(catalog.columns))
    out = np.full(shape, np.nan, dtype=np.float32)
    start = 0
    for feature in catalog.features:
        stop = start + len(feature.columns)
        blank = np.full(len(rows.subject), np.nan)
        cells = np.stack([columns.get(c, blank) for c in feature.columns], axis=1)
        chosen = rows.order[~np.isnan(cells[rows.order]).all(axis=1)]
        # Rows are sorted by time, so the last assignment to a slot wins.
        out[rows.subject[chosen], rows.slot[chosen], start:stop] = cells[chosen]
        start = stop
    return out


def flags_by_slot(rows: Rows, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether any row of the slot is flagged, `(n, L)`."""
    return labels_by_slot(rows, np.where(flags, 0, -1)) >= 0


def labels_by_slot(rows: Rows, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last label of every slot, -1 if there is none, `(n, L)`."""
    out = np.full((len(rows.subjects), rows.n_slots), -1, dtype=np.int64)
    chosen = rows.order[labels[rows.order] >= 0]
    out[rows.subject[chosen], rows.slot[chosen]] = labels[chosen]
    return out


def context_by_subject(
    source: Source, names: Sequence[str], rows: Rows, columns: Columns, issues: Issues
) -> NDArray[np.float32]:
    """Context `(n, P)`; a column that changes within a subject is a problem."""
    out = np.full((len(rows.subjects), len(names)), np.nan, dtype=np.float32)
    for p, name in enumerate(names):
        if name not in columns:
            continue
        cells = columns[name]
        used = np.flatnonzero(~np.isnan(cells) & (rows.subject >= 0))[::-1]
        first = np.full(len(rows.subjects), np.nan)
        first[rows.subject[used]] = cells[used]  # reversed, so the first row wins
        changed = used[cells[used] != first[rows.subject[used]]][::-1]
        issues.add_each(
            f"{source.name}, column '{name}'",
            "context that changes within a subject",
            _first_of_each(source, rows, changed),
            "Context is constant: keep the first value, or make it a feature with cost = 0.",
        )
        out[:, p] = first
    return out


def read_context(
    source: Source, schema: Schema, rows: Rows, columns: Columns, issues: Issues
) -> NDArray[np.float32]:
    """Context `(n, P)` in the columns of the catalog: nominal context has one per category."""
    raw = context_by_subject(source, schema.context, rows, columns, issues)
    parts = [raw[:, :0]]
    for p, (name, made) in enumerate(schema.context_columns().items()):
        if made == [name]:
            parts.append(raw[:, p : p + 1])
        else:
            is_value = raw[:, p : p + 1] == np.arange(len(made))
            parts.append(np.where(np.isnan(raw[:, p : p + 1]), np.nan, is_value))
    return np.concatenate(parts, axis=1, dtype=np.float32, casting="same_kind")


def text_by_subject(
    source: Source, column: str | None, role: str, rows: Rows, issues: Issues
) -> list[str] | None:
    """One text per subject (its split, its group); missing and changing ones are problems."""
    if not column or column not in source.columns:
        return None
    texts = to_text(source.frame[column])
    found: dict[int, str] = {}
    changed: list[int] = []
    for row, (code, text) in enumerate(zip(rows.subject.tolist(), texts, strict=True)):
        if code >= 0 and text is not None and found.setdefault(code, text) != text:
            changed.append(row)
    where = f"{source.name}, column '{column}'"
    remedy = f"Give each subject one {role}."
    places = _first_of_each(source, rows, np.array(changed, dtype=np.int64))
    issues.add_each(where, f"the {role} changes within a subject", places, remedy)
    absent = [name for code, name in enumerate(rows.subjects) if code not in found]
    issues.add_each(where, f"subjects with no {role}", absent, remedy)
    return [found.get(code, "") for code in range(len(rows.subjects))]


def _first_of_each(source: Source, rows: Rows, changed: NDArray[np.int64]) -> list[str]:
    """The place of each subject's first row among these."""
    _, first = np.unique(rows.subject[changed], return_index=True)
    return [source.place_of(int(row)) for row in changed[np.sort(first)]]
