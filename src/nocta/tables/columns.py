"""Reads one column of a table as numbers, dates, identifiers or classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from nocta.tables.dates import DateOrder, date_orders, day_of, visit_number
from nocta.tables.notation import Decimal, parse_number, plain_number
from nocta.tables.source import MISSING

_LARGEST = float(np.finfo(np.float32).max)
_ABSENT = frozenset({"none", "nan", "<na>", "nat"})  # empty cells of frames, as text
_EMPTY = MISSING | _ABSENT
_TRUTH = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True)
class Numbers:
    """A column as numbers."""

    values: NDArray[np.float64]  # (n_rows,), NaN if a cell is empty or not a number
    wrong: dict[int, str]  # text of the cells that are not numbers, by row
    infinite: NDArray[np.int64]  # rows whose number is infinite or too large


def to_text(series: nw.Series[Any], values: Collection[str] = ()) -> list[str | None]:
    """Cells as trimmed text, `None` if empty; whole numbers have no decimal point.

    Words such as `none` mean empty, unless they are listed among the `values` of the column.
    """
    known = {value: value for value in values}
    return [_cell_text(cell, known) for cell in series.to_list()]


def _cell_text(cell: Any, known: dict[str, str]) -> str | None:
    if isinstance(cell, str):
        text = cell.strip()
        return text if text in known or text.lower() not in _EMPTY else None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    return None if text.lower() in _ABSENT else text


def to_numbers(
    series: nw.Series[Any],
    categories: Sequence[str] | None = None,
    decimal: Decimal = ".",
    prefix: str = "",
) -> Numbers:
    """Cells as numbers; text in `categories` becomes its position, true and false 1 and 0.

    Numbers may follow a `prefix`, as in `V1`.
    """
    if categories is None and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        values = series.cast(nw.Float64).to_numpy().astype(float)
        return _checked(values, {})
    texts = to_text(series, categories or ())
    if categories is not None:
        places = {c: float(i) for i, c in enumerate(categories)}
        return _checked(*_parse(texts, places.get))
    known = {t.lower() for t in texts if t is not None}
    if known and known <= _TRUTH.keys():
        return _checked(*_parse(texts, lambda text: _TRUTH[text.lower()]))
    if decimal == ",":  # cells of a frame that are numbers already have a point
        cells = zip(texts, series.to_list(), strict=True)
        texts = [t if t is None or isinstance(c, str) else t.replace(".", ",") for t, c in cells]
    if prefix:
        texts = [t if t is None else visit_number(t, prefix) for t in texts]
    return _checked(*_parse(texts, lambda text: parse_number(text, decimal)))


def _parse(
    texts: Sequence[str | None], parse: Callable[[str], float | None]
) -> tuple[NDArray[np.float64], dict[int, str]]:
    values = np.full(len(texts), np.nan)
    found: dict[str, float | None] = {}
    wrong = {}
    for row, text in enumerate(texts):
        if text is None:
            continue
        if text not in found:
            found[text] = parse(text)
        value = found[text]
        if value is None:
            wrong[row] = text
        else:
            values[row] = value
    return values, wrong


def _checked(values: NDArray[np.float64], wrong: dict[int, str]) -> Numbers:
    infinite = np.flatnonzero(np.abs(values) > _LARGEST)
    if infinite.size:
        values = values.copy()
        values[infinite] = np.nan
    return Numbers(values, wrong, infinite)


def find_date_orders(series: nw.Series[Any]) -> list[DateOrder]:
    """The orders in which every cell is a date; empty if the column holds no dates."""
    if series.dtype in (nw.Date, nw.Datetime):
        return ["ymd"]
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return []
    return date_orders({t for t in to_text(series) if t is not None})


def to_days(series: nw.Series[Any], order: DateOrder = "ymd") -> NDArray[np.float64]:
    """Dates as days since 1970, NaN if a cell is empty."""
    return _parse(to_text(series), lambda text: day_of(text, order))[0]


def to_ids(texts: Sequence[str]) -> NDArray[Any]:
    """Identifiers: integers if all are written as integers, else text.

    Example:
        >>> to_ids(["3", "12"]), to_ids(["03", "12"])
        (array([ 3, 12]), array(['03', '12'], dtype='<U2'))
    """
    try:
        numbers = np.array([int(t) for t in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts, dtype=str)
    unchanged = [str(n) for n in numbers] == list(texts)
    return numbers if unchanged else np.array(texts, dtype=str)


def class_name(text: str) -> str:
    """One spelling per class: `2.0` and `2` are the same."""
    number = plain_number(text)
    if number is not None and math.isfinite(number) and number == int(number):
        return str(int(number))
    return text


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    return plain_number(text) is not None


def factorize(texts: Sequence[str | None]) -> tuple[NDArray[np.int64], list[str]]:
    """Codes in order of first appearance, -1 for empty, and the text of each code."""
    codes: dict[str, int] = {}
    out = [-1 if t is None else codes.setdefault(t, len(codes)) for t in texts]
    return np.array(out, dtype=np.int64).reshape(len(texts)), list(codes)
