"""The estimator contract: expected loss-to-go of candidate plans from a partial observation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.policies.base import Observation


class NoctEstimator(ABC):
    """Scores plans for subjects who are all at the same slot (`t`).

    Estimators know nothing of cost: the policy adds it when it ranks.
    """

    @abstractmethod
    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        """Expected loss-to-go of every plan, `(n, p)`; lower is better.

        Args:
            observation: What is known about `n` subjects, all at the same slot.
            plans: `(p, L, M)` shared by all, or `(n, p, L, M)`; false at and before the slot.
        """


class SequentialEstimator(NoctEstimator):
    """An estimator that scores a plan slot by slot, so that plans share their prefixes."""

    @abstractmethod
    def start(self, observation: Observation) -> Any:
        """State of the empty prefix, one per subject."""

    @abstractmethod
    def extend(self, state: Any, time: int, parents: Tensor, actions: Tensor) -> tuple[Any, Tensor]:
        """Extend prefixes by one slot.

        Args:
            state: State of `q` prefixes per subject, from `start` (`q` = 1) or `extend`.
            time: The slot to add.
            parents: `(n, p)` which of the `q` prefixes each new one continues.
            actions: `(n, p, M)` what it acquires at `time`.

        Returns:
            The state of the `p` new prefixes, and their expected loss at `time`, `(n, p)`.
        """

    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        n = len(observation)
        steps = torch.from_numpy(np.ascontiguousarray(plans))
        steps = steps.expand(n, *steps.shape) if steps.ndim == 3 else steps
        p, length = steps.shape[1], steps.shape[2]
        total = torch.zeros(n, p)
        state = self.start(observation)
        parents = torch.zeros(n, p, dtype=torch.long)
        for time in range(int(observation.time[0]) + 1, length):
            state, loss = self.extend(state, time, parents, steps[:, :, time])
            total += loss
            parents = torch.arange(p).expand(n, p)
        return total
