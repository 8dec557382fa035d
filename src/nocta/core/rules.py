"""Constraints as arrays of one catalog: what they close, given what was acquired so far.

Everything here works slot by slot, from the first to the last: a `Ledger` holds what counts for
later slots, so histories of subjects and prefixes of plans are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.constraints import Constraints

Mask = NDArray[np.bool_]
_NO_LIMIT = 1 << 30
_LONG_AGO = -(1 << 20)


class Ledger(NamedTuple):
    """What was acquired before a slot, as far as constraints ask for it."""

    times: NDArray[np.int64]  # (..., M) how often
    last: NDArray[np.int64]  # (..., M) at which slot last
    visits: NDArray[np.int64]  # (...) at how many visits anything

    @classmethod
    def empty(cls, *shape: int) -> Self:
        """Nothing acquired; the last axis is that of features."""
        times = np.zeros(shape, dtype=np.int64)
        return cls(times, np.full(shape, _LONG_AGO), np.zeros(shape[:-1], dtype=np.int64))

    def with_visit(self, slot: int, acquired: Mask) -> Ledger:
        """The same after a visit at which these features, `(..., M)`, were acquired."""
        return Ledger(
            self.times + acquired,
            np.where(acquired, slot, self.last),
            self.visits + acquired.any(axis=-1),
        )


@dataclass(frozen=True, eq=False)
class Rules:
    """The constraints of one catalog over `L` slots and `M` features."""

    required: Mask  # (L, M) what is always acquired, partners included
    closed: Mask  # (L, M) what can never be acquired
    most: NDArray[np.int64]  # (M,)
    gap: NDArray[np.int64]  # (M,)
    max_visits: int
    groups: tuple[Mask, ...]  # (M,) each; disjoint
    prior: Mask  # (M, M) which features must have been acquired before each

    @classmethod
    def of(cls, constraints: Constraints, names: Sequence[str], offered: Mask) -> Rules:
        """Constraints whose names and slots are those of the catalog."""
        place = {name: m for m, name in enumerate(names)}
        length, width = offered.shape
        most, gap = np.full(width, _NO_LIMIT), np.ones(width, dtype=np.int64)
        for name, n in constraints.at_most.items():
            most[place[name]] = n
        for name, n in constraints.apart.items():
            gap[place[name]] = n
        prior = np.zeros((width, width), dtype=bool)
        for name, earlier in constraints.after.items():
            prior[place[name], [place[e] for e in earlier]] = True
        groups = _merged([[place[n] for n in group] for group in constraints.together], width)
        closed = ~offered
        for name, visits in constraints.never.items():
            closed[slice(None) if visits is None else list(visits), place[name]] = True
        required = np.zeros((length, width), dtype=bool)
        for name, visits in constraints.always.items():
            m = place[name]
            required[slice(None) if visits is None else list(visits), m] = True
            if visits is None:
                required[:, m] &= offered[:, m]
        most_visits = _NO_LIMIT if constraints.max_visits is None else constraints.max_visits
        rules = cls(required, closed, most, gap, most_visits, groups, prior)
        return cls(
            rules.with_partners(required), rules._out_of_reach(), *(most, gap, most_visits),
            groups, prior,
        )  # fmt: skip

    def _out_of_reach(self) -> Mask:
        """Closed slots, and those of partners and of what can only come later, `(L, M)`."""
        closed = self.closed
        for _ in range(self.closed.size):
            # What may have been acquired before each slot.
            possible: Mask = np.asarray(np.cumsum(~closed, axis=0) - ~closed > 0)
            lacking = self._lacking(possible)
            now = ~self.whole(~(closed | lacking))
            if (now == closed).all():
                break
            closed = now
        return closed

    # -- features that belong together ------------------------------------------------

    def with_partners(self, features: Mask) -> Mask:
        """These features and what must come with them, `(..., M)`."""
        out = features.copy()
        for group in self.groups:
            out[..., group] |= features[..., group].any(axis=-1, keepdims=True)
        return out

    def whole(self, features: Mask) -> Mask:
        """These features without groups of which one is missing, `(..., M)`."""
        out = features.copy()
        for group in self.groups:
            out[..., group] &= features[..., group].all(axis=-1, keepdims=True)
        return out

    def _lacking(self, known: Mask) -> Mask:
        """Which features wait for one that is not known, `(..., M)`."""
        unknown = 1 - known.astype(np.int64)
        return np.asarray(unknown @ self.prior.T > 0)

    # -- what is open --------------------------------------------------------------------

    def due(self, offered: Mask, acquired: Mask) -> Mask:
        """What has still to be acquired, `(..., L, M)`, as far as it can be.

        `offered` are the slots that are not closed for other reasons, `acquired` the history. What
        must come after a feature that can no longer be acquired is not due any more.
        """
        out = self.whole(self.required & offered & ~self.closed)
        for _ in range(len(self.prior)):
            known: Mask = np.asarray(acquired.any(axis=-2) | out.any(axis=-2))  # (..., M)
            lacking = self._lacking(known)
            now = self.whole(out & ~lacking[..., None, :])
            if (now == out).all():
                break
            out = now
        return out

    def closed_at(self, slot: int, ledger: Ledger, due: Mask) -> Mask:
        """Which features are closed at a slot, `(..., M)`, given what was acquired before it.

        Room is kept for what is `due` at other slots, `(..., L, M)`.
        """
        others = due.copy()
        others[..., slot, :] = False
        distance = np.abs(np.arange(due.shape[-2]) - slot)[:, None]
        near = (others & (distance < self.gap)).any(axis=-2)
        closed = ledger.times + others.sum(axis=-2) >= self.most
        closed |= (slot - ledger.last < self.gap) | near
        full = ledger.visits + others.any(axis=-1).sum(axis=-1) >= self.max_visits
        lacking = self._lacking(ledger.times > 0)
        out = closed | full[..., None] | lacking | self.closed[slot]
        return np.asarray(~self.whole(~out))

    def open_slots(self, offered: Mask, acquired: Mask) -> Mask:
        """What of `offered` can be acquired next, `(..., L, M)`, given what was `acquired`."""
        due = self.due(offered, acquired)
        ledger = Ledger.empty(*acquired.shape[:-2], acquired.shape[-1])
        out = offered.copy()
        for slot in range(offered.shape[-2]):
            if offered[..., slot, :].any():
                out[..., slot, :] &= ~self.closed_at(slot, ledger, due)
            ledger = ledger.with_visit(slot, acquired[..., slot, :])
        return self.whole(out)

    # -- plans ------------------------------------------------------------------------------

    def repaired(self, plans: Mask, offered: Mask, acquired: Mask) -> Mask:
        """Plans, `(..., L, M)`, with what is due and without what is closed, slot by slot."""
        due = np.broadcast_to(self.due(offered, acquired), plans.shape)
        offered, acquired = (np.broadcast_to(a, plans.shape) for a in (offered, acquired))
        ledger = Ledger.empty(*plans.shape[:-2], plans.shape[-1])
        out = np.zeros_like(plans)
        for slot in range(plans.shape[-2]):
            later = due.copy()
            later[..., :slot, :] = False
            open_now = offered[..., slot, :] & ~self.closed_at(slot, ledger, later)
            wanted = self.with_partners(plans[..., slot, :]) | due[..., slot, :]
            out[..., slot, :] = self.whole(wanted & self.whole(open_now))
            ledger = ledger.with_visit(slot, out[..., slot, :] | acquired[..., slot, :])
        return out

    def allow(self, plans: Mask) -> Mask:
        """Which plans are allowed to begin with, `(..., L, M)` to `(...)`."""
        nothing = np.zeros_like(self.required)
        kept = self.repaired(plans, np.ones_like(nothing), nothing)
        return np.asarray((kept == plans).all(axis=(-1, -2)))

    @property
    def everything(self) -> Mask:
        """All that one subject can get, visit by visit, `(L, M)`."""
        return self.repaired(~self.closed, ~self.closed, np.zeros_like(self.closed))


def _merged(groups: Sequence[Sequence[int]], width: int) -> tuple[Mask, ...]:
    """Groups as masks; groups that share a feature become one."""
    out: list[Mask] = []
    for group in groups:
        mask = np.isin(np.arange(width), group)
        for other in [o for o in out if (o & mask).any()]:
            mask = mask | other
            out = [o for o in out if o is not other]
        out.append(mask)
    return tuple(out)
