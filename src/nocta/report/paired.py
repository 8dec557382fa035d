"""Paired tests over seeds for the report.

Splits of one cohort share most of their subjects, so the differences over splits vary too little.
The test corrects for that as Nadeau and Bengio (2003) propose: it increases the variance of the
mean by the ratio of test to learning subjects. Data drawn again for every seed need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.evaluation.frontier import paired_difference
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import Table, label, number, with_error
from nocta.report.view import ReportView
from nocta.runs.summary import cost_range, quality_per_seed, side_by_side

#: Methods that are the ends of every other method's curve.
_ENDS = ("nothing", "everything")


def paired_p_value(gaps: Sequence[float], overlap: float = 0.0) -> float:
    """Two-sided p-value of a zero mean difference over splits, by a corrected t-test.

    `overlap` is test subjects per learning subject; 0 if every split has its own subjects.

    Example:
        >>> [round(paired_p_value([1.0, 2.0, 3.0], overlap), 3) for overlap in (0.0, 0.25)]
        [0.074, 0.12]
    """
    from scipy.stats import t

    found = np.asarray(gaps, dtype=float)
    spread = found.std(ddof=1) if found.size > 1 else 0.0
    if spread == 0:
        return float("nan")
    statistic = found.mean() / (spread * np.sqrt(1 / found.size + overlap))
    return float(2 * t.sf(abs(statistic), found.size - 1))


def paired_tests(view: ReportView) -> Table | None:
    """NOCTA (or else the first method) against every other, in each metric shown side by side.

    `None` if no pair has two seeds.
    """
    ours = [m for m in view.methods if m.startswith("nocta-")] or view.methods[:1]
    rows = [
        row
        for method in ours
        for other in view.methods
        if other not in (method, *_ENDS)
        for row in _rows(view, method, other)
    ]
    head = ["method", "against", "metric", "difference", "ahead in", "p"]
    return Table(head, rows, grouped=True, prose=(2,)) if rows else None


def _rows(view: ReportView, method: str, other: str) -> list[list[str]]:
    """One row per metric; none with fewer than two seeds."""
    costs = cost_range(view.comparison.results, [method, other])
    if costs is None:
        return []
    tests = {
        quality: _cells(view, method, other, quality, costs)
        for quality in side_by_side(view.comparison.quality)
    }
    return [
        [label(method), label(other), METRIC_LABELS[quality], *cells]
        for quality, cells in tests.items()
        if cells
    ]


def _cells(
    view: ReportView, method: str, other: str, quality: str, costs: tuple[float, float]
) -> list[str]:
    """Difference, seeds ahead and p-value in one metric; empty with fewer than two seeds."""
    comparison, cohort = view.comparison, view.cohort
    first, second = (
        quality_per_seed(comparison.results, name, quality, costs) for name in (method, other)
    )
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return []
    a, b = ([found[seed] for seed in seeds] for found in (first, second))
    gaps = np.asarray(a) - np.asarray(b)
    drawn = comparison.setup.source.is_drawn
    overlap = 0.0 if drawn else cohort.n_test / (cohort.n_train + cohort.n_val)
    p = paired_p_value(gaps[~np.isnan(gaps)].tolist(), overlap)
    found = paired_difference(b, a) if quality in LOWER_IS_BETTER else paired_difference(a, b)
    difference = with_error(found.mean, found.standard_error, sign=True)
    shown = "< 0.001" if p < 0.001 else number(p)
    return [difference, f"{found.wins} of {found.n}", shown]
