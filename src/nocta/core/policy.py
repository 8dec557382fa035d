"""The policy contract: from an `Observation` to the next `Decision`.

A policy never holds true values. The environment (`nocta.core.environment`) shows it what was
acquired, executes its decision, and asks again until the policy stops or the last visit is over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import BudgetTooSmall
from nocta.core.history import History
from nocta.core.losses import TrajectoryLoss
from nocta.core.predictor import Predictor


@dataclass(frozen=True)
class Observation:
    """Everything known about `n` subjects when a decision is due.

    Args:
        history: What was acquired so far and whose results are back.
        time: `(n,)` current slot of each subject; -1 before the first visit (`t`).
        remaining: `(n,)` remaining hard budget; infinite if there is none.
        catalog: What can be acquired and what it costs.
        rows: `(n,)` position of each subject in the roll-out, so that a policy with memory (a
            committed plan, a random stream) finds each subject's entry.
        available: `(n, L, M)` which slots were recorded, only if `availability="known"`.
        visiting: `(n,)` who may still add to the visit of the current slot; nobody by default.
            Used only by policies that act within visits (`Policy.acts_within_visit`).
        pending: `(n, L, M)` what was ordered at that visit and is not back yet; nothing by default.
    """

    history: History
    time: NDArray[np.int64]
    remaining: NDArray[np.float64]
    catalog: Catalog
    rows: NDArray[np.int64]
    available: NDArray[np.bool_] | None = None
    visiting: NDArray[np.bool_] | None = None
    pending: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def open_slots(self) -> NDArray[np.bool_]:
        """Which slots can still be acquired, `(n, L, M)` (`V_{>t}`).

        Slots that the constraints close, given what was acquired so far, are not open.
        """
        rules, out = self.catalog.rules, self.offered_slots
        if rules is None:
            return out
        out = rules.open_slots(out, self.committed)
        return self._without_unaffordable_groups(out) if rules.groups else out

    @property
    def offered_slots(self) -> NDArray[np.bool_]:
        """The same for whoever plans several visits, `(n, L, M)`.

        What the constraints close for good is not in it. What one part of a plan closes or opens
        for another is for `Catalog.rules` to say.
        """
        closed = self.time if self.visiting is None else self.time - self.visiting
        later = np.arange(self.catalog.n_times)[None, :, None] > closed[:, None, None]
        out = later & self.catalog.open_slots & ~self.requested
        if self.available is not None:
            out = out & self.available
        return np.asarray(out)

    @property
    def due(self) -> NDArray[np.bool_]:
        """What the constraints still acquire, whatever the policy decides, `(n, L, M)`."""
        rules = self.catalog.rules
        if rules is None or not rules.required.any():
            return np.zeros((len(self), self.catalog.n_times, self.catalog.n_features), dtype=bool)
        return rules.due(self.offered_slots, self.committed)

    def reserving(self) -> Observation:
        """The same with only as much budget as is left when all that is `due` is paid."""
        if np.isinf(self.remaining).all() or not self.catalog.price_of_required:
            return self
        return replace(self, remaining=self.remaining - self.catalog.cost_of(self.due))

    def check_reserve(self) -> None:
        """Raise `BudgetTooSmall` if the budget does not cover all that is `due`."""
        short = np.flatnonzero(self.remaining < -1e-9)
        if short.size:
            owed = self.catalog.cost_of(self.due[short[0]])
            raise BudgetTooSmall(
                f"{self.remaining[short[0]] + owed:g} is left, but the constraints always acquire "
                f"more for {owed:g}. Raise the budget, or relax `always`."
            )

    def _without_unaffordable_groups(self, out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What must be acquired together is closed if the budget does not allow all of it."""
        rules, length = self.catalog.rules, self.catalog.n_times
        if rules is None or np.isinf(self.remaining).all():
            return out
        due = self.due
        for group in rules.groups:
            alone = np.eye(length, dtype=bool)[:, :, None] & group
            price = self.catalog.cost_of(alone)  # (L,)
            short = price > self.remaining[:, None] + 1e-9
            out &= ~((short & ~due[..., group].any(axis=2))[:, :, None] & group)
        return out

    @property
    def requested(self) -> NDArray[np.bool_]:
        """Everything requested, including pending results, `(n, L, M)`."""
        asked = self.history.requested
        return asked if self.pending is None else np.asarray(asked | self.pending)

    @property
    def committed(self) -> NDArray[np.bool_]:
        """What is charged as far as is known, including pending results, `(n, L, M)`."""
        acquired = self.history.acquired
        return acquired if self.pending is None else np.asarray(acquired | self.pending)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Who has pending results, `(n,)`."""
        if self.pending is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.pending.any(axis=(1, 2)))

    def subset(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Observation:
        """The observation of some of the subjects."""
        fields = vars(self).items()
        arrays: dict[str, Any] = {k: v[index] for k, v in fields if isinstance(v, np.ndarray)}
        return replace(self, history=self.history.subset(index), **arrays)


@dataclass(frozen=True)
class Decision:
    """The next acquisition of each of `n` subjects, or to stop.

    A policy that acts within visits may name the current slot again to add to that visit. With no
    features, this ends the visit: pending results come back, and the policy decides again.

    Args:
        time: `(n,)` the slot to go to; `STOP` to acquire nothing more.
        features: `(n, M)` what to acquire there; ignored when stopping.
    """

    STOP = -1

    time: NDArray[np.int64]
    features: NDArray[np.bool_]

    @property
    def stop(self) -> NDArray[np.bool_]:
        """Who stops, `(n,)`."""
        return np.asarray(self.time == self.STOP)

    @classmethod
    def from_plans(cls, plans: NDArray[np.bool_]) -> Decision:
        """Execute the earliest part of each plan, `(n, L, M)`; an empty plan stops."""
        visited = np.asarray(plans.any(axis=2))
        time = np.where(visited.any(axis=1), visited.argmax(axis=1), cls.STOP)
        features = plans[np.arange(len(plans)), np.maximum(time, 0)]
        return cls(time=time.astype(np.int64), features=features & (time >= 0)[:, None])


#: Expected loss and expected charge of every subject, `(n,)` each.
Promise = tuple[NDArray[np.float64], NDArray[np.float64]]


class Policy(ABC):
    """Decides what to acquire next, and predicts from what was acquired.

    To add a method, implement `decide`, and either set `predictor` in `__init__` or override
    `predict_proba`. Then run `nocta.testing.check_policy` on it.
    """

    predictor: Predictor
    #: Whether the policy acquires one feature after the other within a visit. Unless results come
    #: at once, they are pending until the visit is over; see `Decision` for how to end a visit.
    acts_within_visit: bool = False
    #: The loss in which `promise` is stated; what happens is measured in it too.
    promised_loss: TrajectoryLoss = "cross-entropy"

    def begin(self, n_subjects: int, seed: int) -> None:  # noqa: B027 - optional hook
        """Called once before a roll-out; policies with memory or a random stream reset it."""

    @abstractmethod
    def decide(self, observation: Observation) -> Decision:
        """The next acquisition of every subject in `observation`."""

    def promise(self, observation: Observation) -> Promise | None:
        """What is expected of each subject from here on; optional, `None` if nothing is known.

        Comparisons ask for it before the first visit and hold it against what happened on the test
        subjects. A policy that plans promises what it expects of its best plan: the loss summed
        over the later labeled visits (see `promised_loss`), and the charge, for which unavailable
        features do not count. Both are unweighted. NaN stands for a subject of whom nothing is
        known. Like `decide`, it sees the observation only, and it changes nothing.
        """
        return None

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        """Class probabilities at every time, `(n, L, C)`, causal."""
        return self.predictor.predict_proba(history)
