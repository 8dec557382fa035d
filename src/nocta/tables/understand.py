"""What the cells of a table show of its form: the decimal sign, and words that mean "missing"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from nocta.tables.notation import Decimal, Evidence, looks_like_number, split_amount
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.source import MISSING, Source

_ASK = 'Add decimal = "," or decimal = "." to the schema.'


@dataclass(frozen=True)
class Understood:
    """The decimal sign of a table, and what is unsure about it (empty if nothing is)."""

    decimal: Decimal
    doubt: str = ""
    remark: str = ""  # what was understood, if it is not the usual


def understand(source: Source, schema: Schema, issues: Issues) -> Source:
    """The source with its numbers as the schema, or else its own cells, say they are written."""
    text = schema.text_columns()
    numeric = {column for _, column in schema.columns_by_role()} - text
    found = Understood(schema.decimal) if schema.decimal else read_decimal(source, numeric)
    if found.doubt:
        issues.add(source.name, found.doubt, _ASK)
    elif found.remark:
        issues.note(f"{source.name}: {found.remark}")
    return with_decimal(source, found.decimal, text)


def read_decimal(source: Source, numeric: Collection[str] | None = None) -> Understood:
    """The decimal sign that the cells show; by default those of all columns of numbers."""
    names = source.texts if numeric is None else source.texts.keys() & set(numeric)
    columns = {name: _known(source.texts[name]) for name in source.texts if name in names}
    if numeric is None:
        columns = {n: t for n, t in columns.items() if t and all(map(looks_like_number, t))}
    return _weigh(Evidence.of(columns), source.delimiter)


def _known(texts: Mapping[str, int]) -> list[str]:
    return [split_amount(text)[0] for text in texts if text.lower() not in MISSING]


def _weigh(found: Evidence, delimiter: str) -> Understood:
    if found.comma and found.point:
        decimal: Decimal = "," if len(found.comma) >= len(found.point) else "."
        shown = f"{found.shown(',')} has a decimal comma, but {found.shown('.')} a decimal point"
        return Understood(decimal, f"{shown}; use one sign throughout.")
    if found.comma:
        points = {**found.thousands, **found.either}
        thousands = f" and points between thousands ({_example(points)})" if points else ""
        return Understood(",", "", f"numbers have decimal commas ({found.shown(',')}){thousands}.")
    unclear = {
        column: text
        for column, text in found.either.items()
        if not found.point and ("," in text or delimiter == ";")
    }
    if unclear:
        doubt = f"{_example(unclear)} could be a decimal number or one with thousands."
        return Understood("," if delimiter == ";" else ".", doubt)
    grouped = {c: t for c, t in {**found.either, **found.thousands}.items() if "," in t}
    if grouped:
        return Understood(".", "", f"commas separate thousands ({_example(grouped)}).")
    return Understood(".")


def _example(texts: Mapping[str, str]) -> str:
    column, text = next(iter(texts.items()))
    return f"'{text}' in '{column}'"


def with_decimal(source: Source, decimal: Decimal, text: Collection[str] = ()) -> Source:
    """The source with this decimal sign; columns of plain numbers in a text file become numbers.

    Columns in `text` stay as they are written.
    """
    frame = source.frame
    if source.lines is not None:
        typed = [_typed(frame[c], decimal) if c not in text else frame[c] for c in source.columns]
        frame = frame.with_columns(*typed) if typed else frame
    return replace(source, frame=frame, decimal=decimal)


def _typed(series: nw.Series[Any], decimal: Decimal) -> nw.Series[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(series.to_native())
    absent = pc.is_in(pc.utf8_lower(cells), value_set=pa.array(sorted(MISSING)))
    known = pc.if_else(absent, pa.scalar(None, pa.string()), cells)
    # With decimal commas `1.234` is a whole number; only digits can be read at once.
    for kind in (pa.int64(), pa.float64()) if decimal == "." else (pa.int64(),):
        try:
            typed = pc.cast(known, kind)
        except pa.ArrowInvalid:
            continue
        found: nw.Series[Any] = nw.from_native(typed, series_only=True)
        return found.alias(series.name)
    return series


def note_missing_words(source: Source, schema: Schema, issues: Issues) -> None:
    """Note which words were read as missing, in which columns, and how often."""
    listed = schema.listed_values()
    words: dict[str, Counter[str]] = {}
    for column in dict.fromkeys(column for _, column in schema.columns_by_role()):
        for word, count in source.missing_words(column).items():
            if word not in listed.get(column, ()):
                words.setdefault(word, Counter())[column] += count
    for word, columns in words.items():
        where = enumerate_some(f"{count} in '{column}'" for column, count in columns.items())
        values = [c for c in columns if c in listed or c == schema.label]
        remedy = f" List it among the values of '{values[0]}' if it is one." if values else ""
        issues.note(f"{columns.total()} cell(s) '{word}' are read as missing: {where}.{remedy}")
