"""Places real times on visit slots, and guesses the slots of a table (`nocta init`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Snap = Literal["nearest", "before"]
#: The time of every row, NaN if unknown, and the number of its subject, -1 if unknown.
Times = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Up to this many different times, if each is common, count as a schedule.
_MOST_PLANNED = 30


def grid_end(grid: Sequence[float], snap: Snap = "nearest") -> float:
    """The time at which the last slot ends: after the gap before it, or half of it if "nearest".

    A grid of one slot has no end.
    """
    if len(grid) < 2:
        return np.inf
    gap = grid[-1] - grid[-2]
    return float(grid[-1] + (gap if snap == "before" else gap / 2))


def place_on_grid(
    times: Times, grid: Sequence[float], snap: Snap = "nearest", end: float | None = None
) -> NDArray[np.int64]:
    """The slot of every time; -1 before the first slot, `len(grid)` from `end` on.

    `"nearest"` is for planned visits that happen a little early or late (a tie goes to the earlier
    slot); `"before"` is for windows: slot `k` has `grid[k] <= time < grid[k + 1]`.

    Example:
        >>> times = np.array([0.0, 0.4, 0.6, 1.9, 2.4, 9.0, -0.1])
        >>> place_on_grid(times, [0, 0.5, 1, 2]).tolist()
        [0, 1, 1, 3, 3, 4, -1]
        >>> place_on_grid(times, [0, 0.5, 1, 2], snap="before").tolist()
        [0, 0, 1, 2, 3, 4, -1]
    """
    starts = np.asarray(grid, dtype=float)
    if snap == "before":
        slots = np.searchsorted(starts, times, side="right") - 1
    else:
        slots = np.searchsorted((starts[:-1] + starts[1:]) / 2, times, side="left")
    slots = np.where(times < starts[0], -1, slots)
    last = grid_end(grid, snap) if end is None else end
    return np.where(times >= last, len(starts), slots).astype(np.int64)


def count_shared(codes: Codes, slots: NDArray[np.int64]) -> int:
    """Number of rows that share a slot with a later one; sorted by subject, then time."""
    return int(((np.diff(codes) == 0) & (np.diff(slots) == 0)).sum())


@dataclass(frozen=True)
class DraftedGrid:
    """A grid guessed from the times of a table, and the rows that would be lost on it."""

    slots: list[float]
    planned: bool  # whether the slots are exactly the times of the table
    n_rows: int  # rows with a subject and a time
    n_shared: int  # rows that share a slot with a later one of their subject
    n_late: int  # rows after the end of the grid

    @property
    def lost(self) -> str:
        """The loss in words."""
        if not self.n_shared + self.n_late:
            return f"each of the {self.n_rows:,} rows has its own slot"
        share = "shares" if self.n_shared == 1 else "share"
        come = "comes" if self.n_late == 1 else "come"
        shared = f"{self.n_shared:,} {share} a slot with a later row (the last value counts)"
        late = f"{self.n_late:,} {come} after the end (left out)"
        found = [text for text, n in ((shared, self.n_shared), (late, self.n_late)) if n]
        return f"out of {self.n_rows:,} rows, {' and '.join(found)}"


def draft_grid(times: Times, codes: Codes) -> DraftedGrid:
    """Guess the visit slots of a table: its distinct times if they are few, else usual times."""
    order = _by_subject_and_time(times, codes)
    distinct, counts = np.unique(times[order], return_counts=True)
    planned = bool(distinct.size <= _MOST_PLANNED and counts.mean() >= 2)
    found = distinct.tolist() if planned else usual_times(times, codes)
    slots = sorted({round(time, 6) for time in found})
    slots[0] = min(slots[0], found[0])  # rounding up would leave out the first records
    placed = place_on_grid(times[order], slots)
    inside = placed < len(slots)
    return DraftedGrid(
        slots=slots,
        planned=planned,
        n_rows=len(order),
        n_shared=count_shared(codes[order][inside], placed[inside]),
        n_late=int((~inside).sum()),
    )


def _by_subject_and_time(times: Times, codes: Codes) -> NDArray[np.int64]:
    """The rows with a subject and a time, in this order."""
    known = np.flatnonzero(~np.isnan(times) & (codes >= 0))
    return known[np.lexsort((times[known], codes[known]))]


def usual_times(times: Times, codes: Codes) -> list[float]:
    """A grid for irregular times: the median time of the first, second, ... record, rounded.

    Slot `k` exists if a quarter of the subjects have more than `k` records. The grid starts no
    later than the first record.
    """
    order = _by_subject_and_time(times, codes)
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
    lowest = float(times[order].min())
    if lowest < grid[0]:
        scale = 10.0**decimals
        grid[0] = float(np.floor(lowest * scale) / scale)
    return grid
