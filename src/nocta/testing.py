"""For people who add their own method: tiny cohorts, small real fakes, and the contract.

`check_policy` and `check_predictor` verify the invariants every policy and predictor of the
project keeps; run them on yours. `LEAKY_POLICIES` break them on purpose, one kind each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.cohort.catalog import Catalog, Feature
from nocta.cohort.cohort import Cohort
from nocta.cohort.history import History
from nocta.predictors.base import Predictor

# -- tiny cohorts ------------------------------------------------------------------------


def tiny_cohort(n_subjects: int = 24, seed: int = 0) -> Cohort:
    """A small clinic: four visits, a blood test and a two-column scan, an outcome of two classes.

    Some values, visits and labels are missing, there is free context, and blood has a fee.

    Example:
        >>> cohort = tiny_cohort(8)
        >>> cohort.values.shape, cohort.catalog.names, cohort.catalog.cost_of_everything
        ((8, 4, 3), ('blood', 'scan'), 18.0)
    """
    rng = np.random.default_rng(seed)
    n, length = n_subjects, 4
    risk = rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, length)).cumsum(axis=1)
    noise = rng.normal(size=(n, length, 3))
    values = np.stack(
        [risk + noise[..., 0], 2 * risk + noise[..., 1], 1 - risk + noise[..., 2]], axis=2
    )
    labels = (risk + 0.3 * rng.normal(size=(n, length)) > 0.3).astype(np.int64)
    visits = rng.uniform(size=(n, length)) < [1.0, 0.9, 0.85, 0.8]
    lost = rng.uniform(size=(n, length, 2)) < 0.12
    values[lost[..., [0, 1, 1]] | ~visits[..., None]] = np.nan
    values[..., 2][rng.uniform(size=(n, length)) < 0.05] = np.nan  # half a scan
    labels[~visits | (rng.uniform(size=(n, length)) < 0.15)] = -1
    age = 60 + 8 * rng.normal(size=(n, 1)) + 3 * risk[:, :1]
    return Cohort(
        values=values.astype(np.float32),
        labels=labels,
        visits=visits,
        context=age.astype(np.float32),
        subjects=np.array([f"s{i:03d}" for i in range(n)]),
        catalog=Catalog(
            features=(
                Feature("blood", ("marker",), 1.0, group="draw"),
                Feature("scan", ("volume", "thickness"), 3.0),
            ),
            n_times=length,
            context=("age",),
            group_fees={"draw": 0.5},
        ),
        classes=("stable", "worse"),
        name="tiny",
    )


def tiny_counter_cohort(n_subjects: int = 32, seed: int = 0, n_times: int = 4) -> Cohort:
    """The paper's digit and counter task over few times, small enough to solve exactly.

    Example:
        >>> tiny_counter_cohort(5).classes
        ('0', '1', '2', '3', '4', '5', '6', '7', '8')
    """
    from nocta.exact.task import synthetic_task

    task = synthetic_task(horizon=n_times)
    values, labels = task.sample(n_subjects, np.random.default_rng(seed))
    return Cohort(
        values=values.astype(np.float32),
        labels=labels,
        visits=np.ones(labels.shape, dtype=bool),
        context=np.zeros((n_subjects, 0), dtype=np.float32),
        subjects=np.arange(n_subjects),
        catalog=Catalog(
            features=tuple(Feature(name, (name,), 1.0) for name in task.feature_names),
            n_times=n_times,
        ),
        classes=tuple(str(c) for c in range(task.n_classes)),
        name="tiny-counter",
    )


# -- small real fakes --------------------------------------------------------------------


class RunningMeanPredictor(Predictor):
    """Logits from the running mean of what was acquired, with fixed random weights: no training.

    Causal and deterministic; it works on any cohort and reacts to every value.

    Example:
        >>> cohort = tiny_cohort(5)
        >>> history = History.empty(cohort.catalog, cohort.context)
        >>> RunningMeanPredictor(cohort.n_classes).predict_proba(history).shape
        (5, 4, 2)
    """

    def __init__(self, n_classes: int, seed: int = 0) -> None:
        self.n_classes_ = n_classes
        self.seed = seed

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        known = ~np.isnan(history.values)
        total = np.where(known, history.values, 0).cumsum(axis=1)
        mean = total / np.maximum(known.cumsum(axis=1), 1)
        weights = np.random.default_rng(self.seed).normal(size=(mean.shape[2], self.n_classes_))
        # Column by column: the same sum in the same order whatever the batch.
        logits = sum(mean[..., d, None] * weights[d] for d in range(len(weights)))
        odds = np.exp(np.clip(np.tanh(logits) * 2, -30, 30))
        return np.asarray(odds / odds.sum(axis=2, keepdims=True), dtype=np.float32)
