"""The paper's synthetic task (section 4.1): sum the digits shown when a countdown reaches zero.

Each slot has a digit and a counter. The counter is a chain of countdowns from random starts; the
label is the running sum of the digits at times when the counter is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.options import Seed, check_value
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    from nocta.exact.task import FiniteTask

N_TIMES = 10
N_STARTS = 3
N_DIGITS = 3
MEASUREMENTS = (
    Measurement("digit", "uniform in {0, 1, 2}", 1.0),
    Measurement("counter", "countdowns from 0, 1 or 2, one after the other", 1.0),
)


def countdown_labels(digits: NDArray[np.int64], counters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Running sum of the digits at times when the counter is zero, `(n, L)`.

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
    return Cohort(
        values=np.stack([digits, counters], axis=2).astype(np.float32),
        labels=labels,
        visits=np.ones((n_subjects, N_TIMES), dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=make_catalog(MEASUREMENTS, N_TIMES),
        classes=tuple(str(c) for c in range((N_DIGITS - 1) * N_TIMES + 1)),
        name="synthetic",
        time_unit="time point",
    )


def _load(log: LoadLog, *, n_subjects: int = 8000, seed: int = 0) -> Cohort:
    if n_subjects < 1:
        raise ConfigError(f"n_subjects is {n_subjects}; it must be at least 1.")
    check_value("seed", seed, Seed)
    log.read(f"a random number generator (seed {seed})")
    return load(n_subjects, seed)


def finite_task() -> FiniteTask:
    """The task the subjects are drawn from."""
    from nocta.exact.task import synthetic_task

    return synthetic_task(n_digits=N_DIGITS, n_starts=N_STARTS, horizon=N_TIMES)


CARD = Card(
    name="synthetic",
    title="The paper's synthetic task: sum the digits shown when a countdown reaches zero",
    origin="Drawn at random on loading; nothing is stored.",
    size="8,000 subjects, 10 slots",
    labels="21 classes: a sum, 0 to 20",
    label_rule="Sum of the digits so far at time points when the counter is zero.",
    slots="10 time points, all present, nothing missing",
    license="BSD-3-Clause",
    access="built in",
    get="Nothing to download.",
    url="https://arxiv.org/abs/2211.05039",
    citations=(
        "Kossen et al., Active Acquisition for Multimodal Temporal Data: A Challenging "
        "Decision-Making Task, arXiv:2211.05039 (the idea)",
        "the NOCTA paper, section 4.1 (this variant: a label at every time point)",
    ),
    measurements=MEASUREMENTS,
    cost_source="The paper: cost 1 for each.",
    traps=(
        "Sums above 12 are rare, and the largest may be absent from a split; all 21 classes are "
        "still declared.",
        "The exact optimum is known (`nocta optimum synthetic`); compare any accuracy with it.",
        "It is one task, and options were tuned on it; `synthetic-family` has more.",
    ),
    options={
        "n_subjects": "number of subjects to draw (8000)",
        "seed": "same seed, same subjects (0)",
    },
    headline="accuracy",
    published="synthetic",
    finite_task=finite_task,
)
DATASETS = (Dataset(CARD, _load),)
