"""Constraints that cannot all hold, or that name what is not there: each conflict in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nocta.core.constraints import Constraints
from nocta.core.errors import Problem, did_you_mean
from nocta.core.rules import Rules

_WHERE = "constraints"
_RELAX = "Relax one of the two."


def conflicts(
    constraints: Constraints, names: Sequence[str], offered: NDArray[np.bool_]
) -> list[Problem]:
    """Everything that is wrong with constraints on these features; empty if they can be kept.

    `offered`, `(L, M)`, says which feature can be acquired at which visit.
    """
    found = [*_unknown(constraints, names), *_outside(constraints, len(offered))]
    if not found:
        rules = Rules.of(constraints, names, offered)
        found = _Checks(constraints, tuple(names), offered, rules).problems()
    unique = {str(problem): problem for problem in found}
    return list(unique.values())


def _problem(what: str, remedy: str = _RELAX) -> Problem:
    return Problem(what, _WHERE, remedy)


def _unknown(constraints: Constraints, names: Sequence[str]) -> Iterator[Problem]:
    c = constraints
    listed = [
        *(("always", n) for n in c.always),
        *(("never", n) for n in c.never),
        *(("at_most", n) for n in c.at_most),
        *(("apart", n) for n in c.apart),
        *(("together", n) for group in c.together for n in group),
        *(("after", n) for k, earlier in c.after.items() for n in (k, *earlier)),
    ]
    for key, name in dict.fromkeys(listed):
        if name not in names:
            hint = did_you_mean(name, names) or f" Features are: {', '.join(names)}."
            yield _problem(f"{key} names '{name}', which is not a feature.{hint}", "")


def _outside(constraints: Constraints, n_times: int) -> Iterator[Problem]:
    for key, table in (("always", constraints.always), ("never", constraints.never)):
        for name, visits in table.items():
            for t in visits or ():
                if not 0 <= t < n_times:
                    what = f"{key} '{name}' names slot {t}, but slots run from 0 to {n_times - 1}."
                    yield _problem(what, "Correct it.")


class _Checks:
    """Pairs of constraints that contradict each other."""

    def __init__(
        self,
        constraints: Constraints,
        names: tuple[str, ...],
        offered: NDArray[np.bool_],
        rules: Rules,
    ) -> None:
        self.constraints, self.names, self.offered, self.rules = constraints, names, offered, rules
        self.never = np.zeros_like(offered)
        for name, visits in constraints.never.items():
            at = slice(None) if visits is None else list(visits)
            self.never[at, names.index(name)] = True

    def problems(self) -> list[Problem]:
        return [
            *self._closed(),
            *self._too_often(),
            *self._too_close(),
            *self._too_many_visits(),
            *self._order(),
            *self._too_early(),
        ]

    def _slots(self, m: int) -> list[int]:
        """The slots at which a feature is always acquired."""
        return [int(t) for t in np.flatnonzero(self.rules.required[:, m])]

    def _closed(self) -> Iterator[Problem]:
        """Always acquired, itself or by its partners, where it cannot be."""
        for t, m in np.argwhere(self.rules.required):
            name, own = self.names[m], self._is_asked(int(t), int(m))
            why = "always acquired" if own else "always acquired, with its partners,"
            if self.never[t, m]:
                yield _problem(f"'{name}' is {why} at slot {t}, but never acquired there.")
            elif not self.offered[t, m]:
                open_at = ", ".join(map(str, np.flatnonzero(self.offered[:, m])))
                what = f"'{name}' is {why} at slot {t}, but it can only be acquired at {open_at}."
                yield _problem(what)

    def _is_asked(self, slot: int, m: int) -> bool:
        visits = self.constraints.always.get(self.names[m], ())
        return visits is None or slot in visits

    def _too_often(self) -> Iterator[Problem]:
        for m, name in enumerate(self.names):
            n, most = len(self._slots(m)), int(self.rules.most[m])
            if n > most:
                yield _problem(
                    f"'{name}' is always acquired at {n} slots, but at most {most} "
                    f"time{'s' * (most > 1)}."
                )

    def _too_close(self) -> Iterator[Problem]:
        for m, name in enumerate(self.names):
            slots, gap = self._slots(m), int(self.rules.gap[m])
            for a, b in pairwise(slots):
                if b - a < gap:
                    yield _problem(
                        f"'{name}' is always acquired at slots {a} and {b}, but its acquisitions "
                        f"are at least {gap} visits apart."
                    )
                    break

    def _too_many_visits(self) -> Iterator[Problem]:
        visits = np.flatnonzero(self.rules.required.any(axis=1))
        if len(visits) > self.rules.max_visits:
            yield _problem(
                f"Something is always acquired at {len(visits)} slots "
                f"({', '.join(map(str, visits))}), but max_visits is {self.rules.max_visits}."
            )

    def _order(self) -> Iterator[Problem]:
        """Features that wait for each other, for a partner, or for something that never comes."""
        reach = self.rules.prior.copy()
        for _ in self.names:
            reach |= reach @ reach
        for m, name in enumerate(self.names):
            if reach[m, m]:
                yield _problem(f"'{name}' would be acquired only after itself.")
        for group in self.rules.groups:
            for m, y in np.argwhere(self.rules.prior & group[:, None] & group):
                what = f"'{self.names[m]}' is acquired only after '{self.names[y]}'"
                yield _problem(f"{what}, but also together with it.")
        if not any(reach[m, m] for m in range(len(self.names))):
            yield from self._unreachable()

    def _unreachable(self) -> Iterator[Problem]:
        for m, name in enumerate(self.names):
            asked = self.offered[:, m] & ~self.never[:, m]
            lost = asked.any() and self.rules.closed[:, m].all()
            if lost and self.rules.prior[m].any():
                earlier = " and ".join(
                    f"'{self.names[y]}'" for y in np.flatnonzero(self.rules.prior[m])
                )
                what = f"'{name}' is acquired only after {earlier}, which cannot come before it"
                yield _problem(f"{what}, so it can never be acquired.", "Relax one of them.")

    def _too_early(self) -> Iterator[Problem]:
        """Always acquired before what has to come first is always acquired."""
        for m, y in np.argwhere(self.rules.prior):
            slots, earlier = self._slots(int(m)), self._slots(int(y))
            if slots and (not earlier or earlier[0] >= slots[0]):
                name, first = self.names[m], self.names[y]
                yield _problem(
                    f"'{name}' is always acquired at slot {slots[0]}, but only after '{first}', "
                    f"which is not always acquired before.",
                    f"Add an earlier slot of '{first}' to always, or relax one of the two.",
                )
