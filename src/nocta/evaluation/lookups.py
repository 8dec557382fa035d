"""Tables in disguise: a policy or predictor that recognizes subjects it has met before.

It holds no array of the cohort, but notes of an earlier roll-out, or labels by the value that
identifies a subject. A change of one part in 100,000 hardly matters to a computation, but a lookup
then finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nocta.core.enforce import enforce
from nocta.core.errors import LeakageError
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.predictor import Predictor
from nocta.evaluation.replay import Recording

_STEP = 1e-5
#: A change of a probability that such a step cannot explain.
_JUMP = 0.02
#: Share of the subjects that may be close to a threshold.
_CLOSE = 0.1
#: Other seeds that are tried before a policy counts as not random.
_SEEDS = 8


def moved(history: History) -> History:
    """The same history with every number one part in 100,000 larger, except codes.

    Columns of whole numbers are codes, which may be looked up.
    """
    values, context = _moved(history.values), _moved(history.context)
    return replace(history, values=values, context=context)


def _moved(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    columns = tuple(range(numbers.ndim - 1))
    codes = (np.isnan(numbers) | (numbers == np.rint(numbers))).all(axis=columns)
    return np.where(codes, numbers, numbers * np.float32(1 + _STEP))


def check_prediction_lookup(predictor: Predictor | Policy, history: History) -> None:
    """Raise `LeakageError` if predictions hang on the exact value of numbers."""
    gap = np.abs(predictor.predict_proba(moved(history)) - predictor.predict_proba(history))
    _require_few(predictor, gap.max(axis=(1, 2)) > _JUMP, "predicts")


def check_policy_lookup(policy: Policy, recording: Recording) -> None:
    """Raise `LeakageError` if decisions hang on exact values, or on a subject's position."""
    policy.begin(len(recording.rollout), recording.seed)
    changed = _changed(policy, recording, _with_moved_values)
    _require_few(policy, changed, "decides")
    check_prediction_lookup(policy, recording.rollout.history)
    _check_positions(policy, recording)


def _check_positions(policy: Policy, recording: Recording) -> None:
    """Only a policy that draws at random may decide by the position in the roll-out."""
    n = len(recording.rollout)
    policy.begin(2 * n, recording.seed)
    shifted = _changed(policy, recording, lambda seen: replace(seen, rows=seen.rows + n))
    if shifted.any() and not any(_draws(policy, recording, i + 1) for i in range(_SEEDS)):
        raise LeakageError(
            f"{_name(policy)} decides by the position of a subject in the roll-out "
            f"({int(shifted.sum())} of {n} subjects), and not at random. A position says nothing "
            f"about a subject, unless the policy was told before who is there."
        )


def _draws(policy: Policy, recording: Recording, by: int) -> bool:
    """Whether another seed changes a decision."""
    policy.begin(len(recording.rollout), recording.seed + by)
    return bool(_changed(policy, recording, lambda seen: seen).any())


def _changed(
    policy: Policy, recording: Recording, change: Callable[[Observation], Observation]
) -> NDArray[np.bool_]:
    """Which subjects get another decision somewhere on the recorded way, `(n,)`."""
    found = np.zeros(len(recording.rollout), dtype=bool)
    for observation, decision in recording.rounds:
        seen = change(deepcopy(observation))
        now = enforce(seen, policy.decide(seen))  # as the roll-out does
        found[observation.rows] |= _differs(decision, now)
    return found


def _differs(a: Decision, b: Decision) -> NDArray[np.bool_]:
    features = (a.features != b.features).any(axis=1) & ~a.stop
    return np.asarray((a.time != b.time) | features)


def _with_moved_values(observation: Observation) -> Observation:
    return replace(observation, history=moved(observation.history))


def _require_few(item: Predictor | Policy, changed: NDArray[np.bool_], verb: str) -> None:
    if changed.sum() > max(2, _CLOSE * len(changed)):
        raise LeakageError(
            f"{_name(item)} {verb} by exact values: {int(changed.sum())} of {len(changed)} "
            f"subjects are treated differently if every number changes by one part in 100,000. "
            f"It seems to look subjects up instead of computing from what was acquired."
        )


def _name(item: object) -> str:
    return type(item).__name__
