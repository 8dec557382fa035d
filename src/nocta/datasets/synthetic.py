"""The paper's synthetic task: find the digits that count by watching a countdown.

Section 4.1. Each slot holds a digit and a counter. The counter is a chain of countdowns
from random starts; the label is the running sum of the digits at which the counter is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.cohort.catalog import Catalog, Feature
from nocta.cohort.cohort import Cohort

N_TIMES = 10
N_STARTS = 3
N_DIGITS = 3


def countdown_labels(digits: NDArray[np.int64], counters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Running sum of the digits where the counter is zero, `(n, L)`.

    Example:
        >>> counter = np.array([[2, 1, 0, 1, 0, 2, 1, 0, 1, 0]])
        >>> digit = np.array([[1, 0, 1, 0, 2, 2, 0, 1, 1, 0]])
        >>> "".join(map(str, countdown_labels(digit, counter)[0]))
        '0011333444'
    """
    return np.cumsum(np.where(counters == 0, digits, 0), axis=1)


def draw_counters(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Concatenated countdowns from starts uniform in {0, 1, 2}, cut to length."""
    counters = np.empty((n, N_TIMES), dtype=np.int64)
    current = rng.integers(N_STARTS, size=n)
    for t in range(N_TIMES):
        counters[:, t] = current
        current = np.where(current > 0, current - 1, rng.integers(N_STARTS, size=n))
    return counters


def load(n_subjects: int = 8000, seed: int = 0) -> Cohort:
    """Draw the task: 8,000 subjects, ten slots, two features of cost 1, classes 0 to 20."""
    rng = np.random.default_rng(seed)
    digits = rng.integers(N_DIGITS, size=(n_subjects, N_TIMES))
    counters = draw_counters(n_subjects, rng)
    labels = countdown_labels(digits, counters)
    catalog = Catalog(
        features=(Feature("digit", ("digit",), 1.0), Feature("counter", ("counter",), 1.0)),
        n_times=N_TIMES,
    )
    return Cohort(
        values=np.stack([digits, counters], axis=2).astype(np.float32),
        labels=labels,
        visits=np.ones((n_subjects, N_TIMES), dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=catalog,
        classes=tuple(str(c) for c in range((N_DIGITS - 1) * N_TIMES + 1)),
        name="synthetic",
        time_unit="time point",
    )
