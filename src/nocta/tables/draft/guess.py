"""Guesses what the columns of a long table mean, from their names and their values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

import numpy as np

from nocta.tables.columns import factorize, is_number
from nocta.tables.draft.label import draft_label
from nocta.tables.draft.meaning import LABEL, MOST_CLASSES, Guess, Wish, first_of
from nocta.tables.draft.seen import (
    Column,
    best_auc,
    constant_within,
    increasing_within,
    only_at_first,
    share_distinct,
)
from nocta.tables.grid import Codes, draft_grid
from nocta.tables.rows import since_first

_NUMBER = r"([_ ]?(id|no|nr|num|number|index|code))?"
_SUBJECT = r"(subject|patient|participant|person|client|user|rid|ptid|pid|mrn|id)" + _NUMBER
_VISIT = r"(visit|slot|wave|session|time[_ ]?point|exam|follow[_ ]?up|t)" + _NUMBER
_TIME = r"(.*[_ ])?(time|years?|months?|weeks?|days?|hours?|date|elapsed)([_ ].*)?"
#: Known only at the end: how long a subject lived or stayed, and the outcome.
_LATER = (
    r"(.*[_ ])?(fu[_ ]?time|follow[_ ]?up|surviv(al|ed|or)|mortality|dead|deceased|death|died|los"
    r"|length[_ ]of[_ ]stay|discharged?|censor(ed|ing)?|(time|years|months|weeks|days|hours)[_ ]"
    r"?(to|until|till)|next)([_ ].*)?"
)
_SPLIT_NAMES = {"train", "training", "val", "valid", "validation", "dev", "test", "holdout"}
_WRITTEN = {"ymd": "", "dmy": " (day, month, year)", "mdy": " (month, day, year)"}
_UNITS = ("years", "months", "weeks", "days", "hours")
#: A single column with at least this ROC AUC may be an outcome.
GIVEAWAY = 0.97


def guess_columns(
    columns: list[Column], priced: Collection[str] = (), wish: Wish | None = None
) -> Guess:
    """Find the subject, visit or time, label, split, context and features.

    Columns in the price list are features even if named like an outcome.
    """
    wish = wish or Wish()
    guess = Guess()
    left = {c.name: c for c in columns}
    subject = _guess_subject(columns, guess)
    if subject is None:
        return guess
    guess.subject = left.pop(subject.name).name
    codes, _ = factorize(subject.texts)
    if (codes < 0).any():
        rows = np.flatnonzero(codes >= 0)
        left, codes = {name: column.at(rows) for name, column in left.items()}, codes[rows]
    clock = _guess_clock(list(left.values()), codes, guess)
    if clock is not None:
        left.pop(clock.name)
    for column in list(left.values()):
        if column.values and {v.lower() for v in column.values} <= _SPLIT_NAMES:
            guess.split = left.pop(column.name).name
            break
    label = draft_label(left, codes, wish, guess)
    for column in left.values():
        if column.name not in priced and (like := _named_like(column)):
            guess.ignored[column.name] = f"named like {like}; it may reveal the label"
        else:
            _guess_role(column, codes, clock, guess)
    _guess_panels([left[name] for name in guess.features], guess)
    _explain_roles(guess)
    if label is not None:
        _point_out_giveaways(left, label, guess)
    return guess


def _explain_roles(guess: Guess) -> None:
    if guess.context:
        verb = "is" if len(guess.context) == 1 else "are"
        guess.unsure.append(
            f"context: {', '.join(guess.context)} {verb} constant within each subject and assumed "
            "free and known at the first visit; remove what is only known later."
        )
    guess.unsure += [f"features: '{n}' is left out ({why})." for n, why in guess.ignored.items()]


def _named_like(column: Column) -> str:
    """What the name suggests that a policy must not see; empty if nothing."""
    if column.matches(LABEL):
        return "a label"
    return "something known only later" if column.matches(_LATER) else ""


def _point_out_giveaways(columns: dict[str, Column], label: Column, guess: Guess) -> None:
    """Doubt a column that separates a class by itself: few measurements do, outcomes often."""
    for name in (*guess.context, *guess.features):
        auc = best_auc(columns[name], label)
        if auc >= GIVEAWAY:
            role = "context" if name in guess.context else "features"
            guess.unsure.append(
                f"{role}: '{name}' alone separates a class of '{label.name}' from the others (ROC "
                f"AUC {auc:.2f}); make sure that it is known before the label."
            )


def _guess_subject(columns: list[Column], guess: Guess) -> Column | None:
    """A named identifier that repeats; else the first column that repeats and is never empty."""
    called = [c for c in columns if c.matches(_SUBJECT) and c.values and not c.dated]
    # Tolerate a few empty cells; they are listed as problems when the table is read.
    named = [c for c in called if len(c.values) < c.n_known and c.n_known >= 0.9 * len(c.texts)]
    if named:
        return first_of("subject", named, guess)
    if called:
        column = called[0]
        guess.obstacle = f"'{column.name}' has a subject-like name but " + (
            "is different in every row; with one visit per subject there is nothing to plan."
            if len(column.values) == column.n_known
            else "is empty in many rows."
        )
        return None
    repeats = [c for c in columns if None not in c.texts and 1 < len(c.values) < len(c.texts)]
    whole = [c for c in repeats if not c.dated and (not c.numeric or c.whole)]
    if not whole:
        return None
    guess.unsure.append(
        f"subject: No column has a subject-like name; guessing '{whole[0].name}', the first column "
        "with repeated values."
    )
    return whole[0]


def _guess_clock(columns: list[Column], codes: Codes, guess: Guess) -> Column | None:
    """The column whose values differ within a subject; a visit-like or time-like name decides."""
    called = [c for c in columns if c.matches(_VISIT)]
    called += [c for c in columns if c.matches(_TIME) and c not in called]
    called = [c.as_visits() for c in called]
    # Tolerate duplicate rows; they are listed as problems when the table is read.
    ranked = [c for c in called if c.numeric and share_distinct(c.numbers, codes) >= 0.98]
    ranked = ranked or [c for c in called if c.numeric and share_distinct(c.numbers, codes) > 0.5]
    if not ranked and (text := [c for c in called if not c.numeric and len(c.values) > 1]):
        guess.obstacle = (
            f"'{text[0].name}' has a visit-like name but holds '{min(text[0].values)}', which is "
            "neither a number nor a date like 2024-01-31."
        )
        return None
    if not ranked:
        ranked = [c for c in columns if c.numeric and increasing_within(c.numbers, codes)][:1]
        if not ranked:
            return None
        guess.unsure.append(
            f"visit: No column has a visit-like name; guessing '{ranked[0].name}', which increases "
            "from row to row of each subject."
        )
    clock = first_of("visit", ranked, guess)
    guess.visit_prefix = clock.prefix
    known = clock.numbers[~np.isnan(clock.numbers)]
    distinct = np.unique(known)
    if clock.whole and distinct[0] in (0, 1) and distinct[-1] - distinct[0] < 2 * distinct.size:
        guess.visit, guess.first_visit = clock.name, int(distinct[0])
        return clock
    guess.time = clock.name
    _guess_grid(clock, codes, guess)
    return clock


def _guess_grid(clock: Column, codes: Codes, guess: Guess) -> None:
    times = clock.numbers
    lower = clock.name.lower()
    guess.time_unit = next(
        (u for u in _UNITS if u in lower or re.search(rf"\b{u[:-1]}\b", lower)), None
    )
    if clock.dated:
        times = since_first(times, codes)
        guess.time_unit = "days"
        guess.date_order = None if clock.orders[0] == "ymd" else clock.orders[0]
        if len(clock.orders) > 1:
            guess.unsure.append(
                f"date_order: no date of '{clock.name}' tells whether the day or the month comes "
                'first; "mdy" is month first.'
            )
        guess.unsure.append(
            f"time: '{clock.name}' holds dates{_WRITTEN[clock.orders[0]]}; they become days since "
            "the subject's first row."
        )
    guess.grid = draft_grid(times, codes)
    guess.unsure.append(
        f"grid: {[round(g, 4) for g in guess.grid.slots]} are "
        + ("the times in the table" if guess.grid.planned else "typical visit times")
        + f"; {guess.grid.lost}. Replace them with your own schedule."
    )


def _guess_role(column: Column, codes: Codes, clock: Column | None, guess: Guess) -> None:
    name = column.name
    if why := _unusable(column):
        guess.ignored[name] = why
        return
    if not column.numeric:
        if any(is_number(value) for value in column.values):
            guess.unsure.append(f"features: '{name}' holds both numbers and text.")
        else:
            guess.categories[name] = sorted(column.values)
            _explain_kept(column, guess)
    if clock is not None and only_at_first(column, codes, clock.numbers):
        guess.features.append(name)
        guess.first_only.append(name)
        guess.unsure.append(
            f"features: '{name}' is recorded at first visits only; if it is free, make it context."
        )
    else:
        (guess.context if constant_within(column, codes) else guess.features).append(name)
    if name not in guess.categories:
        return
    if name in guess.context and len(guess.categories[name]) > 2:
        guess.nominal.append(name)
        guess.unsure.append(
            f"nominal: '{name}' becomes one column per value; if its values have an order, list "
            "them in that order under [categories] and remove it from nominal."
        )
    else:
        guess.unsure.append(f"categories: those of '{name}' are in alphabetical order.")


def _explain_kept(column: Column, guess: Guess) -> None:
    for word in column.kept:
        count = sum(text == word for text in column.texts)
        guess.unsure.append(
            f"categories: '{word}' in '{column.name}' is read as a value ({count} cells); remove "
            "it from the list if it means not recorded."
        )


def _unusable(column: Column) -> str:
    """Why a column is neither feature nor context; empty if it can be."""
    if not column.values or column.dated:
        return "dates" if column.dated else "empty"
    if column.numeric or len(column.values) <= MOST_CLASSES:
        return ""
    if any(is_number(value) for value in column.values):
        return ""
    return f"text, {len(column.values)} different values"


def _guess_panels(features: list[Column], guess: Guess) -> None:
    """Point out columns that are empty in exactly the same rows: one test may reveal them all."""
    together = defaultdict(list)
    for column in features:
        recorded = tuple(t is not None for t in column.texts)
        if not all(recorded) and column.name not in guess.first_only:
            together[recorded].append(column.name)
    for names in together.values():
        if len(names) > 1:
            guess.unsure.append(
                f"features: {', '.join(names)} are always recorded together; if one test reveals "
                "them all, list them as the columns of one feature."
            )
