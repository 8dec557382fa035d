"""Writes `schema.toml` with a comment on every guess."""

from __future__ import annotations

import json
import re
from typing import Any

from nocta.tables.draft.meaning import Guess
from nocta.tables.draft.prices import PriceList
from nocta.tables.notation import Decimal

DEFAULT_COST = 1.0


def write_schema(
    guess: Guess, prices: PriceList, *, priced: bool, decimal: Decimal | None = None
) -> str:
    """The file, with a comment on every guess."""
    lines = [
        "# The meaning of each column and the cost of each feature.",
        "# Drafted by `nocta init`; lines marked CHECK are guesses.",
        "",
        _entry("subject", guess.subject, _doubt(guess, "subject")),
        *_clock_lines(guess),
        *_label_lines(guess),
    ]
    known = "CHECK: free and known at the first visit? A constant column can be an outcome"
    lines.append(_entry("context", guess.context, known if guess.context else "free columns"))
    if guess.split is not None:
        lines.append(_entry("split", guess.split))
    lines.append('# group = "..."   # subjects of one group stay in the same split')
    lines.append(_entry("currency", prices.currency) if prices.currency else '# currency = "$"')
    if decimal is not None:
        lines.append(_entry("decimal", decimal, _doubt(guess, "decimal")))
    if guess.nominal:
        lines.append(_entry("nominal", guess.nominal, "no order: one column per value"))
    lines += [f"# left out: {name} ({why})" for name, why in guess.ignored.items()]
    lines += _event_lines(guess)
    if guess.categories:
        lines += ["", "[categories]   # CHECK the order: each text becomes its position, from 0"]
        lines += [_entry(name, values) for name, values in guess.categories.items()]
    for name in guess.features:
        lines += ["", *_feature_lines(name, guess, prices, priced)]
    used = {name: p for name, p in prices.by_feature.items() if name in guess.features}
    for group in dict.fromkeys(p.group for p in used.values() if p.group):
        lines += ["", f"[groups.{_key(group)}]"]
        lines.append("fee = 0.0   # CHECK: charged once per visit if anything of it is acquired")
    lines += ["", *_HINTS]
    return "\n".join(lines) + "\n"


def _label_lines(guess: Guess) -> list[str]:
    if guess.event is not None:
        return ["# label: whether the [event] below happens soon after the visit"]
    if guess.label is None:
        doubt = _doubt(guess, "label") or "CHECK: no column looks like a label"
        return [f'# label = "..."   # {doubt} (needed to train)']
    values = {"label": guess.label, "bins": guess.bins, "classes": guess.classes}
    return [_entry(key, value, _doubt(guess, key)) for key, value in values.items() if value]


def _event_lines(guess: Guess) -> list[str]:
    if guess.event is None:
        return []
    entries = guess.event.model_dump().items()
    return ["", "[event]", *(_entry(key, value, _doubt(guess, key)) for key, value in entries)]


_HINTS = (
    "# Other entries (docs/reference/schema.md):",
    '#   columns = ["left", "right"]   several columns acquired together, as one feature',
    "#   cost = [9.0, 9.0, 4.5]        one cost per visit",
    '#   group = "blood"               with [groups.blood] fee = 2.0, charged once per visit',
    '#   at = "first"                  can only be acquired at the first visit',
    "#   [visit_fee] cost = 5.0        charged once per visit with any acquisition",
)


def _clock_lines(guess: Guess) -> list[str]:
    doubt = _doubt(guess, "visit")
    if guess.visit is not None:
        lines = [_entry("visit", guess.visit, doubt or "visit number")]
        if guess.first_visit:
            lines.append(_entry("first_visit", guess.first_visit, "number of the first visit"))
        return lines + _prefix_line(guess)
    assert guess.grid is not None
    nearest = "CHECK: your planned visits; a record goes to the nearest one"
    lines = [
        _entry("time", guess.time, doubt or _doubt(guess, "time")),
        _entry("grid", guess.grid.slots, f"{nearest}; {guess.grid.lost}"),
    ]
    if guess.time_unit is not None:
        lines.append(_entry("time_unit", guess.time_unit))
    if guess.date_order is not None:
        order = "day, month, year" if guess.date_order == "dmy" else "month, day, year"
        doubt = _doubt(guess, "date_order")
        lines.append(_entry("date_order", guess.date_order, doubt or order))
    return lines + _prefix_line(guess)


def _prefix_line(guess: Guess) -> list[str]:
    prefix = guess.visit_prefix
    return [_entry("visit_prefix", prefix, f"as in {prefix}1")] if prefix else []


def _feature_lines(name: str, guess: Guess, prices: PriceList, priced: bool) -> list[str]:
    price = prices.by_feature.get(name)
    lines = [f"[features.{_key(name)}]"]
    if price is None:
        why = "not in the price list" if priced else "fill in"
        lines.append(_entry("cost", DEFAULT_COST, f"CHECK: {why}"))
    else:
        lines.append(_entry("cost", price.cost))
        lines += [_entry("group", price.group)] if price.group is not None else []
    if name in guess.first_only:
        lines.append(_entry("at", "first", "CHECK: never recorded at later visits"))
    return lines


def _doubt(guess: Guess, key: str) -> str:
    return " ".join(
        "CHECK: " + text.partition(": ")[2] for text in guess.unsure if text.startswith(f"{key}:")
    )


def _entry(key: str, value: Any, comment: str = "") -> str:
    # JSON writes text, numbers and flat lists exactly as TOML does.
    line = f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line}   # {comment}" if comment else line


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
