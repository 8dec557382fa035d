"""Estimators that score a plan slot by slot, so that plans share the work of their prefixes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.estimator import NoctEstimator
from nocta.core.policy import Observation


class SequentialEstimator(NoctEstimator):
    """Gives the expected loss at each slot of a plan; the beam search grows plans with it."""

    @abstractmethod
    def start(self, observation: Observation) -> Any:
        """State of the empty prefix, one per subject."""

    @abstractmethod
    def branch(self, state: Any, time: int, parents: Tensor, subsets: Tensor) -> tuple[Any, Tensor]:
        """Continue prefixes with each of some subsets at one slot.

        Args:
            state: State of `p` prefixes per subject, from `start` (`p` = 1) or `branch`.
            time: The slot to add.
            parents: `(n, q)` which of the `p` prefixes are continued.
            subsets: `(s, M)` what may be acquired at `time`.

        Returns:
            The state of the `q * s` new prefixes, and their expected loss at `time`, `(n, q, s)`.
        """

    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        steps = torch.from_numpy(np.ascontiguousarray(plans))
        if steps.ndim == 4:
            one_by_one = [
                self.score_plans(observation.subset(np.array([i])), p) for i, p in enumerate(plans)
            ]
            return torch.cat(one_by_one)
        # Shared plans are a tree: each distinct prefix is scored once.
        n, total = len(observation), torch.zeros(len(observation), len(steps))
        state = self.start(observation)
        node = torch.zeros(len(steps), dtype=torch.long)  # prefix of each plan so far
        for time in range(int(observation.time[0]) + 1, steps.shape[1]):
            subsets, action = torch.unique(steps[:, time], dim=0, return_inverse=True)
            parents, parent = torch.unique(node, return_inverse=True)
            state, loss = self.branch(state, time, parents.expand(n, -1), subsets)
            node = parent * len(subsets) + action
            total += loss.flatten(1)[:, node]
        return total
