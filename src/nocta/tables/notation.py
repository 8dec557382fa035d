"""How numbers are written in a table: decimal sign, thousands separators, currency signs.

A sign is taken from what can be read in one way only: `3,5` has a decimal comma, `1,234,567` has
not. `1,234` alone is either; the schema then has to say `decimal`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Decimal = Literal[".", ","]

_SIGNS: tuple[Decimal, ...] = (",", ".")
_GAPS = " '\u2019\u00a0\u202f"  # separate thousands, whatever the decimal sign
_NUMBER = re.compile(rf"[+-]?\d[\d.,{_GAPS}]*|[+-]?[.,]\d+")
_CODES = frozenset(
    "EUR USD GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON TRY BRL MXN ZAR ILS KRW"
    " Fr. Fr kr zł Kč Ft Rs R$ US$ A$ C$".split()
)
_AMOUNT = re.compile(rf"([^\d+-]*?)\s*([+-]?\d[\d.,{_GAPS}]*?)(?:,[-\u2013\u2014])?\s*([^\d]*)")


def parse_number(text: str, decimal: Decimal = ".") -> float | None:
    """A number as people write it, or `None`.

    Example:
        >>> parse_number("1.234,5", ","), parse_number("1 234.5"), parse_number("3,5")
        (1234.5, 1234.5, None)
    """
    plain = text.replace(",", ".") if decimal == "," and "." not in text else text
    if decimal == "." or "." not in text:
        number = plain_number(plain)
        if number is not None:
            return number
    other = "," if decimal == "." else "."
    grouped = rf"[+-]?[1-9]\d{{0,2}}([{other}{_GAPS}])\d{{3}}(\1\d{{3}})*([{decimal}]\d+)?"
    if not re.fullmatch(grouped, text):
        return None
    return plain_number(re.sub(rf"[{other}{_GAPS}]", "", text).replace(",", "."))


def plain_number(text: str) -> float | None:
    """A number as programs write it, or `None`."""
    # `float` would also accept digits grouped with underscores.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def looks_like_number(text: str) -> bool:
    """Whether it is a number with some decimal sign."""
    return any(parse_number(text, sign) is not None for sign in _SIGNS)


def decimal_evidence(text: str) -> Decimal | Literal["either"] | None:
    """The decimal sign that a text proves; `"either"` for `1,234`; `None` without a sign.

    Example:
        >>> [decimal_evidence(t) for t in ("3,5", "1,234", "1,234,567", "0.431", "12")]
        [',', 'either', '.', '.', None]
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or not set(text) & {".", ","}:
        return None
    comma, point = (parse_number(text, sign) is not None for sign in _SIGNS)
    if comma and point:
        return "either"
    if comma or point:
        return "," if comma else "."
    return None


@dataclass(frozen=True)
class Evidence:
    """What the columns of a table say about the decimal sign: an example of each, by column."""

    comma: Mapping[str, str]
    point: Mapping[str, str]
    either: Mapping[str, str]  # columns that say nothing else, and hold a text like `1,234`
    thousands: Mapping[str, str]  # columns with a text like `1,234.5` or `1,234,567`

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[str]]) -> Evidence:
        """Look at the distinct texts of each column."""
        comma: dict[str, str] = {}
        point: dict[str, str] = {}
        either: dict[str, str] = {}
        thousands: dict[str, str] = {}
        for name, texts in columns.items():
            found: dict[str | None, str] = {}
            for text in texts:
                found.setdefault(decimal_evidence(text), text)
                if len(re.findall("[.,]", text)) > 1:
                    thousands.setdefault(name, text)
            if "," in found:
                comma[name] = found[","]
            if "." in found:
                point[name] = found["."]
            if "either" in found and not {",", "."} & found.keys():
                either[name] = found["either"]
        return cls(comma, point, either, thousands)

    def shown(self, sign: Decimal) -> str:
        """An example in words."""
        column, text = next(iter((self.comma if sign == "," else self.point).items()))
        return f"'{text}' in '{column}'"


def parse_amount(text: str, decimal: Decimal = ".") -> tuple[float | None, str]:
    """A price and its currency sign, if it has one.

    Example:
        >>> parse_amount("€ 1.272,50", ","), parse_amount("12.50 USD"), parse_amount("high")
        ((1272.5, '€'), (12.5, 'USD'), (None, ''))
    """
    amount, sign = split_amount(text)
    return parse_number(amount, decimal), sign


def split_amount(text: str) -> tuple[str, str]:
    """A price without its currency sign, and the sign; other texts stay as they are."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        return text, ""
    before, after = found[1].strip(), found[3].strip()
    known = [sign == "" or is_currency(sign) for sign in (before, after)]
    return (found[2].strip(), before or after) if all(known) else (text, "")


def is_currency(text: str) -> bool:
    """Whether it is a currency sign or a usual code."""
    return text in _CODES or (len(text) == 1 and unicodedata.category(text) == "Sc")
