"""Real times onto visit slots: which slot a record belongs to, and which slots there could be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Snap = Literal["nearest", "before"]
#: As many different times, each of them common, are a schedule.
_MOST_PLANNED = 30


def grid_end(grid: Sequence[float], snap: Snap = "nearest") -> float:
    """The time from which records no longer belong to the last slot.

    The last slot is as wide as the gap before it allows: the whole gap where records go to
    the slot before them, half of it where they go to the nearest. A grid of one slot has no end.
    """
    if len(grid) < 2:
        return np.inf
    gap = grid[-1] - grid[-2]
    return float(grid[-1] + (gap if snap == "before" else gap / 2))


def place_on_grid(
    times: NDArray[np.float64],
    grid: Sequence[float],
    snap: Snap = "nearest",
    end: float | None = None,
) -> NDArray[np.int64]:
    """The slot of every time; -1 before the first slot, `len(grid)` after the end.

    Order is kept: a later record never lands in an earlier slot.

    Args:
        times: Finite times of the records.
        grid: Time of every slot, increasing.
        snap: `"nearest"` for planned visits that take place a little early or late (halfway
            counts as the earlier slot); `"before"` for windows, slot `k` holding
            `grid[k] <= time < grid[k + 1]`.
        end: Records at or after this time are left out; `grid_end` by default.

    Example:
        >>> times = np.array([0.0, 0.4, 0.6, 1.9, 2.4, 9.0, -0.1])
        >>> place_on_grid(times, [0, 0.5, 1, 2]).tolist()
        [0, 1, 1, 3, 3, 4, -1]
        >>> place_on_grid(times, [0, 0.5, 1, 2], snap="before").tolist()
        [0, 0, 1, 2, 3, 4, -1]
    """
    starts = np.asarray(grid, dtype=float)
    edges = starts if snap == "before" else (starts[:-1] + starts[1:]) / 2
    if snap == "before":
        slots = np.searchsorted(edges, times, side="right") - 1
    else:
        slots = np.searchsorted(edges, times, side="left")
    slots = np.where(times < starts[0], -1, slots)
    last = grid_end(grid, snap) if end is None else end
    return np.where(times >= last, len(starts), slots).astype(np.int64)


def count_shared(codes: NDArray[np.int64], slots: NDArray[np.int64]) -> int:
    """Rows that share a slot with a later one; both are by time within each subject."""
    return int(((np.diff(codes) == 0) & (np.diff(slots) == 0)).sum())


@dataclass(frozen=True)
class DraftedGrid:
    """A grid guessed from the times of a table, and what would be lost on it.

    Args:
        slots: Time of every slot.
        planned: Whether they are the very times that occur.
        n_rows: Rows with a subject and a time.
        n_shared: Rows that share a slot with a later one of their subject.
        n_late: Rows after the end of the grid.
    """

    slots: list[float]
    planned: bool
    n_rows: int
    n_shared: int
    n_late: int

    @property
    def lost(self) -> str:
        """What would be lost, in words."""
        if not self.n_shared + self.n_late:
            return f"all {self.n_rows:,} rows have a slot of their own"
        share = "shares" if self.n_shared == 1 else "share"
        lie = "lies" if self.n_late == 1 else "lie"
        shared = f"{self.n_shared:,} {share} a slot with a later one (the last value counts)"
        late = f"{self.n_late:,} {lie} after its end (left out)"
        found = [text for text, n in ((shared, self.n_shared), (late, self.n_late)) if n]
        return f"of {self.n_rows:,} rows, {' and '.join(found)}"


def draft_grid(times: NDArray[np.float64], codes: NDArray[np.int64]) -> DraftedGrid:
    """Guess the visit slots of a table: the times that occur where they are few, else usual ones.

    Args:
        times: `(n_rows,)`, NaN where unknown.
        codes: `(n_rows,)` subject of each row; -1 where unknown.

    Example:
        >>> drafted = draft_grid(np.array([0.0, 1.0, 2.0, 0.0, 1.0]), np.array([0, 0, 0, 1, 1]))
        >>> drafted.slots, drafted.lost
        ([0.0, 1.0, 2.0], 'all 5 rows have a slot of their own')
    """
    known = np.flatnonzero(~np.isnan(times) & (codes >= 0))
    distinct, counts = np.unique(times[known], return_counts=True)
    planned = bool(distinct.size <= _MOST_PLANNED and counts.mean() >= 2)
    found = distinct.tolist() if planned else usual_times(times, codes)
    slots = sorted({round(time, 6) for time in found})
    slots[0] = min(slots[0], found[0])  # rounded up, it would leave out the first records
    order = known[np.lexsort((times[known], codes[known]))]
    placed = place_on_grid(times[order], slots)
    inside = placed < len(slots)
    return DraftedGrid(
        slots=slots,
        planned=planned,
        n_rows=len(order),
        n_shared=count_shared(codes[order][inside], placed[inside]),
        n_late=int((~inside).sum()),
    )


def usual_times(times: NDArray[np.float64], codes: NDArray[np.int64]) -> list[float]:
    """A grid for irregular times: the median of the first, second, third ... record, rounded.

    As many slots as a quarter of the subjects have records. It begins no later than the first
    record, so that nothing lies before it.

    Example:
        >>> times = np.array([0.0, 0.48, 1.03, 0.0, 0.51, 0.98, 0.0, 0.53])
        >>> usual_times(times, np.array([0, 0, 0, 1, 1, 1, 2, 2]))
        [0.0, 0.5, 1.0]
    """
    known = np.flatnonzero(~np.isnan(times) & (codes >= 0))
    order = known[np.lexsort((times[known], codes[known]))]
    starts = np.r_[True, np.diff(codes[order]) != 0]
    rank = np.arange(order.size) - np.flatnonzero(starts)[np.cumsum(starts) - 1]
    enough = max(1, int(starts.sum()) // 4)
    medians = []
    for k in range(int(rank.max(initial=0)) + 1):
        here = times[order[rank == k]]
        if here.size < enough:
            break
        medians.append(float(np.median(here)))
    gap = float(np.diff(medians).min()) if len(medians) > 1 else 1.0
    decimals = int(np.clip(np.ceil(-np.log10(max(gap, 1e-6))), 0, 6))
    grid = sorted({round(m, decimals) for m in medians})
    lowest = float(times[known].min())
    if lowest < grid[0]:
        scale = 10.0**decimals
        grid[0] = float(np.floor(lowest * scale) / scale)
    return grid
