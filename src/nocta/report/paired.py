"""Paired tests over seeds.

Splits of one cohort share most of their subjects, so the differences over splits vary too little.
The test corrects for that as Nadeau and Bengio (2003) propose: it increases the variance of the
mean by the ratio of test to learning subjects. Data drawn again for every seed need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.evaluation.frontier import paired_difference
from nocta.report.view import ReportView
from nocta.runs.summary import cost_range, quality_per_seed


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


@dataclass(frozen=True)
class PairedTest:
    """Quality of a method less that of another, over their common costs and seeds."""

    mean: float
    standard_error: float
    wins: int  # seeds in which the first method is ahead
    n: int
    p: float


def paired_test(view: ReportView, method: str, other: str, quality: str) -> PairedTest | None:
    """Compare two methods in one metric; `None` without two common seeds or common costs."""
    comparison, cohort = view.comparison, view.cohort
    costs = cost_range(comparison.results, [method, other])
    if costs is None:
        return None
    first, second = (
        quality_per_seed(comparison.results, name, quality, costs) for name in (method, other)
    )
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return None
    a, b = ([found[seed] for seed in seeds] for found in (first, second))
    gaps = np.asarray(a) - np.asarray(b)
    drawn = comparison.setup.source.is_drawn
    overlap = 0.0 if drawn else cohort.n_test / (cohort.n_train + cohort.n_val)
    p = paired_p_value(gaps[~np.isnan(gaps)].tolist(), overlap)
    found = paired_difference(a, b)
    ahead = paired_difference(b, a) if quality in LOWER_IS_BETTER else found
    return PairedTest(found.mean, found.standard_error, ahead.wins, found.n, p)
