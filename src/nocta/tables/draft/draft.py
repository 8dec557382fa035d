"""Drafts a commented `schema.toml` from a long table and, optionally, a price list."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from nocta.core.errors import DataError, did_you_mean
from nocta.tables.draft.guess import guess_columns
from nocta.tables.draft.meaning import Guess, Wish
from nocta.tables.draft.prices import PriceList, read_prices
from nocta.tables.draft.seen import look_at
from nocta.tables.draft.write import DEFAULT_COST, write_schema
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.source import Source, drop_repeats, open_source
from nocta.tables.table import read_table, table_name
from nocta.tables.understand import note_missing_words, read_decimal, with_decimal


@dataclass(frozen=True)
class Draft:
    """A drafted schema."""

    text: str  # the file, with comments
    unsure: tuple[str, ...]  # what to check, one sentence each
    notes: tuple[str, ...]  # what was understood of the file, and what is left out
    check: str  # the cohort that the table gives with this schema, or the remaining problems
    readable: bool  # whether the table can be read with the draft as it is


def draft_schema(table: Any, costs: Any = None, wish: Wish | None = None) -> Draft:
    """Draft the schema of a table, guessing what the data do not say.

    Args:
        table: A frame, or the path of a CSV or Parquet file.
        costs: Price list with columns `feature`, `cost` and optionally `group`; a frame or a path.
            Without one, every feature costs 1.
        wish: What the label is, if it is not to be guessed.

    Example:
        >>> import pandas as pd
        >>> rows = {"id": [1, 1, 2, 2], "visit": [0, 1, 0, 1], "alt": [31, 35, 52, 50]}
        >>> draft = draft_schema(pd.DataFrame({**rows, "outcome": ["ok", "ill", "ok", "ok"]}))
        >>> print(draft.check)
        Cohort('table': 2 subjects, 2 times, 1 features, 2 classes)
    """
    issues, unsure = Issues(), list[str]()
    source = open_source(table, issues)
    if source is not None and not len(source):
        issues.add_empty(source.name)
    prices = PriceList() if costs is None else read_prices(costs, issues)
    issues.raise_problems(table_name(table))
    assert source is not None
    source = drop_repeats(source, source.columns, issues)
    found = read_decimal(source)
    if found.doubt:
        unsure.append(f'decimal: {found.doubt} "," is a decimal comma, "." a decimal point.')
    source = with_decimal(source, found.decimal)
    guess = guess_columns(look_at(source), prices.by_feature, wish)
    _check(source, guess, prices, issues)
    issues.raise_problems(table_name(table))
    unsure += guess.unsure
    guess.unsure = unsure
    decimal = found.decimal if found.doubt or found.decimal == "," else None
    text = write_schema(guess, prices, priced=costs is not None, decimal=decimal)
    if found.remark:
        issues.note(f"{source.name}: {found.remark}")
    note_missing_words(source, Schema.model_validate(tomllib.loads(text)), issues)
    readable = True
    try:
        reading = read_table(table, tomllib.loads(text))
        check = repr(reading.cohort)
        for note in reading.notes:
            issues.note(note)
    except DataError as error:
        check, readable = str(error), False
    if costs is None:
        unsure.append(f"costs: every feature costs {DEFAULT_COST:g}; fill in the real costs.")
    elif missing := [f for f in guess.features if f not in prices.by_feature]:
        unsure.append(f"costs: no price for {', '.join(missing)}; they cost {DEFAULT_COST:g}.")
    return Draft(text, tuple(unsure), tuple(issues.notes), check, readable)


def _check(source: Source, guess: Guess, prices: PriceList, issues: Issues) -> None:
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
    priced = prices.by_feature
    for name in [n for n in guess.context if n in priced]:
        guess.context.remove(name)  # context is free, so a column with a price is a feature
        guess.features.append(name)
    guess.nominal = [name for name in guess.nominal if name in guess.context]
    if extra := [name for name in priced if name not in guess.features]:
        hints = "".join(dict.fromkeys(did_you_mean(name, guess.features) for name in extra))
        issues.note(
            f"{len(extra)} price(s) are not used, because the table has no such feature: "
            f"{enumerate_some((repr(name) for name in extra), 10)}.{hints}"
        )
