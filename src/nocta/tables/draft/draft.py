"""Drafts a commented `schema.toml` from a long table and, optionally, a price list."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nocta.core.errors import DataError, did_you_mean
from nocta.tables.columns import to_numbers, to_text
from nocta.tables.draft.guess import Guess, guess_columns
from nocta.tables.draft.seen import look_at
from nocta.tables.problems import Issues
from nocta.tables.source import Source, open_source
from nocta.tables.table import read_table, table_name

DEFAULT_COST = 1.0


class Price(NamedTuple):
    """One line of a price list."""

    cost: float
    group: str | None


@dataclass(frozen=True)
class Draft:
    """A drafted schema."""

    text: str  # the file, with comments
    unsure: tuple[str, ...]  # what to check, one sentence each
    check: str  # the cohort that the table gives with this schema, or the remaining problems
    readable: bool  # whether the table can be read with the draft as it is


def draft_schema(table: Any, costs: Any = None) -> Draft:
    """Draft the schema of a table, guessing what the data do not say.

    Args:
        table: A frame, or the path of a CSV or Parquet file.
        costs: Price list with columns `feature`, `cost` and optionally `group`; a frame or a path.
            Without one, every feature costs 1.

    Example:
        >>> import pandas as pd
        >>> rows = {"id": [1, 1, 2, 2], "visit": [0, 1, 0, 1], "alt": [31, 35, 52, 50]}
        >>> draft = draft_schema(pd.DataFrame({**rows, "outcome": ["ok", "ill", "ok", "ok"]}))
        >>> print(draft.check)
        Cohort('table': 2 subjects, 2 times, 1 features, 2 classes)
    """
    issues = Issues()
    source = open_source(table, issues)
    if source is not None and not len(source):
        issues.add_empty(source.name)
    prices = {} if costs is None else read_prices(costs, issues)
    issues.raise_problems(table_name(table))
    assert source is not None
    guess = guess_columns(look_at(source), prices)
    _check(source, guess, prices, issues)
    issues.raise_problems(table_name(table))
    text = write_schema(guess, prices, priced=costs is not None)
    readable = True
    try:
        check = repr(read_table(table, tomllib.loads(text)).cohort)
    except DataError as error:
        check, readable = str(error), False
    unsure = list(guess.unsure)
    if costs is None:
        unsure.append(f"costs: every feature costs {DEFAULT_COST:g}; fill in the real costs.")
    elif missing := [f for f in guess.features if f not in prices]:
        unsure.append(f"costs: no price for {', '.join(missing)}; they cost {DEFAULT_COST:g}.")
    return Draft(text, tuple(unsure), check, readable)


def _check(source: Source, guess: Guess, prices: dict[str, Price], issues: Issues) -> None:
    if guess.subject is None:
        issues.add(
            source.name,
            "no column looks like the subject: "
            + (guess.obstacle or "no column has repeated values without empty cells."),
            "A long table has one row per subject and visit; add a subject column.",
        )
    elif guess.visit is None and guess.time is None:
        issues.add(
            source.name,
            f"no column distinguishes the visits of a subject. {guess.obstacle}".rstrip(),
            "Add a column with the visit number or the time of every row.",
        )
    for name in [n for n in guess.context if n in prices]:
        guess.context.remove(name)  # context is free, so a column with a price is a feature
        guess.features.append(name)
    for name in prices:
        if name not in guess.features:
            hint = did_you_mean(name, guess.features) or " Remove it from the list."
            issues.add("price list", f"the table has no feature '{name}'.{hint}")


def read_prices(costs: Any, issues: Issues) -> dict[str, Price]:
    """A price list: columns `feature`, `cost` and optionally `group`."""
    source = open_source(costs, issues, text={"feature", "group"})
    if source is None:
        return {}
    absent = [c for c in ("feature", "cost") if c not in source.columns]
    for column in absent:
        hint = did_you_mean(column, source.columns)
        issues.add(source.name, f"the price list has no column '{column}'.{hint}", kind="cost")
    if absent:
        return {}
    names = to_text(source.frame["feature"])
    amounts = to_numbers(source.frame["cost"]).values
    groups = to_text(source.frame["group"]) if "group" in source.columns else [None] * len(names)
    prices: dict[str, Price] = {}
    for row, (name, cost, group) in enumerate(zip(names, amounts.tolist(), groups, strict=True)):
        where = f"{source.name}, {source.place(row)}"
        if name is None or np.isnan(cost) or cost < 0:
            found = "no feature" if name is None else f"no cost of at least 0 for '{name}'"
            issues.add(where, f"{found}.", "Give a feature name and a number.", "cost")
        elif name in prices:
            issues.add(where, f"'{name}' has a second price.", "Keep one.", "cost")
        else:
            prices[name] = Price(cost, group)
    return prices


def write_schema(guess: Guess, prices: dict[str, Price], *, priced: bool) -> str:
    """The file, with a comment on every guess."""
    lines = [
        "# The meaning of each column and the cost of each feature.",
        "# Drafted by `nocta init`; lines marked CHECK are guesses.",
        "",
        _entry("subject", guess.subject, _doubt(guess, "subject")),
        *_clock_lines(guess),
    ]
    if guess.label is None:
        doubt = _doubt(guess, "label") or "CHECK: no column looks like a label"
        lines.append(f'# label = "..."   # {doubt} (needed to train)')
    else:
        lines.append(_entry("label", guess.label, _doubt(guess, "label")))
    if guess.classes:
        lines.append(_entry("classes", guess.classes, _doubt(guess, "classes")))
    known = "CHECK: free and known at the first visit? A constant column can be an outcome"
    lines.append(_entry("context", guess.context, known if guess.context else "free columns"))
    if guess.split is not None:
        lines.append(_entry("split", guess.split))
    lines += [
        '# group = "..."   # subjects of one group stay in the same split',
        '# currency = "$"',
    ]
    lines += [f"# left out: {name} ({why})" for name, why in guess.ignored.items()]
    if guess.categories:
        lines += ["", "[categories]   # CHECK the order: each text becomes its position, from 0"]
        lines += [_entry(name, values) for name, values in guess.categories.items()]
    for name in guess.features:
        lines += ["", *_feature_lines(name, guess, prices, priced)]
    for group in dict.fromkeys(p.group for p in prices.values() if p.group):
        lines += ["", f"[groups.{_key(group)}]"]
        lines.append("fee = 0.0   # CHECK: charged once per visit if anything of it is acquired")
    lines += ["", *_HINTS]
    return "\n".join(lines) + "\n"


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
        return lines
    assert guess.grid is not None
    nearest = "CHECK: your planned visits; a record goes to the nearest one"
    lines = [
        _entry("time", guess.time, doubt or _doubt(guess, "time")),
        _entry("grid", guess.grid.slots, f"{nearest}; {guess.grid.lost}"),
    ]
    if guess.time_unit is not None:
        lines.append(_entry("time_unit", guess.time_unit))
    return lines


def _feature_lines(name: str, guess: Guess, prices: dict[str, Price], priced: bool) -> list[str]:
    price = prices.get(name)
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
