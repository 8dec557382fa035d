"""Collects everything wrong with some input, so that the user gets one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nocta.core.errors import Kind, Problem, problems_error

_SHOWN = 3


@dataclass
class Issues:
    """Collects problems (which stop the reading) and notes (which do not)."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Name of the schema in messages; its file name once that is known.
    schema: str = "schema"

    def add(self, where: str, what: str, remedy: str = "", kind: Kind = "data") -> None:
        """Add a problem."""
        problem = Problem(what, where, remedy, kind)
        if problem not in self.problems:
            self.problems.append(problem)

    def add_each(
        self, where: str, what: str, items: Sequence[str], remedy: str, kind: Kind = "data"
    ) -> None:
        """Add one problem that lists the first few items; nothing if there are none."""
        if items:
            self.add(where, f"{what}: {enumerate_some(items)}.", remedy, kind)

    def add_empty(self, where: str) -> None:
        """Add the problem of a table without rows."""
        self.add(where, "the table has no rows.", "Give it one row per subject and visit.")

    def note(self, text: str) -> None:
        """Add something worth knowing that does not stop the reading."""
        if text not in self.notes:
            self.notes.append(text)

    def raise_problems(self, name: str) -> None:
        """Raise one error that lists every problem, if there are any; see `problems_error`."""
        if not self.problems:
            return
        count = len(self.problems)
        lines = [f"{name} cannot be used: {count} problem{'s' if count > 1 else ''}."]
        lines += [f"{i:>3}. {problem}" for i, problem in enumerate(self.problems, start=1)]
        raise problems_error(self.problems, "\n".join(lines))


class Unreadable(Exception):
    """A table that cannot be opened; its arguments are those of `Issues.add`."""


def enumerate_some(items: Iterable[str], shown: int = _SHOWN) -> str:
    """The first few items, and how many more there are."""
    items = list(items)
    rest = len(items) - shown
    separator = "; " if any("," in item for item in items) else ", "
    return separator.join(items[:shown]) + (f" and {rest} more" if rest > 0 else "")


def add_up(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge equal notes of several parts; those that begin with a count are summed.

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
