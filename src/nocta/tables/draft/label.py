"""Drafts the label: classes as they are, a number cut into ranges, or an event that is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError, did_you_mean
from nocta.tables.columns import is_number
from nocta.tables.draft.meaning import LABEL, MOST_CLASSES, Guess, Wish, first_of
from nocta.tables.draft.seen import Column, constant_within
from nocta.tables.grid import Codes
from nocta.tables.labels import order_classes
from nocta.tables.schema import EventSpec

#: What to do about an outcome that is no class.
REMEDY = (
    "Cut a continuous outcome into classes with `nocta init --label COLUMN --bins 3`; for the time "
    "to an event use `--event TIME,STATUS --within 2`."
)
_CENSORED = {"0", "no", "n", "false", "alive", "censored", "none", "event-free"}


def draft_label(left: dict[str, Column], codes: Codes, wish: Wish, guess: Guess) -> Column | None:
    """Find the label and take it out of `left`; `None` if there is none, or an event."""
    if wish.event is not None:
        _draft_event(left, wish, guess)
        return None
    if wish.label is not None:
        column = _named(wish.label, left)
    elif wish.bins is not None:
        column = _continuous(left)
    else:
        found = _guess_label(list(left.values()), codes, guess)
        if found is None:
            return None
        column = found
    guess.label = left.pop(column.name).name
    if wish.bins is not None:
        _draft_bins(column, wish.bins, guess)
        return None
    _guess_classes(column, guess)
    return column


def _named(name: str, left: dict[str, Column]) -> Column:
    if name not in left:
        hint = did_you_mean(name, left) or f" It can be one of: {', '.join(left)}."
        raise ConfigError(f"The table has no column '{name}' for the label.{hint}")
    return left[name]


def _continuous(left: dict[str, Column]) -> Column:
    """The column of numbers with a label-like name."""
    called = [c for c in left.values() if c.numeric and not c.dated and c.matches(LABEL)]
    if not called:
        raise ConfigError("No column of numbers has a label-like name; name it with --label.")
    return called[0]


def _draft_bins(column: Column, bins: int | tuple[float, ...], guess: Guess) -> None:
    known = column.numbers[~np.isnan(column.numbers)]
    if not column.numeric or column.dated or known.size == 0:
        raise ConfigError(f"--bins cuts numbers, and '{column.name}' holds other things.")
    if isinstance(bins, int):
        if bins < 2:
            raise ConfigError(f"--bins is {bins}; use at least 2 ranges.")
        limits = _quantiles(known, bins)
        guess.unsure.append(
            f"bins: '{column.name}' is cut into ranges of about equal size; replace the limits "
            "by ones that mean something."
        )
    else:
        limits = sorted(set(bins))
    if not any(known.min() < limit <= known.max() for limit in limits):
        raise ConfigError(
            f"--bins leaves one class: '{column.name}' goes from {known.min():g} to "
            f"{known.max():g}. Give limits inside this range."
        )
    guess.bins = [float(limit) for limit in limits]


def _quantiles(known: NDArray[np.float64], n_bins: int) -> list[float]:
    """Limits of ranges of about equal size, with three digits if that keeps them apart."""
    exact = np.unique(np.quantile(known, np.linspace(0, 1, n_bins + 1)[1:-1]))
    short = [float(f"{limit:.3g}") for limit in exact]
    return short if len(set(short)) == len(exact) else exact.tolist()


def _draft_event(left: dict[str, Column], wish: Wish, guess: Guess) -> None:
    assert wish.event is not None
    time, status = (_named(name, left) for name in wish.event)
    if guess.time is None:
        raise ConfigError(
            "--event compares times: the visits need a column of times or dates, not numbers of "
            "visits."
        )
    if wish.within is None or not wish.within > 0:
        unit = guess.time_unit or "the unit of the times"
        raise ConfigError(f"--event needs --within, a number above 0 in {unit}.")
    happened = sorted(v for v in status.values if v.lower() not in _CENSORED)
    guess.event = EventSpec(
        time=time.name, status=status.name, happened=list(happened), within=wish.within
    )
    for name in (time.name, status.name):
        left.pop(name)
    guess.unsure.append(
        f"happened: {', '.join(repr(v) for v in happened)} in '{status.name}' are taken for "
        "events, everything else for censored."
    )


def _guess_label(columns: list[Column], codes: Codes, guess: Guess) -> Column | None:
    """A column with a label-like name and few values; else the last column with few values."""
    few = [c for c in columns if 2 <= len(c.values) <= MOST_CLASSES and (not c.numeric or c.whole)]
    named = [c for c in few if c.matches(LABEL)]
    if named:
        return first_of("label", named, guess)
    if called := [c for c in columns if c.matches(LABEL) and c.values]:
        n = len(called[0].values)
        held = "one value only" if n == 1 else f"{n} different values"
        held = "dates" if called[0].dated else held
        guess.unsure.append(
            f"label: '{called[0].name}' has a label-like name but holds {held}; a label has 2 to "
            f"{MOST_CLASSES} classes. {REMEDY}"
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
