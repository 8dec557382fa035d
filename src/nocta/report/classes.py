"""Sensitivity and specificity at the default threshold: the most probable class is predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nocta.report.tables import Table, label, with_error
from nocta.report.view import ReportView
from nocta.runs.record import PointDetails
from nocta.runs.summary import mean_and_error


def sensitivity_and_specificity(
    confusion: Sequence[Sequence[int]], which: int
) -> tuple[float, float]:
    """Of one class, from true classes in rows and predicted classes in columns; NaN if undefined.

    Example:
        >>> sensitivity_and_specificity([[8, 2], [1, 3]], 1)
        (0.75, 0.8)
    """
    table = np.asarray(confusion, dtype=float)
    own = np.arange(len(table)) == which
    return _share(table[own][:, own], table[own]), _share(table[~own][:, ~own], table[~own])


def class_table(view: ReportView) -> Table | None:
    """One row per method and class at the point shown; of two classes, only the positive one.

    If there are more classes, only the leading method is shown.
    """
    classes = view.cohort.classes
    binary = len(classes) == 2
    shown = [1] if binary else list(range(len(classes)))
    rows = []
    for method in view.methods if binary else [view.lead]:
        entries = [entry for entry in view.chosen[method] if entry.confusion]
        rows += [[label(method), classes[c], *_cells(entries, c)] for c in shown if entries]
    if not rows:
        return None
    head = ["method", "class", "sensitivity", "specificity"]
    return Table(head, rows, grouped=True)


def _cells(entries: Sequence[PointDetails], which: int) -> list[str]:
    found = np.array([sensitivity_and_specificity(e.confusion, which) for e in entries])
    return [with_error(*mean_and_error(c[~np.isnan(c)])) for c in found.T]


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total else float("nan")
