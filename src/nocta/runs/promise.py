"""What a policy expects before the first visit, to be held against what happened.

The environment is not involved: it shows its first observation, and the policy says what it
expects. Nothing that this observation does not hold is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Environment
from nocta.core.errors import PlanError
from nocta.core.losses import TrajectoryLoss, trajectory_losses
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout
from nocta.evaluation.isolation import name_of

#: What a policy expects of every subject, loss and charge, and the loss that it means.
Expected = tuple[NDArray[np.float64], NDArray[np.float64], TrajectoryLoss]


def ask(
    policy: Policy, cohort: Cohort, *, budget: float | None, availability: Availability, seed: int
) -> Expected:
    """What a policy expects before the first visit; ask it before it is rolled out."""
    env = Environment(cohort, budget, availability)
    policy.begin(len(cohort), seed)
    unknown = np.full(len(cohort), np.nan)
    expected = policy.promise(env.observe()) if cohort.n_times else None
    losses, costs = (unknown, unknown) if expected is None else map(_as_array, expected)
    if not losses.shape == costs.shape == unknown.shape:
        raise PlanError(
            f"{name_of(policy)}.promise gave shapes {losses.shape} and {costs.shape}; "
            f"expected a loss and a charge of each of {len(cohort)} subjects."
        )
    return losses, costs, policy.promised_loss


@dataclass(frozen=True)
class Promise:
    """Expected and realized loss, and expected charge, of every subject, `(n,)` each."""

    expected_losses: NDArray[np.float64]
    expected_costs: NDArray[np.float64]
    realized_losses: NDArray[np.float64]

    @classmethod
    def of(cls, expected: Expected, outcome: Rollout) -> Self:
        """Hold what `ask` returned against the roll-out of the policy on the same subjects."""
        losses, costs, kind = expected
        return cls(losses, costs, trajectory_losses(outcome.labels, outcome.probabilities, kind))

    def measures(self) -> dict[str, Any]:
        """Means over the subjects, by the columns of results.csv."""
        return {
            "expected_loss": float(self.expected_losses.mean()),
            "expected_cost": float(self.expected_costs.mean()),
            "realized_loss": float(self.realized_losses.mean()),
        }


def _as_array(values: Any) -> NDArray[np.float64]:
    return np.asarray(values, dtype=float)
