"""Guesses what the columns of a long table mean, from their names and their values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from nocta.tables.columns import factorize, is_number
from nocta.tables.draft.seen import (
    Column,
    best_auc,
    constant_within,
    increasing_within,
    only_at_first,
    share_distinct,
)
from nocta.tables.grid import Codes, DraftedGrid, draft_grid
from nocta.tables.rows import since_first
from nocta.tables.validate import order_classes

_NUMBER = r"([_ ]?(id|no|nr|num|number|index|code))?"
_SUBJECT = r"(subject|patient|participant|person|client|user|rid|ptid|pid|mrn|id)" + _NUMBER
_VISIT = r"(visit|slot|wave|session|time[_ ]?point|exam|follow[_ ]?up|t)" + _NUMBER
_TIME = r"(.*[_ ])?(time|years?|months?|weeks?|days?|hours?|date|elapsed)([_ ].*)?"
_LABEL = (
    r"(label|target|outcome|class|diagnosis|dx|stage|status|y|event|progression|response|death"
    r"|died)([_ ].*)?"
)
#: Known only at the end: how long a subject lived or stayed, and the outcome.
_LATER = (
    r"(.*[_ ])?(fu[_ ]?time|follow[_ ]?up|surviv(al|ed|or)|mortality|dead|deceased|death|died|los"
    r"|length[_ ]of[_ ]stay|discharged?|censor(ed|ing)?|(time|years|months|weeks|days|hours)[_ ]"
    r"?(to|until|till)|next)([_ ].*)?"
)
_SPLIT_NAMES = {"train", "training", "val", "valid", "validation", "dev", "test", "holdout"}
_UNITS = ("years", "months", "weeks", "days", "hours")
MOST_CLASSES = 20
#: A single column with at least this ROC AUC may be an outcome.
GIVEAWAY = 0.97


@dataclass
class Guess:
    """The meaning of every column, and what to check."""

    subject: str | None = None
    visit: str | None = None
    first_visit: int = 0
    time: str | None = None
    time_unit: str | None = None
    grid: DraftedGrid | None = None
    label: str | None = None
    classes: list[str] = field(default_factory=list)
    split: str | None = None
    context: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    first_only: list[str] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    #: Why a column with a subject-like or visit-like name cannot be used.
    obstacle: str = ""


def guess_columns(columns: list[Column], priced: Collection[str] = ()) -> Guess:
    """Find the subject, visit or time, label, split, context and features.

    Columns in the price list are features even if named like an outcome.
    """
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
    label = _guess_label(list(left.values()), codes, guess)
    if label is not None:
        guess.label = left.pop(label.name).name
        _guess_classes(label, guess)
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
    if column.matches(_LABEL):
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


def _first(key: str, candidates: list[Column], guess: Guess) -> Column:
    """The first candidate; the others are mentioned."""
    if len(candidates) > 1:
        others = ", ".join(f"'{c.name}'" for c in candidates[1:])
        guess.unsure.append(f"{key}: guessing '{candidates[0].name}'; {others} could be it too.")
    return candidates[0]


def _guess_subject(columns: list[Column], guess: Guess) -> Column | None:
    """A named identifier that repeats; else the first column that repeats and is never empty."""
    called = [c for c in columns if c.matches(_SUBJECT) and c.values and not c.dated]
    # Tolerate a few empty cells; they are listed as problems when the table is read.
    named = [c for c in called if len(c.values) < c.n_known and c.n_known >= 0.9 * len(c.texts)]
    if named:
        return _first("subject", named, guess)
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
    clock = _first("visit", ranked, guess)
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
        guess.unsure.append(
            f"time: '{clock.name}' holds dates; they become days since the subject's first row."
        )
    guess.grid = draft_grid(times, codes)
    guess.unsure.append(
        f"grid: {[round(g, 4) for g in guess.grid.slots]} are "
        + ("the times in the table" if guess.grid.planned else "typical visit times")
        + f"; {guess.grid.lost}. Replace them with your own schedule."
    )


def _guess_label(columns: list[Column], codes: Codes, guess: Guess) -> Column | None:
    """A column with a label-like name and few values; else the last column with few values."""
    few = [c for c in columns if 2 <= len(c.values) <= MOST_CLASSES and (not c.numeric or c.whole)]
    named = [c for c in few if c.matches(_LABEL)]
    if named:
        return _first("label", named, guess)
    if called := [c for c in columns if c.matches(_LABEL) and c.values]:
        n = len(called[0].values)
        held = "one value only" if n == 1 else f"{n} different values"
        held = "dates" if called[0].dated else held
        guess.unsure.append(
            f"label: '{called[0].name}' has a label-like name but holds {held}; a label has 2 to "
            f"{MOST_CLASSES} classes."
        )
        return None
    if few:
        varying = [c for c in few if not constant_within(c, codes)] or few
        guess.unsure.append(
            f"label: No column has a label-like name; guessing '{varying[-1].name}', the last "
            "column with few distinct values."
        )
        return varying[-1]
    return None


def _guess_classes(label: Column, guess: Guess) -> None:
    """List text classes in alphabetical order; numeric classes need no list."""
    # If numbers and text are mixed, one of the two is a mistake and not a class.
    if any(is_number(value) for value in label.values):
        return
    guess.classes = order_classes(label.values)
    use = "results list them in this order; change it if another order is natural."
    if len(guess.classes) == 2:
        use = (
            f"the second, '{guess.classes[1]}', is the positive class for AP and ROC AUC; swap "
            "them if the first should be."
        )
    guess.unsure.append(f"classes: those of '{label.name}' are in alphabetical order; {use}")
    if len({name.casefold() for name in guess.classes}) < len(guess.classes):
        guess.unsure.append(
            f"classes: some of '{label.name}' differ only in upper and lower case; use one "
            "spelling in the table, and list it once here."
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
            guess.unsure.append(f"categories: those of '{name}' are in alphabetical order.")
    if clock is not None and only_at_first(column, codes, clock.numbers):
        guess.features.append(name)
        guess.first_only.append(name)
        guess.unsure.append(
            f"features: '{name}' is recorded at first visits only; if it is free, make it context."
        )
    else:
        (guess.context if constant_within(column, codes) else guess.features).append(name)


def _unusable(column: Column) -> str:
    """Why a column is neither feature nor context; empty if it can be."""
    if not column.values or column.dated:
        return "dates" if column.dated else "empty"
    if column.numeric or len(column.values) <= MOST_CLASSES:
        return ""
    if any(is_number(value) for value in column.values):
        return ""
    comma = all(is_number(v.replace(",", ".")) for v in column.values)
    kind = "numbers with a decimal comma; use a point" if comma else "text"
    return f"{kind}, {len(column.values)} different values"


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
