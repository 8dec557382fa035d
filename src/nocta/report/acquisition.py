"""Who acquires what and when: a table whose cells are shaded by the share of subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nocta.report.plots.dynamics import Dynamics, TimeAxis

#: With more visits than this, the table shows ranges of visits.
MAX_VISITS = 12
#: A share below this is shown as an empty cell.
_NOBODY = 0.005


@dataclass(frozen=True)
class Cell:
    """A text, and how dark it is: 0 for nobody to 1 for every subject at every visit."""

    text: str
    shade: float

    @property
    def is_dark(self) -> bool:
        return self.shade > 0.55


@dataclass(frozen=True)
class HeatTable:
    """Features in rows, visits (or ranges of visits) in columns.

    `totals` is the mean number of acquisitions per subject of each feature, `never` names the
    features that nobody acquires.
    """

    method: str
    head: list[str]
    rows: list[tuple[str, list[Cell], str]]
    never: list[str]
    ranges: bool


def heat_table(entry: Dynamics, axis: TimeAxis) -> HeatTable:
    """The acquisitions of one method.

    A cell is the share of subjects who acquire the feature at that visit. For ranges of visits it
    is the mean number of acquisitions per subject there.
    """
    n_times = len(entry.acquired)
    pieces = np.array_split(np.arange(n_times), min(n_times, MAX_VISITS))
    ranges = n_times > MAX_VISITS
    totals = entry.acquired.sum(axis=0)
    rows, never = [], []
    for m, name in enumerate(entry.features):
        if totals[m] < _NOBODY:
            never.append(name)
            continue
        amounts = [entry.acquired[piece, m].sum() for piece in pieces]
        cells = [
            Cell(_text(amount, ranges), float(amount) / len(piece))
            for amount, piece in zip(amounts, pieces, strict=True)
        ]
        rows.append((name, cells, f"{totals[m]:.2f}"))
    labels = axis.labels
    ends = [(labels[piece[0]], labels[piece[-1]]) for piece in pieces]
    head = [a if a == b else f"{a}–{b}" for a, b in ends]
    return HeatTable(entry.method, head, rows, never, ranges)


def _text(amount: float, ranges: bool) -> str:
    if amount < _NOBODY:
        return ""
    return f"{amount:.2f}" if ranges else f"{amount:.0%}"
