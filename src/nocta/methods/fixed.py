"""Policies whose plan does not depend on what they see, and how a plan meets a hard budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nocta.core.policy import Decision, Observation, Policy, Promise
from nocta.core.predictor import Predictor

_TOLERANCE = 1e-9


@dataclass(eq=False)
class FixedPlanPolicy(Policy):
    """Acquires one set of slots `(L, M)` for everybody, as far as they are open and affordable.

    If the budget is short, lower numbers of `priority` `(L, M)` come first at a visit; the order of
    the catalog by default.

    Example:
        >>> from nocta.core.rollout import rollout
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> cohort = tiny_cohort(6)
        >>> policy = FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2))
        >>> rollout(policy, cohort, budget=1.5).cost
        1.5
    """

    plan: NDArray[np.bool_]
    predictor: Predictor
    priority: NDArray[np.float64] | None = None
    #: Loss and charge per subject that the plan had on the subjects it was chosen on, if known.
    expected: tuple[float, float] | None = None

    def decide(self, observation: Observation) -> Decision:
        return first_affordable(observation, self.plan & observation.open_slots, self.priority)

    def promise(self, observation: Observation) -> Promise | None:
        """What was seen when the plan was chosen; unknown if the budget may cut it short."""
        return promise_of(self.plan, self.expected, observation)


@dataclass(eq=False)
class FirstVisitPolicy(Policy):
    """Acquires `features` `(M,)` at the first visit that yields anything, then nothing more."""

    features: NDArray[np.bool_]
    predictor: Predictor
    priority: NDArray[np.float64] | None = None

    def decide(self, observation: Observation) -> Decision:
        waiting = ~observation.history.acquired.any(axis=(1, 2), keepdims=True)
        plans = observation.open_slots & self.features & waiting
        shape = observation.catalog.open_slots.shape
        priority = None if self.priority is None else np.broadcast_to(self.priority, shape)
        return first_affordable(observation, plans, priority)


class RandomPolicy(Policy):
    """Acquires each open slot with the same probability, whatever it sees.

    The draw of a subject depends on the roll-out's seed and the subject's row alone, so it is
    the same in every batch.
    """

    def __init__(self, probability: float, predictor: Predictor) -> None:
        self.probability = probability
        self.predictor = predictor
        self.begin(0, 0)

    def begin(self, n_subjects: int, seed: int) -> None:
        self._seed = seed
        self._draws: NDArray[np.float32] | None = None
        self._n_subjects = n_subjects

    def decide(self, observation: Observation) -> Decision:
        draws = self._rows(observation)
        plans = (draws < self.probability) & observation.open_slots
        return first_affordable(observation, plans, draws)

    def _rows(self, observation: Observation) -> NDArray[np.float32]:
        needed = max(self._n_subjects, int(observation.rows.max(initial=-1)) + 1)
        if self._draws is None or len(self._draws) < needed:
            # Rows are filled one after the other: more rows leave the first ones as they are.
            shape = (needed, *observation.catalog.open_slots.shape)
            self._draws = np.random.default_rng(self._seed).random(shape, dtype=np.float32)
        return np.asarray(self._draws[observation.rows])


def promise_of(
    plan: NDArray[np.bool_], expected: tuple[float, float] | None, observation: Observation
) -> Promise | None:
    """Loss and charge that a plan `(L, M)` had before, for all who can afford the whole plan."""
    if expected is None:
        return None
    affordable = observation.catalog.cost_of(plan) <= observation.remaining + _TOLERANCE
    loss, charge = (np.where(affordable, value, np.nan) for value in expected)
    return loss, charge


def first_affordable(
    observation: Observation, plans: NDArray[np.bool_], priority: NDArray[np.floating] | None = None
) -> Decision:
    """The earliest visit of each plan of which the budget allows anything, and what it allows.

    `plans` are `(n, L, M)` open slots later than the current time. Lower numbers of `priority`,
    `(L, M)` or `(n, L, M)`, come first at a visit.
    """
    order = np.broadcast_to(0.0 if priority is None else priority, plans.shape)
    left = plans.copy()
    while True:
        decision = Decision.from_plans(left)
        going = np.flatnonzero(~decision.stop)
        features = decision.features.copy()
        price = _price(observation, decision.time[going], features[going])
        short = going[price > observation.remaining[going] + _TOLERANCE]
        if not short.size:
            return decision
        at = decision.time[short]
        features[short] = _trim(observation, short, at, features[short], order[short, at])
        left[short, at] = features[short]
        # A visit of which nothing is affordable is gone now; the next one is looked at.


def _trim(
    observation: Observation,
    rows: NDArray[np.int64],
    time: NDArray[np.int64],
    features: NDArray[np.bool_],
    order: NDArray[np.floating],
) -> NDArray[np.bool_]:
    """Add one feature after the other while the budget lasts, `(r, M)`."""
    kept = np.zeros_like(features)
    everybody = np.arange(len(rows))
    for m in np.argsort(order, axis=1, kind="stable").T:
        trial = kept.copy()
        trial[everybody, m] = features[everybody, m]
        fits = _price(observation, time, trial) <= observation.remaining[rows] + _TOLERANCE
        kept = np.where(fits[:, None], trial, kept)
    return kept


def _price(
    observation: Observation, time: NDArray[np.int64], features: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """What these features cost at a visit without acquisitions so far, `(r,)`."""
    catalog = observation.catalog
    plans = np.zeros((len(time), catalog.n_times, catalog.n_features), dtype=bool)
    plans[np.arange(len(time)), time] = features
    return catalog.cost_of(plans)
