"""The table of subgroups: cost, quality and calibration, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import Table, number
from nocta.report.view import ReportView
from nocta.runs.record import Interval, PointDetails


def subgroup_table(view: ReportView) -> Table | None:
    """The leading method at its recommended point; `None` if nothing is known of the subjects."""
    names = list(dict.fromkeys(g.name for entry in view.recommended for g in entry.subgroups))
    if not names:
        return None
    rows = [_row(name, view.recommended) for name in names]
    unit = f" ({view.currency})" if view.currency else ""
    quality = METRIC_LABELS[view.comparison.quality]
    head = ["subjects", "number", f"cost{unit}", quality, "observed less stated"]
    return Table(head, rows)


def _row(name: str, entries: Sequence[PointDetails]) -> list[str]:
    found = [group for entry in entries for group in entry.subgroups if group.name == name]
    n = np.mean([group.n_subjects for group in found])
    return [
        name,
        number(float(n), 0),
        interval([g.cost for g in found], 2),
        interval([g.quality for g in found]),
        interval([g.calibration for g in found], sign=True),
    ]


def interval(found: Sequence[Interval], digits: int = 3, *, sign: bool = False) -> str:
    """A value and its interval, each the mean over seeds.

    Example:
        >>> interval([(0.5, 0.4, 0.6), (0.7, 0.6, 0.8)], 2)
        '0.60 (0.50 to 0.70)'
    """
    known = [entry for entry in found if not math.isnan(entry[0])]
    if not known:
        return "too few"
    value, low, high = (float(np.mean(column)) for column in zip(*known, strict=True))
    ends = f"{number(low, digits, sign=sign)} to {number(high, digits, sign=sign)}"
    shown = number(value, digits, sign=sign)
    return shown if math.isnan(low) else f"{shown} ({ends})"
