"""Dates and visit names as people write them: `10.01.2025`, `1/31/2025`, `V1`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta
from typing import Literal

DateOrder = Literal["ymd", "dmy", "mdy"]

_CLOCK = r"(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d*)?)?)?"
_WRITTEN = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})" + _CLOCK)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_START = datetime(1970, 1, 1)
_NAMED = re.compile(r"([^\W\d][^\d]*?)[\s_.-]*(\d+)")


def day_of(text: str, order: DateOrder = "ymd") -> float | None:
    """A date as days since 1970, or `None`. ISO dates are read in every order.

    Example:
        >>> day_of("1970-01-11"), day_of("11.01.1970", "dmy"), day_of("11.01.1970")
        (10.0, 10.0, None)
    """
    if _ISO.match(text):
        try:
            return (datetime.fromisoformat(text).replace(tzinfo=None) - _START) / timedelta(days=1)
        except ValueError:
            return None
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    parts = [int(found[i]) for i in (1, 3, 4)]
    long = [len(found[i]) == 4 for i in (1, 3, 4)]
    if long != [order == "ymd", False, order != "ymd"]:
        return None
    year, month, day = (parts[order.index(part)] for part in "ymd")
    try:
        hours, minutes, seconds = (int(found[i] or 0) for i in (5, 6, 7))
        moment = datetime(year, month, day, hours, minutes, seconds)
    except ValueError:
        return None
    return (moment - _START) / timedelta(days=1)


def date_orders(texts: Collection[str]) -> list[DateOrder]:
    """The orders in which every text is a date; with points, the day is always first.

    Example:
        >>> date_orders(["10.01.2025"]), date_orders(["1/2/2025"]), date_orders(["1/31/2025"])
        (['dmy'], ['dmy', 'mdy'], ['mdy'])
    """
    fitting: list[DateOrder] = []
    for order in ("ymd", "dmy", "mdy"):
        pointed = order == "mdy" and any("." in t.partition(":")[0] for t in texts)
        if texts and not pointed and all(day_of(t, order) is not None for t in texts):
            fitting.append(order)
    return fitting[:1] if fitting[:1] == ["ymd"] else fitting


def to_date(days: float) -> date:
    """The date of days since 1970."""
    return (_START + timedelta(days=float(days))).date()


def visit_prefix(texts: Iterable[str]) -> str | None:
    """What stands before the number in every visit name; `None` if that is not the same.

    Example:
        >>> visit_prefix(["V1", "v 2"]), visit_prefix(["bl", "m06"]), visit_prefix(["1", "2"])
        ('V', None, None)
    """
    found = [_NAMED.fullmatch(text) for text in texts]
    names = {m[1].strip().casefold() for m in found if m is not None}
    first = next((m[1].strip() for m in found if m is not None), None)
    return first if len(names) == 1 and None not in found else None


def visit_number(text: str, prefix: str) -> str:
    """The number in a visit name with this prefix; other texts stay as they are."""
    found = _NAMED.fullmatch(text)
    return found[2] if found and found[1].strip().casefold() == prefix.casefold() else text
