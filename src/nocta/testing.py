"""Test helpers for people who add their own method: tiny cohorts, small fakes, and the contract.

Run `check_policy` and `check_predictor` on your own classes: they verify the invariants of all
policies and predictors. Each of the `LEAKY_POLICIES` breaks one of them on purpose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.predictor import Predictor
from nocta.evaluation.contract import check_policy, check_predictor
from nocta.exact.task import synthetic_task
from nocta.methods.fixed import first_affordable
from nocta.methods.one_at_a_time import affordable_slots
from nocta.predictors.bayes import BayesPredictor

__all__ = [
    "LEAKY_POLICIES",
    "ImpatientPolicy",
    "LeakyPolicy",
    "NonCausalPredictor",
    "OraclePredictor",
    "RunningMeanPredictor",
    "check_policy",
    "check_predictor",
    "tiny_cohort",
    "tiny_counter_cohort",
]

_Integers = NDArray[np.int64]

# -- tiny cohorts ------------------------------------------------------------------------


def tiny_cohort(n_subjects: int = 24, seed: int = 0) -> Cohort:
    """A small clinic: four visits, a blood test, a scan with two columns, and two classes.

    Some values, visits and labels are missing, there is free context, and the blood draw has a fee.

    Example:
        >>> cohort = tiny_cohort(8)
        >>> cohort.values.shape, cohort.catalog.names, cohort.catalog.price_of_everything
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
    """The paper's digit and counter task with few times, small enough to solve exactly.

    Example:
        >>> tiny_counter_cohort(5).classes
        ('0', '1', '2', '3', '4', '5', '6', '7', '8')
    """
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


# -- small fakes -------------------------------------------------------------------------


class OraclePredictor(BayesPredictor):
    """The exact posterior for subjects of `tiny_counter_cohort`."""

    def __init__(self, n_times: int = 4) -> None:
        super().__init__(synthetic_task(horizon=n_times))


class RunningMeanPredictor(Predictor):
    """Predicts higher classes for higher running means of what was acquired. Needs no training.

    It is causal and deterministic, works on any cohort, and reacts to every value.

    Example:
        >>> cohort = tiny_cohort(5)
        >>> history = History.empty(cohort.catalog, cohort.context)
        >>> RunningMeanPredictor(cohort.n_classes).predict_proba(history).shape
        (5, 4, 2)
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes_ = n_classes

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        known = ~np.isnan(history.values)
        total = np.where(known, history.values, 0).cumsum(axis=1)
        mean = total / np.maximum(known.cumsum(axis=1), 1)  # (n, L, D)
        level = np.tanh(sum((1 + d / 10) * mean[..., d] for d in range(mean.shape[2])) / 2)
        odds = np.exp(2 * level[..., None] * np.linspace(-1, 1, self.n_classes_))
        return np.asarray(odds / odds.sum(axis=2, keepdims=True), dtype=np.float32)


class NonCausalPredictor(RunningMeanPredictor):
    """Breaks causality on purpose: it predicts every time from the complete history."""

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        final = super().predict_proba(history)[:, -1:]
        return np.repeat(final, history.values.shape[1], axis=1)


# -- policies that leak on purpose ---------------------------------------------------------


class LeakyPolicy(Policy):
    """Acquires the first feature at each visit, as long as a forbidden look at the data says so.

    Args:
        cohort: The cohort being rolled out; an honest policy would not take it.
        look: Maps the cohort, rows and current times to who continues, `(n,)`.
    """

    def __init__(
        self, cohort: Cohort, look: Callable[[Cohort, _Integers, _Integers], NDArray[np.bool_]]
    ) -> None:
        self.cohort, self.look = cohort, look
        self.predictor = RunningMeanPredictor(cohort.n_classes)

    def decide(self, observation: Observation) -> Decision:
        first = np.arange(observation.catalog.n_features) == 0
        plans = observation.open_slots & first
        plans &= self.look(self.cohort, observation.rows, observation.time)[:, None, None]
        return first_affordable(observation, plans)


def _hidden_value(cohort: Cohort, rows: _Integers, time: _Integers) -> NDArray[np.bool_]:
    """The last column of the current visit, which is never acquired."""
    value = cohort.values[rows, np.maximum(time, 0), -1]
    return np.asarray((time < 0) | ~(value < np.nanmedian(cohort.values[..., -1])))


def _next_value(cohort: Cohort, rows: _Integers, time: _Integers) -> NDArray[np.bool_]:
    """The value that is about to be acquired."""
    value = cohort.values[rows, np.minimum(time + 1, cohort.n_times - 1), 0]
    return np.asarray(~(value < np.nanmedian(cohort.values[..., 0])))


def _label(cohort: Cohort, rows: _Integers, time: _Integers) -> NDArray[np.bool_]:
    """The label of the current visit."""
    return np.asarray(cohort.labels[rows, np.maximum(time, 0)] != 0)


def _follow_up(cohort: Cohort, rows: _Integers, time: _Integers) -> NDArray[np.bool_]:
    """Whether the subject comes back; the end of follow-up reveals the outcome."""
    later = np.arange(cohort.n_times) > time[:, None]
    return np.asarray((cohort.visits[rows] & later).sum(axis=1) > 1)


class ImpatientPolicy(Policy):
    """Adds the last feature to a visit if the pending value of the first feature is high.

    It acts within visits, and reads the pending value from the cohort, which it should not have.
    """

    acts_within_visit = True

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.predictor = RunningMeanPredictor(cohort.n_classes)

    def decide(self, observation: Observation) -> Decision:
        n, width = len(observation), observation.catalog.n_features
        value = self.cohort.values[observation.rows, np.maximum(observation.time, 0), 0]
        high = value > np.nanmedian(self.cohort.values[..., 0])
        last = np.broadcast_to(np.arange(width) == width - 1, (n, width))
        added = affordable_slots(observation)[np.arange(n), observation.time] & last
        added &= (high & observation.waiting)[:, None]
        later = affordable_slots(observation) & (np.arange(width) == 0)
        step = Decision.from_plans(later & ~observation.waiting[:, None, None])
        stays = observation.waiting
        return Decision(
            np.where(stays, observation.time, step.time),
            np.where(stays[:, None], added, step.features),
        )


#: For each kind of leak, a policy built with the cohort it is rolled out on.
LEAKY_POLICIES: dict[str, Callable[[Cohort], Policy]] = {
    "value": lambda cohort: LeakyPolicy(cohort, _hidden_value),
    "future": lambda cohort: LeakyPolicy(cohort, _next_value),
    "label": lambda cohort: LeakyPolicy(cohort, _label),
    "availability": lambda cohort: LeakyPolicy(cohort, _follow_up),
    "result": ImpatientPolicy,
}
