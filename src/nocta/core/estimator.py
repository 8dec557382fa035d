"""The estimator contract: expected loss-to-go of candidate plans from a partial observation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.policy import Observation

if TYPE_CHECKING:
    from torch import Tensor


class NoctEstimator(ABC):
    """Scores plans for subjects who are all at the same slot (`t`).

    Estimators do not see cost; the policy adds it when it ranks plans.
    """

    @abstractmethod
    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        """Expected loss-to-go of every plan, `(n, p)`; lower is better.

        Args:
            observation: What is known about `n` subjects, all at the same slot.
            plans: `(p, L, M)` shared by all, or `(n, p, L, M)`; false at and before the slot.
        """
