"""Reads one column of a table as numbers, dates, identifiers or classes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from nocta.tables.source import MISSING

_LARGEST = float(np.finfo(np.float32).max)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_EMPTY = MISSING | {"<na>", "nat"}  # as pandas writes them
_TRUTH = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True)
class Numbers:
    """A column as numbers."""

    values: NDArray[np.float64]  # (n_rows,), NaN if a cell is empty or not a number
    wrong: dict[int, str]  # text of the cells that are not numbers, by row
    infinite: NDArray[np.int64]  # rows whose number is infinite or too large


def to_text(series: nw.Series[Any]) -> list[str | None]:
    """Cells as trimmed text, `None` if empty; whole numbers have no decimal point."""
    return [_cell_text(cell) for cell in series.to_list()]


def _cell_text(cell: Any) -> str | None:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    return None if text.lower() in _EMPTY else text


def to_numbers(series: nw.Series[Any], categories: Sequence[str] | None = None) -> Numbers:
    """Cells as numbers; text in `categories` becomes its position, true and false 1 and 0."""
    if categories is None and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        values = series.cast(nw.Float64).to_numpy().astype(float)
        return _checked(values, {})
    texts = to_text(series)
    if categories is not None:
        return _checked(*_parse(texts, {c: float(i) for i, c in enumerate(categories)}, False))
    known = {t.lower() for t in texts if t is not None}
    truth = _TRUTH if known and known <= _TRUTH.keys() else {}
    return _checked(*_parse([t and t.lower() for t in texts] if truth else texts, truth, True))


def _parse(
    texts: Sequence[str | None], known: dict[str, float], numeric: bool
) -> tuple[NDArray[np.float64], dict[int, str]]:
    values = np.full(len(texts), np.nan)
    wrong = {}
    for row, text in enumerate(texts):
        if text is None:
            continue
        value = known.get(text)
        if value is None and numeric:
            value = _number(text)
        if value is None:
            wrong[row] = text
        else:
            values[row] = value
    return values, wrong


def _number(text: str) -> float | None:
    # `float` would also accept digits grouped with underscores.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _checked(values: NDArray[np.float64], wrong: dict[int, str]) -> Numbers:
    infinite = np.flatnonzero(np.abs(values) > _LARGEST)
    if infinite.size:
        values = values.copy()
        values[infinite] = np.nan
    return Numbers(values, wrong, infinite)


def is_dated(series: nw.Series[Any]) -> bool:
    """Whether a column holds dates: by its type, or because every cell is an ISO date."""
    if series.dtype in (nw.Date, nw.Datetime):
        return True
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return False
    texts = [t for t in to_text(series) if t is not None]
    return bool(texts) and all(_DATE.match(t) and _day(t) is not None for t in texts)


def to_days(series: nw.Series[Any]) -> NDArray[np.float64]:
    """Dates as days since 1970, NaN if a cell is empty."""
    days = [None if t is None else _day(t) for t in to_text(series)]
    return np.array([np.nan if d is None else d for d in days], dtype=float)


def _day(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(days=1)


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
    number = _number(text)
    if number is not None and math.isfinite(number) and number == int(number):
        return str(int(number))
    return text


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    return _number(text) is not None


def factorize(texts: Sequence[str | None]) -> tuple[NDArray[np.int64], list[str]]:
    """Codes in order of first appearance, -1 for empty, and the text of each code."""
    codes: dict[str, int] = {}
    out = [-1 if t is None else codes.setdefault(t, len(codes)) for t in texts]
    return np.array(out, dtype=np.int64).reshape(len(texts)), list(codes)
