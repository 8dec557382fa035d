"""Guess what the columns of a long table mean from their names and from what they hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nocta.tables.columns import factorize, is_number
from nocta.tables.draft.seen import (
    Column,
    best_auc,
    constant_within,
    increasing_within,
    only_at_first,
    share_distinct,
)
from nocta.tables.grid import DraftedGrid, draft_grid
from nocta.tables.validate import order_classes

_NUMBER = r"([_ ]?(id|no|nr|num|number|index|code))?"
_SUBJECT = r"(subject|patient|participant|person|client|user|rid|ptid|pid|mrn|id)" + _NUMBER
_VISIT = r"(visit|slot|wave|session|time[_ ]?point|exam|follow[_ ]?up|t)" + _NUMBER
_TIME = r"(.*[_ ])?(time|years?|months?|weeks?|days?|hours?|date|elapsed)([_ ].*)?"
_LABEL = (
    r"(label|target|outcome|class|diagnosis|dx|stage|status|y|event|progression|response|death"
    r"|died)([_ ].*)?"
)
#: What is only known when all is over: how long somebody lived or stayed, and how it ended.
_LATER = (
    r"(.*[_ ])?(fu[_ ]?time|follow[_ ]?up|surviv(al|ed|or)|mortality|dead|deceased|death|died|los"
    r"|length[_ ]of[_ ]stay|discharged?|censor(ed|ing)?|(time|years|months|weeks|days|hours)[_ ]"
    r"?(to|until|till)|next)([_ ].*)?"
)
_SPLIT_NAMES = {"train", "training", "val", "valid", "validation", "dev", "test", "holdout"}
_UNITS = ("years", "months", "weeks", "days", "hours")
MOST_CLASSES = 20
#: ROC AUC from which one column alone is suspected of being an outcome.
GIVEAWAY = 0.97


@dataclass
class Guess:
    """The meaning of every column, and what the guess is unsure of."""

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
    #: Why a column that is called like the subject or the visit cannot be it.
    obstacle: str = ""


def guess_columns(columns: list[Column], priced: Collection[str] = ()) -> Guess:
    """Tell subject, visit or time, label, split, context and features apart.

    Args:
        columns: What can be seen of each.
        priced: Columns that have a price, and so are no outcomes, whatever they are called.
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
    clock = _guess_clock(left.values(), codes, guess)
    if clock is not None:
        left.pop(clock.name)
    for column in list(left.values()):
        if column.values and {v.lower() for v in column.values} <= _SPLIT_NAMES:
            guess.split = left.pop(column.name).name
            break
    label = _guess_label(left.values(), codes, guess)
    if label is not None:
        guess.label = left.pop(label.name).name
        _guess_classes(label, guess)
    for column in left.values():
        if column.name not in priced and (called := _called_like_outcome(column)):
            guess.ignored[column.name] = f"called like {called}; it may give the label away"
        else:
            _guess_role(column, codes, clock, guess)
    _guess_panels([left[name] for name in guess.features], guess)
    _doubt_context(guess)
    _name_ignored(guess)
    _point_out_giveaways(left, label, guess)
    return guess


def _called_like_outcome(column: Column) -> str:
    """What its name says that a policy must not be given; empty where nothing does."""
    if column.matches(_LABEL):
        return "a label"
    return "something that is only known later" if column.matches(_LATER) else ""


def _doubt_context(guess: Guess) -> None:
    if guess.context:
        guess.unsure.append(
            f"context: {', '.join(guess.context)} are constant within subject, so they count as "
            "free and known at the first visit; take out what is only known later."
        )


def _name_ignored(guess: Guess) -> None:
    for name, why in guess.ignored.items():
        guess.unsure.append(f"features: '{name}' is left out ({why}).")


def _point_out_giveaways(columns: dict[str, Column], label: Column | None, guess: Guess) -> None:
    """Doubt what tells a class apart all by itself: few measurements do, outcomes often."""
    if label is None:
        return
    for name in (*guess.context, *guess.features):
        auc = best_auc(columns[name], label)
        if auc >= GIVEAWAY:
            role = "context" if name in guess.context else "features"
            guess.unsure.append(
                f"{role}: '{name}' alone tells a class of '{label.name}' apart (ROC AUC "
                f"{auc:.2f}); make sure that it is known before the label is."
            )


def _guess_subject(columns: list[Column], guess: Guess) -> Column | None:
    """A named identifier that repeats; else the first column that repeats and is never empty."""
    called = [c for c in columns if c.matches(_SUBJECT) and c.values and not c.dated]
    # A few empty cells are the user's mistakes to be told about, not a reason to look elsewhere.
    named = [c for c in called if len(c.values) < c.n_known and c.n_known >= 0.9 * len(c.texts)]
    if named:
        if len(named) > 1:
            others = ", ".join(f"'{c.name}'" for c in named[1:])
            guess.unsure.append(f"subject: '{named[0].name}', though {others} could be it too.")
        return named[0]
    if called:
        column = called[0]
        guess.obstacle = f"'{column.name}' is called so but " + (
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
        f"subject: no column is called so; '{whole[0].name}' is the first that repeats."
    )
    return whole[0]


def _guess_clock(
    columns: Iterable[Column], codes: NDArray[np.int64], guess: Guess
) -> Column | None:
    """The column that tells a subject's rows apart, by name where there are several."""
    columns = list(columns)
    called = [c for c in columns if c.matches(_VISIT)]
    called += [c for c in columns if c.matches(_TIME) and c not in called]
    # Doubled rows are the user's mistakes to be told about, not a reason to look elsewhere.
    ranked = [c for c in called if c.numeric and share_distinct(c.numbers, codes) >= 0.98]
    ranked = ranked or [c for c in called if c.numeric and share_distinct(c.numbers, codes) > 0.5]
    if not ranked and (text := [c for c in called if not c.numeric and len(c.values) > 1]):
        guess.obstacle = (
            f"'{text[0].name}' is called so but holds '{min(text[0].values)}', which is neither a "
            "number nor a date like 2024-01-31."
        )
        return None
    if not ranked:
        ranked = [c for c in columns if c.numeric and increasing_within(c.numbers, codes)][:1]
        if not ranked:
            return None
        guess.unsure.append(
            f"visit: no column is called so; '{ranked[0].name}' tells the rows of a subject apart."
        )
    clock = ranked[0]
    if len(ranked) > 1:
        others = ", ".join(f"'{c.name}'" for c in ranked[1:])
        guess.unsure.append(f"visit: '{clock.name}', though {others} could be it too.")
    known = clock.numbers[~np.isnan(clock.numbers)]
    distinct = np.unique(known)
    if clock.whole and distinct[0] in (0, 1) and distinct[-1] - distinct[0] < 2 * distinct.size:
        guess.visit, guess.first_visit = clock.name, int(distinct[0])
        return clock
    guess.time = clock.name
    _guess_grid(clock, codes, guess)
    return clock


def _guess_grid(clock: Column, codes: NDArray[np.int64], guess: Guess) -> None:
    times = clock.numbers
    lower = clock.name.lower()
    guess.time_unit = next(
        (u for u in _UNITS if u in lower or re.search(rf"\b{u[:-1]}\b", lower)), None
    )
    if clock.dated:
        first = np.full(codes.max() + 1, np.inf)
        np.fmin.at(first, codes, times)
        times = times - first[codes]
        guess.time_unit = "days"
        guess.unsure.append(f"time: '{clock.name}' holds dates; they count from the first row.")
    guess.grid = draft_grid(times, codes)
    guess.unsure.append(
        f"grid: {[round(g, 4) for g in guess.grid.slots]} are "
        + ("the times that occur" if guess.grid.planned else "the usual times of the visits")
        + f"; {guess.grid.lost}. Put your own schedule there."
    )


def _guess_label(
    columns: Iterable[Column], codes: NDArray[np.int64], guess: Guess
) -> Column | None:
    """A named outcome with few classes; else the last column with few classes."""
    columns = list(columns)
    few = [c for c in columns if 2 <= len(c.values) <= MOST_CLASSES and (not c.numeric or c.whole)]
    named = [c for c in few if c.matches(_LABEL)]
    if named:
        if len(named) > 1:
            others = ", ".join(f"'{c.name}'" for c in named[1:])
            guess.unsure.append(f"label: '{named[0].name}', though {others} could be it too.")
        return named[0]
    if called := [c for c in columns if c.matches(_LABEL) and c.values]:
        held = "dates" if called[0].dated else called[0].values_in_words
        guess.unsure.append(
            f"label: '{called[0].name}' is called so but holds {held}; a label has 2 to "
            f"{MOST_CLASSES} classes."
        )
        return None
    if few:
        varying = [c for c in few if not constant_within(c, codes)] or few
        guess.unsure.append(
            f"label: no column is called so; '{varying[-1].name}' is the last with few classes."
        )
        return varying[-1]
    return None


def _guess_classes(label: Column, guess: Guess) -> None:
    """Of text, the classes by the alphabet; numbers are in order by themselves."""
    # Where numbers and text are mixed one of the two is a mistake, and no class.
    if any(is_number(value) for value in label.values):
        return
    guess.classes = order_classes(label.values)
    use = "results list the classes so; reorder them where another order is natural."
    if len(guess.classes) == 2:
        use = (
            f"the second, '{guess.classes[1]}', is the positive class of AP and ROC AUC; swap them "
            "where it is the other."
        )
    guess.unsure.append(f"classes: the order of '{label.name}' is alphabetical; {use}")
    alike = len(guess.classes) - len({name.casefold() for name in guess.classes})
    if alike:
        guess.unsure.append(
            f"classes: some of '{label.name}' differ only in capitals; write each the same way in "
            "the table, and once here."
        )


def _guess_role(
    column: Column, codes: NDArray[np.int64], clock: Column | None, guess: Guess
) -> None:
    name = column.name
    if not column.values:
        guess.ignored[name] = "empty"
        return
    if column.dated:
        guess.ignored[name] = "dates"
        return
    if not column.numeric:
        numbers = sum(is_number(t) for t in column.texts if t is not None)
        if len(column.values) > MOST_CLASSES and not numbers:
            comma = all(is_number(v.replace(",", ".")) for v in column.values)
            kind = "numbers with a decimal comma; write a point" if comma else "text"
            guess.ignored[name] = f"{kind}, {len(column.values)} different values"
            return
        if not numbers:
            guess.categories[name] = sorted(column.values)
            guess.unsure.append(f"categories: the order of '{name}' is alphabetical.")
        else:
            guess.unsure.append(f"features: '{name}' is mostly numbers but holds text too.")
    if clock is not None and only_at_first(column, codes, clock.numbers):
        guess.features.append(name)
        guess.first_only.append(name)
        guess.unsure.append(
            f"features: '{name}' is recorded at first visits only; if it is free, make it context."
        )
    elif constant_within(column, codes):
        guess.context.append(name)
    else:
        guess.features.append(name)


def _guess_panels(features: list[Column], guess: Guess) -> None:
    """Point out columns that are empty in exactly the same rows: one test may give them all."""
    together = defaultdict(list)
    for column in features:
        recorded = tuple(t is not None for t in column.texts)
        if not all(recorded) and column.name not in guess.first_only:
            together[recorded].append(column.name)
    for names in together.values():
        if len(names) > 1:
            guess.unsure.append(
                f"features: {', '.join(names)} are always recorded together; if one test gives "
                "them all, list them as the columns of one feature."
            )
