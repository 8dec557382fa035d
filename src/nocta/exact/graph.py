"""The belief graph: every belief a policy can reach, stored once.

A node at level `t` is what is believed before anything is acquired at time `t`. Nothing here
depends on a cost weight: one graph serves every cost weight, every policy and both losses.
`build_graph` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nocta.exact.task import FiniteTask, FloatArray, IntArray

Loss = Literal["error", "cross-entropy"]


@dataclass(frozen=True, eq=False)
class Level:
    """All beliefs at one time, what each action earns there and where it leads.

    Actions are subsets of features as bit masks: bit `m` set means that feature `m` is acquired, so
    action 0 acquires nothing. Edges are stored by (node, action, outcome).
    """

    correct: FloatArray  # (n_nodes, n_actions) probability of a correct label at this time
    log_score: FloatArray  # (n_nodes, n_actions) expected log probability of the true label
    costs: FloatArray  # (n_actions,)
    probability: FloatArray  # (n_edges,) of the outcome given node and action
    child: NDArray[np.int32]  # (n_edges,) node at the next level
    outcome: NDArray[np.int32]  # (n_edges,) mixed-radix number of the values, first feature fastest
    starts: IntArray  # (n_nodes * n_actions + 1,) where the edges of each (node, action) begin

    @property
    def n_nodes(self) -> int:
        return len(self.correct)

    @property
    def n_actions(self) -> int:
        return len(self.costs)

    def reward(self, loss: Loss) -> FloatArray:
        """`(n_nodes, n_actions)` expected reward: correct labels, or minus the cross-entropy."""
        if loss not in ("error", "cross-entropy"):
            raise ValueError(f"loss is {loss!r}, expected 'error' or 'cross-entropy'.")
        return self.correct if loss == "error" else self.log_score

    @cached_property
    def transitions(self) -> csr_array:
        """`(n_nodes * n_actions, n_children)` probabilities of the next belief."""
        n_children = int(self.child.max(initial=-1)) + 1
        shape = (len(self.starts) - 1, n_children)
        return csr_array((self.probability, self.child, self.starts), shape=shape)

    def expect(self, next_values: FloatArray) -> FloatArray:
        """Mean of next-level values, `(n_next, ...)`, after each node and action."""
        mean: FloatArray = self.transitions @ next_values
        return mean.reshape(self.n_nodes, self.n_actions, *next_values.shape[1:])


@dataclass(frozen=True, eq=False)
class BeliefGraph:
    """Levels `0 .. horizon - 1` of reachable beliefs; the root is node 0 of level 0."""

    task: FiniteTask
    levels: tuple[Level, ...]

    @property
    def n_beliefs(self) -> int:
        return sum(level.n_nodes for level in self.levels)
