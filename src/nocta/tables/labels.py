"""Reads the class of every row: a label, a number cut into ranges, or an event that is near."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import did_you_mean
from nocta.tables.columns import class_name, find_date_orders, is_number, to_days, to_text
from nocta.tables.outcomes import EVENT_CLASSES, bin_names, cut, label_within
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.rows import DAYS_IN, Rows
from nocta.tables.schema import Schema
from nocta.tables.source import Source
from nocta.tables.validate import read_numbers


def read_labels(
    source: Source, schema: Schema, issues: Issues, *, part: bool = False
) -> tuple[list[int], list[str]]:
    """Class index of every row, -1 for none, and the classes in their order.

    A `part` of a larger table may lack some classes.
    """
    assert schema.label is not None
    where = f"{source.name}, column '{schema.label}'"
    if schema.bins is not None:
        numbers = read_numbers(source, schema.label, schema, issues).values
        return cut(numbers, schema.bins), bin_names(schema)
    listed = schema.listed_values().get(schema.label, ())
    cells = to_text(source.frame[schema.label], listed)
    texts = [None if t is None else class_name(t) for t in cells]
    seen = {t for t in texts if t is not None}
    _report_mixed_labels(source, texts, where, issues)
    if schema.classes is None:
        classes = order_classes(seen)
    else:
        classes = [class_name(str(c)) for c in schema.classes]
        _report_unknown_classes(source, texts, classes, where, issues)
    if len(seen) < 2 and not part:
        found = f"the only class is '{seen.pop()}'" if seen else "no row has a label"
        issues.add(where, f"{found}.", "A label needs at least two classes.")
    index = {c: i for i, c in enumerate(classes)}
    return [-1 if t is None else index.get(t, -1) for t in texts], classes


def read_event(
    source: Source, schema: Schema, rows: Rows, issues: Issues
) -> tuple[list[int], list[str]]:
    """Whether the event of the schema happens soon after each row: its class, and the classes."""
    assert schema.event is not None
    classes = [str(c) for c in schema.classes or EVENT_CLASSES]
    column, happened = schema.event.status, {class_name(str(s)) for s in schema.event.happened}
    if not {schema.event.time, column} <= set(source.columns):
        return [-1] * len(source), classes  # already a problem
    cells = to_text(source.frame[column], schema.listed_values()[column])
    status = [None if cell is None else class_name(cell) for cell in cells]
    seen = {s for s in status if s is not None}
    if not happened & seen:
        issues.add(
            f"{source.name}, column '{column}'",
            f"no cell is one of the events, {enumerate_some(sorted(happened))}.",
            f"Correct happened under [event]; the column has {enumerate_some(sorted(seen), 8)}.",
        )
    end = _end_of_follow_up(source, schema, rows, issues)
    labels = label_within(rows.times, end, [s in happened for s in status], schema.event.within)
    return labels.tolist(), classes


def _end_of_follow_up(
    source: Source, schema: Schema, rows: Rows, issues: Issues
) -> NDArray[np.float64]:
    assert schema.event is not None
    cells = source.frame[schema.event.time]
    orders = find_date_orders(cells)
    if rows.clock.starts is None or not orders:
        return read_numbers(source, schema.event.time, schema, issues, kind="time").values
    order = rows.clock.date_order
    days = to_days(cells, order if order in orders else orders[0])
    starts = np.append(rows.clock.starts, np.nan)[rows.subject]
    return np.asarray((days - starts) / DAYS_IN[schema.time_unit or "days"])


def order_classes(names: Collection[str]) -> list[str]:
    """Classes in numeric order if all are numbers, else in alphabetical order."""
    numeric = all(is_number(name) for name in names)
    return sorted(names, key=lambda name: (float(name), name) if numeric else (0.0, name))


def _report_mixed_labels(
    source: Source, texts: list[str | None], where: str, issues: Issues
) -> None:
    cells = [(i, t) for i, t in enumerate(texts) if t is not None]
    numbers = [cell for cell in cells if is_number(cell[1])]
    words = [cell for cell in cells if not is_number(cell[1])]
    if numbers and words:
        few, kind, other = (words, "text", "numbers")
        if len(words) > len(numbers):
            few, kind, other = (numbers, "numbers", "text")
        issues.add_each(
            where,
            f"the label changes type: mostly {other}, but {kind} here",
            [f"'{text}' ({source.place_of(i)})" for i, text in few],
            "Use either numbers or text throughout.",
        )
    issues.add_each(
        where,
        "labels that are not whole numbers",
        [f"{t} ({source.place_of(i)})" for i, t in numbers if re.search("[.eE]", t)],
        "A label has classes. Cut a continuous outcome with bins = [...] in the schema (draft it "
        "with `nocta init --bins 3`); for the time to an event use [event].",
    )


def _report_unknown_classes(
    source: Source, texts: list[str | None], classes: list[str], where: str, issues: Issues
) -> None:
    first = {t: i for i, t in reversed(list(enumerate(texts))) if t is not None}
    for text in sorted(first.keys() - set(classes), key=first.__getitem__):
        hint = did_you_mean(text, classes) or f" Classes are: {', '.join(classes)}."
        place = f"'{text}' ({source.place_of(first[text])})"
        issues.add(where, f"{place} is not in classes.{hint}", "Add it there.")
