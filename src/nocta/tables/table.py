"""Reads a long table with its schema into a `Cohort`."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataError
from nocta.tables.assemble import (
    flags_by_slot,
    labels_by_slot,
    read_context,
    text_by_subject,
    values_by_slot,
)
from nocta.tables.columns import to_ids
from nocta.tables.labels import read_event, read_labels
from nocta.tables.problems import Issues
from nocta.tables.rows import Rows, read_rows, read_subjects
from nocta.tables.schema import Schema
from nocta.tables.schema_file import load_schema
from nocta.tables.source import Source, drop_repeats, open_source
from nocta.tables.understand import note_missing_words, understand
from nocta.tables.validate import check_columns, read_numbers

log = logging.getLogger(__name__)

SchemaLike = str | Path | Schema | Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """A cohort read from a table, with notes on what was left out or ignored."""

    cohort: Cohort
    notes: tuple[str, ...]


def read_cohort(table: Any, schema: SchemaLike) -> Cohort:
    """Read a long table with its schema; notes go to the log.

    Args:
        table: A pandas, polars or pyarrow table, or the path of a CSV or Parquet file, with
            one row per subject and visit.
        schema: Path of `schema.toml`, or the same as a mapping or a `Schema`.

    Raises:
        DataError: Lists every problem of the table and of the schema.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame(
        ...     {"id": [7, 7, 8], "visit": [0, 1, 0], "alt": [31.0, None, 52.0], "ill": [0, 1, 0]}
        ... )
        >>> features = {"alt": {"cost": 3.0}}
        >>> schema = {"subject": "id", "visit": "visit", "label": "ill", "features": features}
        >>> read_cohort(table, schema)
        Cohort('table': 2 subjects, 2 times, 1 features, 2 classes)
    """
    reading = read_table(table, schema)
    for note in reading.notes:
        log.info(note)
    return reading.cohort


def read_table(
    table: Any, schema: SchemaLike, *, part: bool = False, optional: Collection[str] = ()
) -> Reading:
    """Like `read_cohort`, but returns the notes, and reads a folder of Parquet parts too.

    A `part` of a larger table may lack some visits and classes. Columns of `optional` roles may be
    absent, such as `DIVIDING` to use a fitted model.
    """
    if isinstance(table, str | Path) and Path(table).is_dir():
        from nocta.tables.parts.stored import gather_parts

        return gather_parts(table, schema, optional)
    issues = Issues()
    parsed = load_schema(schema, issues)
    source = open_source(table, issues)
    cohort = None
    if parsed is not None and source is not None:
        check_columns(source, parsed, issues, optional=optional)
        source = prepare(source, parsed, issues)
        cohort = _cohort(source, parsed, issues, part)
    issues.raise_problems(table_name(table))
    assert cohort is not None
    return Reading(cohort, tuple(issues.notes))


def prepare(source: Source, schema: Schema, issues: Issues) -> Source:
    """The source without repeated rows, its numbers read as they are written."""
    keys = [c for c in (schema.subject, schema.clock) if c in source.columns]
    source = drop_repeats(source, keys, issues) if len(source) and len(keys) == 2 else source
    note_missing_words(source, schema, issues)
    return understand(source, schema, issues)


def table_name(table: Any) -> str:
    """Name of a table in messages."""
    return Path(table).name if isinstance(table, str | Path) else "The table"


def _cohort(source: Source, schema: Schema, issues: Issues, part: bool) -> Cohort | None:
    if schema.label is None and schema.event is None:
        issues.add(
            issues.schema,
            "it names no label column.",
            'Add label = "..." (classes; bins = [...] cuts a number into classes), or [event] for '
            "the time to an event.",
        )
    if not len(source):
        issues.add_empty(source.name)
        read_catalog(schema, None, issues)
        return None
    if schema.subject in source.columns:
        source = read_subjects(source, schema, issues)
    names = dict.fromkeys(
        column
        for role, column in schema.columns_by_role()
        if (role == "context" or role.startswith("features.")) and column in source.columns
    )
    columns = {name: read_numbers(source, name, schema, issues).values for name in names}
    rows = None
    if source.subjects and schema.clock in source.columns:
        rows = read_rows(source, schema, issues)
        if not part:
            _check_first_slot(source, schema, rows, issues)
    catalog = read_catalog(schema, rows, issues)
    labels, classes = _labels(source, schema, rows, issues, part)
    if rows is None:
        return None
    context = read_context(source, schema, rows, columns, issues)
    groups = text_by_subject(source, schema.group, "group", rows, issues)
    split = text_by_subject(source, schema.split, "split", rows, issues)
    _check_groups(groups, split, issues)
    if issues.problems or catalog is None:
        return None
    values = values_by_slot(catalog, rows, columns)
    if not part:
        _note_unusual(catalog, values, issues)
    return Cohort(
        values=values,
        labels=labels_by_slot(rows, np.array(labels)),
        visits=flags_by_slot(rows, np.ones(len(source), dtype=bool)),
        context=context,
        subjects=to_ids(rows.subjects),
        catalog=catalog,
        classes=tuple(classes),
        groups=None if groups is None else to_ids(groups),
        name=schema.name or source.name.split(".")[0].removeprefix("the "),
        slot_times=tuple(schema.grid) if schema.grid else None,
        time_unit=schema.time_unit or ("time" if schema.grid else "visit"),
        fixed_split=None if split is None else np.array(split),
        schema={**_resolved(schema, catalog, classes), **written(source, rows)},
    )


def _labels(
    source: Source, schema: Schema, rows: Rows | None, issues: Issues, part: bool
) -> tuple[list[int], list[str]]:
    """The class of every row, and the classes; empty if they cannot be read."""
    if schema.label and schema.label in source.columns:
        return read_labels(source, schema, issues, part=part)
    if schema.event is not None and rows is not None:
        return read_event(source, schema, rows, issues)
    return [], []


def written(source: Source, rows: Rows) -> dict[str, str]:
    """Keys of the schema for how the table was written, where it is not the usual way."""
    return {**({"decimal": ","} if source.decimal == "," else {}), **rows.clock.keys()}


def _resolved(schema: Schema, catalog: Catalog, classes: list[str]) -> dict[str, Any]:
    """The schema as plain data, with classes and number of visits as found in the table."""
    data: dict[str, Any] = schema.model_dump(mode="json", exclude_none=True)
    data = {key: value for key, value in data.items() if key != "nominal" or value}
    data["classes"] = classes
    if not schema.grid:
        data["n_visits"] = catalog.n_times
    return data


def read_catalog(schema: Schema, rows: Rows | None, issues: Issues) -> Catalog | None:
    """The catalog of the schema; its problems are added to the issues."""
    lists = [len(f.cost) for f in schema.features.values() if isinstance(f.cost, list)]
    try:
        return schema.catalog(max([1, *lists]) if rows is None else rows.n_slots)
    except DataError as error:
        for problem in error.problems:
            issues.add(issues.schema, problem.what, kind=problem.kind)
    return None


def _check_first_slot(source: Source, schema: Schema, rows: Rows, issues: Issues) -> None:
    first = int(rows.slot[rows.order].min(initial=rows.n_slots))
    if schema.visit is not None and 0 < first < rows.n_slots:
        number = first + schema.first_visit
        issues.add(
            f"{source.name}, column '{schema.visit}'",
            f"no row has the first visit, {schema.first_visit}; they start at {number}.",
            f"Add first_visit = {number} to the schema, or number visits from 0.",
            "time",
        )


def _check_groups(groups: list[str] | None, split: list[str] | None, issues: Issues) -> None:
    if groups is None or split is None:
        return
    seen = defaultdict(set)
    for group, name in zip(groups, split, strict=True):
        seen[group].add(name)
    torn = [f"{g} ({' and '.join(sorted(s))})" for g, s in seen.items() if len(s) > 1]
    remedy = "Put every subject of a group into the same split."
    issues.add_each(f"{issues.schema}, split", "groups in more than one split", torn, remedy)


def _note_unusual(catalog: Catalog, values: NDArray[np.float32], issues: Issues) -> None:
    """Note features that are never recorded, or recorded when they cannot be acquired."""
    note_closed(catalog, values, issues)
    for m, feature in enumerate(catalog.features):
        if np.isnan(values[:, :, catalog.owner == m]).all():
            issues.note(f"'{feature.name}' is never recorded.")


def note_closed(catalog: Catalog, values: NDArray[np.float32], issues: Issues) -> None:
    """Note records at visits at which their feature cannot be acquired."""
    for m, feature in enumerate(catalog.features):
        recorded = np.any(~np.isnan(values[:, :, catalog.owner == m]), axis=2)
        if closed := int(recorded[:, ~catalog.open_slots[:, m]].sum()):
            issues.note(
                f"{closed} records of '{feature.name}' are at visits at which it cannot be "
                "acquired; they are not used."
            )
