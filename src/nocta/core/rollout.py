"""`rollout`: a policy acquires for a whole cohort at once (the outer loop of Algorithm 1).

A single subject is a cohort of one and runs the same code.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.detection import DEFAULT_THRESHOLD
from nocta.core.enforce import enforce
from nocta.core.environment import Availability, Environment, Results
from nocta.core.errors import PlanError
from nocta.core.history import History
from nocta.core.policy import Policy
from nocta.core.progress import progress_bar


@dataclass(frozen=True)
class Rollout:
    """The outcome of running a policy on a cohort.

    Args:
        history: Everything acquired or found unavailable.
        probabilities: `(n, L, C)` the prediction made at every time.
        labels: `(n, L)` true classes, -1 if there is no label.
        cost_per_visit: `(n, L)` charge of each visit.
        stop_time: `(n,)` slot of the last decision: -1 if nothing was acquired.
        n_decisions: `(n,)` number of decisions.
        classes: Class names.
        subjects: `(n,)` identifiers.
        availability: The rule under which the policy planned.
        seconds: Wall time of the roll-out.
        results: When a visit's results were shown.
        groups: `(n,)` group of each subject (two knees of one patient), if the cohort has groups.
    """

    history: History
    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    cost_per_visit: NDArray[np.float64]
    stop_time: NDArray[np.int64]
    n_decisions: NDArray[np.int64]
    classes: tuple[str, ...]
    subjects: NDArray[Any]
    availability: str
    seconds: float
    results: str = "after-visit"
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def units(self) -> NDArray[np.int64]:
        """Independent unit of each subject, `(n,)`: its group, or the subject itself."""
        if self.groups is None:
            return np.arange(len(self))
        return np.unique(self.groups, return_inverse=True)[1].reshape(-1)

    @property
    def costs(self) -> NDArray[np.float64]:
        """Total charge of each subject, `(n,)`."""
        return np.asarray(self.cost_per_visit.sum(axis=1))

    @property
    def cost(self) -> float:
        """Mean cost per subject."""
        return float(self.costs.mean())

    @property
    def tests(self) -> NDArray[np.int64]:
        """Number of features each subject acquired, over all slots, `(n,)`."""
        return np.asarray(self.history.acquired.sum(axis=(1, 2)))

    @property
    def visits(self) -> NDArray[np.int64]:
        """Number of slots at which each subject acquired anything, `(n,)`."""
        return np.asarray(self.history.acquired.any(axis=2).sum(axis=1))

    def subset(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Rollout:
        """The outcome of some of the subjects."""
        fields = vars(self).items()
        arrays: dict[str, Any] = {k: v[index] for k, v in fields if isinstance(v, np.ndarray)}
        return replace(self, history=self.history.subset(index), **arrays)

    @classmethod
    def concatenate(cls, pieces: Sequence[Rollout]) -> Rollout:
        """Join roll-outs of several sets of subjects, in this order."""

        def joined(parts: Sequence[Any]) -> dict[str, Any]:
            names = [k for k, value in vars(parts[0]).items() if isinstance(value, np.ndarray)]
            return {k: np.concatenate([getattr(part, k) for part in parts]) for k in names}

        history = History(**joined([piece.history for piece in pieces]))
        seconds = sum(piece.seconds for piece in pieces)
        return replace(pieces[0], history=history, seconds=seconds, **joined(pieces))

    def summary(self, *, threshold: float = DEFAULT_THRESHOLD) -> dict[str, Any]:
        """Cost, accuracy, AP, ROC AUC, cross-entropy and more, overall and per time point.

        `threshold` is for the detection delay only; never choose it on these subjects.
        """
        from nocta.core.metrics import summarize

        return summarize(self, threshold=threshold)


def rollout(
    policy: Policy,
    cohort: Cohort,
    *,
    budget: float | NDArray[np.float64] | None = None,
    availability: Availability = "on-arrival",
    charge_missing: bool = False,
    results: Results = "after-visit",
    seed: int = 0,
    progress: bool = False,
    constraints: Any = None,
) -> Rollout:
    """Run `policy` on every subject of `cohort`, and record its acquisitions and predictions.

    Args:
        policy: Decides and predicts; it sees observations only.
        cohort: The truth, kept inside the environment.
        budget: Hard limit per subject; a decision over it raises `BudgetTooSmall`.
        availability: See `Environment`.
        charge_missing: See `Environment`.
        results: See `Environment`.
        seed: Passed to `Policy.begin`.
        progress: Show a bar over decision rounds.
        constraints: What must and must not be acquired, beside the constraints of the cohort's
            catalog; see `Cohort.constrained`.
    """
    started = clock.perf_counter()
    cohort = cohort.constrained(constraints)
    env = Environment(cohort, budget, availability, charge_missing, results)
    policy.begin(len(cohort), seed)
    # Below another bar, this one disappears when it is full.
    with progress_bar(
        total=len(cohort), desc="subjects finished", leave=None, show=progress
    ) as bar:
        while env.active.any():
            observation = env.observe()
            decision = enforce(observation, policy.decide(observation))
            env.step(observation, decision, policy.acts_within_visit)
            bar.update(int((~env.active).sum()) - bar.n)
    history = env.history()
    probabilities = policy.predict_proba(history)
    shape = (len(cohort), cohort.n_times, cohort.n_classes)
    if probabilities.shape != shape:
        raise PlanError(f"Predictions have shape {probabilities.shape}; expected {shape}.")
    sums = probabilities.sum(axis=2)
    if not np.isfinite(probabilities).all() or (np.abs(sums - 1) > 1e-3).any():
        raise PlanError("Predictions must be finite probabilities that sum to one over classes.")
    charges = env.charged()
    if not np.isfinite(charges).all():
        raise PlanError("A charge is not a finite number; use smaller prices.")
    return Rollout(
        history=history,
        probabilities=probabilities,
        labels=cohort.labels,
        cost_per_visit=charges,
        stop_time=env.time.copy(),
        n_decisions=env.n_decisions,
        classes=cohort.classes,
        subjects=cohort.subjects,
        availability=availability,
        seconds=clock.perf_counter() - started,
        results=results,
        groups=cohort.groups,
    )
