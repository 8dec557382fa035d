"""The contract of policies and predictors, as checks; public through `nocta.testing`.

A leak raises `LeakageError`, a broken rule of the environment `PlanError`, anything else
`AssertionError`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.enforce import enforce
from nocta.core.environment import Availability, Results
from nocta.core.errors import LeakageError, ModelError
from nocta.core.history import History
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.evaluation.audit import MakePolicy, audit_factory, same_recording
from nocta.evaluation.lookups import check_policy_lookup, check_prediction_lookup
from nocta.evaluation.perturb import perturb
from nocta.evaluation.replay import Recording, Terms, record, same_rows

_PREDICTION_TOLERANCE = 1e-4
T = TypeVar("T")


def check_policy(
    make_policy: MakePolicy,
    cohort: Cohort,
    *,
    budget_shares: Sequence[float | None] = (None, 0.4, 0.0),
    availabilities: Sequence[Availability] = ("on-arrival", "known"),
    results: Sequence[Results] = ("after-visit", "at-once"),
    seed: int = 0,
    n_cuts: int = 64,
    n_alone: int = 6,
) -> None:
    """Verify the invariants of `docs/explanation/leakage.md` for one policy.

    Values that were not acquired, pending results, the future, and labels change no decision and no
    prediction, to the bit. Time moves forward, nothing is acquired twice, no budget is exceeded.
    The same seed gives the same result. A subject alone gets the same decisions as in the batch.
    Saving and loading change nothing. The policy acts the same in a process that never held the
    hidden values, does not hold them itself, and does not look subjects up by exact values or by
    position.

    Args:
        make_policy: Builds the policy for the cohort that will be rolled out. A fitted policy
            is passed as `lambda _: policy`.
        cohort: About two dozen subjects, with missing values, visits and labels if possible.
        budget_shares: Hard budgets to try, as shares of the price of everything; `None` for no
            limit.
        availabilities: Availability rules to try.
        results: When results are shown. Only the first rule is tried if the policy does not act
            within visits, because it makes no difference.
        seed: Decides the changes and the policy's own randomness.
        n_cuts: Maximum number of slots after which the future is changed.
        n_alone: Number of subjects that are also checked one by one.

    Example:
        >>> from nocta.methods.fixed import RandomPolicy
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> check_policy(lambda _: RandomPolicy(0.5, RunningMeanPredictor(2)), tiny_cohort())
    """
    shown = results if make_policy(cohort).acts_within_visit else results[:1]
    for availability, share, rule in product(availabilities, budget_shares, shown):
        prices = cohort.catalog.price_of_everything, cohort.catalog.price_of_required
        limit = None if share is None else max(share * prices[0], prices[1])
        terms = Terms(limit, availability, results=rule)
        audit_factory(make_policy, cohort, terms, seed=seed, n_cuts=n_cuts)
        policy = make_policy(cohort)
        first = record(policy, cohort, terms, seed)
        _check_repeats(policy, cohort, first)
        _check_alone(policy, first, n_alone)
        check_policy_lookup(policy, first)
    _check_leaves_input(policy, first)
    _check_saves(policy, cohort, first)


def check_predictor(predictor: Predictor, cohort: Cohort, *, seed: int = 0) -> None:
    """Verify that a predictor is causal and deterministic, and treats each subject separately.

    It is fitted on subjects of the kind of `cohort`. The seed decides what is acquired and changed.
    """
    rng = np.random.default_rng(seed)
    for density in (0.0, 0.3, 0.7, 1.0):
        requested = (rng.random(cohort.recorded.shape) < density) & cohort.catalog.open_slots
        history = History.of(cohort, requested)
        before = deepcopy(history)
        probabilities = predictor.predict_proba(history)
        _require(predictor, _same_history(history, before), "changes the history it is given")
        _check_shape(predictor, probabilities, cohort)
        same = same_rows(probabilities, predictor.predict_proba(history)).all()
        _require(predictor, same, "predicts differently for the same history")
        for cut in range(cohort.n_times):
            _check_causal(predictor, cohort, requested, probabilities, cut, rng)
        _check_others(predictor, cohort, requested, probabilities, rng)
        check_prediction_lookup(predictor, history)
        for i in range(min(4, len(cohort))):
            alone = predictor.predict_proba(history.subset(np.array([i])))
            _require_close(predictor, alone[0], probabilities[i])
    loaded = _save_and_load(predictor)
    if loaded is not None:
        same = same_rows(probabilities, loaded.predict_proba(history)).all()
        _require(predictor, same, "is not the same after saving and loading")


def _check_shape(predictor: Predictor, probabilities: NDArray[np.float32], cohort: Cohort) -> None:
    expected = (len(cohort), cohort.n_times, predictor.n_classes_)
    found = probabilities.shape
    _require(predictor, found == expected, f"predicts shape {found}; expected {expected}")
    fine = (probabilities >= 0).all() and (np.abs(probabilities.sum(axis=2) - 1) < 1e-3).all()
    _require(predictor, fine, "does not predict probabilities that sum to one")


def _check_causal(
    predictor: Predictor,
    cohort: Cohort,
    requested: NDArray[np.bool_],
    probabilities: NDArray[np.float32],
    cut: int,
    rng: np.random.Generator,
) -> None:
    """Later values, availability and acquisitions must not change earlier predictions."""
    changed = perturb(cohort, ("future", "availability"), requested, cut, rng)
    for history in (History.of(changed, requested), History.of(cohort, requested).up_to(cut)):
        now = predictor.predict_proba(history)
        if not same_rows(probabilities[:, : cut + 1], now[:, : cut + 1]).all():
            raise LeakageError(
                f"{_name(predictor)} is not causal: a prediction at or before time {cut} changed "
                f"with what was acquired later."
            )


def _check_others(
    predictor: Predictor,
    cohort: Cohort,
    requested: NDArray[np.bool_],
    probabilities: NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """The values of one subject must not change the prediction for another."""
    kept = rng.random(len(cohort)) < 0.5
    world = perturb(cohort, ["future"], requested, -1, rng)
    mixed = replace(cohort, values=np.where(kept[:, None, None], cohort.values, world.values))
    now = predictor.predict_proba(History.of(mixed, requested))
    if not same_rows(probabilities[kept], now[kept]).all():
        raise LeakageError(
            f"{_name(predictor)} mixes subjects: a prediction changed with the values of others."
        )


def _check_repeats(policy: Policy, cohort: Cohort, first: Recording) -> None:
    again = record(policy, cohort, first.terms, first.seed)
    _require(policy, same_recording(first, again), "acts differently with the same seed")


def _check_alone(policy: Policy, recording: Recording, n_alone: int) -> None:
    """Each subject alone, with its row of the batch, must get the same decisions."""
    n = len(recording.rollout)
    policy.begin(n, recording.seed)
    for observation, decision in recording.rounds:
        for i in map(int, np.flatnonzero(observation.rows < n_alone)):
            alone = observation.subset(np.array([i]))
            found = enforce(alone, policy.decide(alone))
            same = found.time[0] == decision.time[i] and (
                decision.stop[i] or np.array_equal(found.features[0], decision.features[i])
            )
            who = f"row {observation.rows[i]}, time {observation.time[i]}"
            said = f"decides differently for a subject alone ({who}) than in the batch"
            _require(policy, same, said)
    for i in range(min(n_alone, n)):
        one = policy.predict_proba(recording.rollout.history.subset(np.array([i])))
        _require_close(policy, one[0], recording.rollout.probabilities[i])


def _check_leaves_input(policy: Policy, recording: Recording) -> None:
    policy.begin(len(recording.rollout), recording.seed)
    for observation, _ in recording.rounds:
        before = deepcopy(observation.history)
        policy.decide(observation)
        same = _same_history(observation.history, before)
        _require(policy, same, "changes the observation it is given")


def _check_saves(policy: Policy, cohort: Cohort, first: Recording) -> None:
    loaded = _save_and_load(policy)
    if loaded is not None:
        same = same_recording(first, record(loaded, cohort, first.terms, first.seed))
        _require(policy, same, "is not the same after saving and loading")


def _save_and_load(item: T) -> T | None:
    """A copy through `save` and `load`, or `state` and `from_state`; `None` if it has neither."""
    kind: Any = type(item)
    if hasattr(item, "save") and hasattr(kind, "load"):
        with tempfile.TemporaryDirectory() as folder:
            item.save(Path(folder) / "saved")
            return cast("T", kind.load(Path(folder) / "saved"))
    if hasattr(item, "state") and hasattr(kind, "from_state"):
        try:
            state = item.state()
        except ModelError:  # a member cannot be saved
            return None
        return cast("T", kind.from_state(*state))
    return None


def _same_history(a: History, b: History) -> bool:
    return all(
        bool(same_rows(x, y).all()) for x, y in zip(vars(a).values(), vars(b).values(), strict=True)
    )


def _require(item: Any, condition: Any, problem: str) -> None:
    if not condition:
        raise AssertionError(f"{_name(item)} {problem}.")


def _require_close(item: Any, a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    gap = float(np.abs(a - b).max(initial=0))
    said = f"predicts differently for a subject alone than in the batch ({gap:.1e})"
    _require(item, gap <= _PREDICTION_TOLERANCE, said)


def _name(item: Any) -> str:
    return type(item).__name__
