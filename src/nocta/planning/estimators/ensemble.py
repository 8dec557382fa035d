"""Several estimators as one: the weighted mean of their expected losses (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.planning.estimators.sequential import SequentialEstimator


class EnsembleEstimator(SequentialEstimator):
    """Averages the expected losses of its members; a member of weight zero is dropped.

    Args:
        members: Estimators on the same scale of loss.
        weights: One non-negative weight each; they are normalized.
    """

    def __init__(self, members: Sequence[SequentialEstimator], weights: Sequence[float]) -> None:
        given = np.asarray(weights, dtype=float)
        if len(members) != len(given) or (given < 0).any() or given.sum() == 0:
            raise ConfigError(
                f"weights is {list(weights)}; give one number of at least 0 for each of the "
                f"{len(members)} estimators, with a sum above 0."
            )
        used = np.flatnonzero(given)
        self.members = [members[i] for i in used.tolist()]
        self.weights = (given[used] / given.sum()).tolist()

    def start(self, observation: Observation) -> list[Any]:
        return [member.start(observation) for member in self.members]

    def branch(
        self, state: list[Any], time: int, parents: Tensor, subsets: Tensor
    ) -> tuple[list[Any], Tensor]:
        total = torch.zeros(*parents.shape, len(subsets))
        states = []
        for member, weight, own in zip(self.members, self.weights, state, strict=True):
            new, loss = member.branch(own, time, parents, subsets)
            states.append(new)
            total += weight * loss
        return states, total
