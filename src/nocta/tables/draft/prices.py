"""Reads a price list as people have it: currency signs, decimal commas, rows nobody needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nocta.core.errors import did_you_mean
from nocta.tables.columns import to_text
from nocta.tables.notation import parse_amount
from nocta.tables.problems import Issues
from nocta.tables.source import Source, drop_repeats, open_source
from nocta.tables.understand import read_decimal


class Price(NamedTuple):
    """One line of a price list."""

    cost: float
    group: str | None


@dataclass(frozen=True)
class PriceList:
    """Prices by feature."""

    by_feature: dict[str, Price] = field(default_factory=dict)
    currency: str = ""  # the sign in the list, if it has one


def read_prices(costs: Any, issues: Issues) -> PriceList:
    """A price list: columns `feature`, `cost` and optionally `group`."""
    source = open_source(costs, issues)
    if source is None:
        return PriceList()
    absent = [c for c in ("feature", "cost") if c not in source.columns]
    for column in absent:
        hint = did_you_mean(column, source.columns)
        issues.add(source.name, f"the price list has no column '{column}'.{hint}", kind="cost")
    if absent:
        return PriceList()
    source = drop_repeats(source, source.columns, issues)
    names = to_text(source.frame["feature"])
    amounts, currency = _amounts(source, issues)
    groups = to_text(source.frame["group"]) if "group" in source.columns else [None] * len(names)
    prices: dict[str, Price] = {}
    for row, (name, cost, group) in enumerate(zip(names, amounts, groups, strict=True)):
        where = f"{source.name}, {source.place(row)}"
        if name is None or cost is None or not cost >= 0:
            found = "no feature" if name is None else f"no cost of at least 0 for '{name}'"
            issues.add(where, f"{found}.", "Give a feature name and a number.", "cost")
        elif name in prices:
            issues.add(where, f"'{name}' has a second price.", "Keep one.", "cost")
        else:
            prices[name] = Price(cost, group)
    return PriceList(prices, currency)


def _amounts(source: Source, issues: Issues) -> tuple[list[float | None], str]:
    """The costs and the currency sign that is the most frequent."""
    found = read_decimal(source, {"cost"})
    if found.doubt:
        remedy = "Write one price without a thousands separator, such as 1234 or 1234,00."
        issues.add(source.name, found.doubt, remedy, "cost")
    elif found.remark:
        issues.note(f"{source.name}: {found.remark}")
    cells = source.frame["cost"].to_list()
    texts = to_text(source.frame["cost"])
    pairs: list[tuple[float | None, str]] = [
        (None, "")
        if text is None
        else parse_amount(text, found.decimal if isinstance(cell, str) else ".")
        for cell, text in zip(cells, texts, strict=True)
    ]
    signs = Counter(sign for _, sign in pairs if sign)
    if len(signs) > 1:
        shown = ", ".join(f"'{sign}'" for sign in signs)
        remedy = "Give every price in one currency."
        issues.add(source.name, f"the prices are in several currencies: {shown}.", remedy, "cost")
    currency = next(iter(signs), "")
    if currency:
        issues.note(f"{source.name}: prices are in '{currency}'.")
    return [amount for amount, _ in pairs], currency
