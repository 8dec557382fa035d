"""A list of everything wrong with some input, told to the user in one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from nocta.core.errors import CostError, DataError, TimeError

Kind = Literal["data", "cost", "time"]
_ERRORS: dict[str, type[DataError]] = {"data": DataError, "cost": CostError, "time": TimeError}
_SHOWN = 3


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: the place, what was found there, and what to do about it."""

    where: str
    what: str
    remedy: str = ""
    kind: Kind = "data"

    def __str__(self) -> str:
        return f"{self.where}: {self.what} {self.remedy}".rstrip()


@dataclass
class Report:
    """Collects problems (which stop the reading) and notes (which do not).

    Example:
        >>> report = Report()
        >>> report.add("visits.csv, line 3", "the visit is empty.", "Fill it in.", kind="time")
        >>> report.raise_problems("visits.csv")
        Traceback (most recent call last):
        ...
        nocta.core.errors.TimeError: visits.csv cannot be used: 1 problem.
          1. visits.csv, line 3: the visit is empty. Fill it in.
    """

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: How messages call the schema; its file name once that is known.
    schema: str = "schema"

    def add(self, where: str, what: str, remedy: str = "", kind: Kind = "data") -> None:
        """Remember a problem."""
        problem = Problem(where, what, remedy, kind)
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, text: str) -> None:
        """Remember something worth knowing that does not stop the reading."""
        if text not in self.notes:
            self.notes.append(text)

    def raise_problems(self, name: str) -> None:
        """Raise one error that names every problem; do nothing when there is none.

        The error is a `CostError` or a `TimeError` when all problems are of that kind.
        """
        if not self.problems:
            return
        count = len(self.problems)
        lines = [f"{name} cannot be used: {count} problem{'s' if count > 1 else ''}."]
        lines += [f"{i:>3}. {problem}" for i, problem in enumerate(self.problems, start=1)]
        kinds = {p.kind for p in self.problems}
        raise _ERRORS[kinds.pop() if len(kinds) == 1 else "data"]("\n".join(lines))


def enumerate_some(items: Sequence[str] | Iterable[str], shown: int = _SHOWN) -> str:
    """The first few of a list, and how many more there are.

    Example:
        >>> enumerate_some(["a", "b", "c", "d", "e"])
        'a, b, c and 2 more'
    """
    items = list(items)
    rest = len(items) - shown
    separator = "; " if any("," in item for item in items) else ", "
    return separator.join(items[:shown]) + (f" and {rest} more" if rest > 0 else "")


def add_up(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes of several parts, each once; those that begin with a count, with the sum.

    Example:
        >>> add_up(["2 row(s) are left out.", "'alt' is never recorded.", "3 row(s) are left out."])
        ('5 row(s) are left out.', "'alt' is never recorded.")
    """
    totals: dict[str, int] = {}
    for note in notes:
        count, _, rest = note.partition(" ")
        counted = count.isdecimal()
        text = rest if counted else note
        totals[text] = totals.get(text, 0) + (int(count) if counted else 0)
    return tuple(f"{total} {text}" if total else text for text, total in totals.items())
