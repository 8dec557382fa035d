"""Candidate plans as a tree of shared prefixes.

The loss of a plan at time `k` depends only on what it acquires up to `k`. So each distinct prefix
is a node that is scored once, and a plan's loss-to-go is the sum along its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class PlanTree:
    """The distinct prefixes of a set of plans, from the slot after the current one.

    Example:
        >>> plans = np.zeros((3, 2, 1), dtype=bool)
        >>> plans[1, 1] = plans[2, 0] = True
        >>> tree = PlanTree.of(plans, time=-1)
        >>> len(tree), tree.path.tolist()
        (5, [[0, 2], [0, 3], [1, 4]])
    """

    asked: Tensor  # (nodes, later, M) what each node has requested by its own slot, 0 or 1
    depth: Tensor  # (nodes,) slot of each node, counted from the first later one
    path: Tensor  # (p, later) the nodes along each plan

    def __len__(self) -> int:
        return len(self.depth)

    @property
    def n_later(self) -> int:
        return self.path.shape[1]

    @cached_property
    def design(self) -> Tensor:
        """Requests of each node, and its slot as one-hot, `(nodes, later * M + later)`."""
        slot = torch.nn.functional.one_hot(self.depth, self.n_later)
        return torch.cat([self.asked.flatten(1), slot], dim=1)

    @classmethod
    def of(cls, plans: NDArray[np.bool_], time: int) -> PlanTree:
        """The tree of plans `(p, L, M)` made at slot `time`; false at and before it."""
        later = plans[:, time + 1 :]
        n_plans, length, width = later.shape
        node = np.zeros(n_plans, dtype=np.int64)
        asked, depth = [], []
        path = np.zeros((n_plans, length), dtype=np.int64)
        total = 0
        for k in range(length):
            _, action = np.unique(later[:, k], axis=0, return_inverse=True)
            branch = node * n_plans + action.reshape(-1)
            _, first, node = np.unique(branch, return_index=True, return_inverse=True)
            beginning = np.zeros((len(first), length, width), dtype=np.float32)
            beginning[:, : k + 1] = later[first, : k + 1]
            asked.append(beginning)
            depth.append(np.full(len(first), k))
            path[:, k] = total + node
            total += len(first)
        return cls(
            torch.from_numpy(np.concatenate(asked)),
            torch.from_numpy(np.concatenate(depth)),
            torch.from_numpy(path),
        )

    def along_paths(self, losses: Tensor) -> Tensor:
        """Sum of the nodes' losses `(..., nodes)` along every plan, `(..., p)`."""
        return losses[..., self.path].sum(-1)


@runtime_checkable
class PlanScorer(Protocol):
    """A network predictor that predicts under many shared plans at once."""

    def plan_log_proba(
        self, inputs: Tensor, slots: Tensor, plans: Tensor, start: int = 0
    ) -> Tensor:
        """Log-probabilities if each plan were carried out, `(n, p, L - start, C)`."""

    def tree_log_proba(self, inputs: Tensor, slots: Tensor, tree: PlanTree) -> Tensor:
        """Log-probabilities at every node of a tree of plans, `(n, nodes, C)`."""
