"""What exact policies cost and achieve over cost weights, as one curve per policy and loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from nocta.exact.graph import Loss
from nocta.exact.task import FloatArray

#: `optimum`: the best of all policies; `noct`: plans by exact NOCT and replans.
ExactPolicy = Literal["optimum", "noct"]


class CurvePoint(NamedTuple):
    """A policy: the cost weight it was found at, and what it achieves."""

    cost_weight: float
    cost: float
    accuracy: float
    cross_entropy: float  # mean per time, in nats


@dataclass(frozen=True, eq=False)
class ExactCurve:
    """Exact policies in order of cost, `(n_points,)` each.

    Every policy was found for `loss` at its cost weight. The points of the optimum are the vertices
    of a frontier: mixing two neighboring policies achieves the points on the line between them.
    """

    cost_weight: FloatArray
    cost: FloatArray
    accuracy: FloatArray
    cross_entropy: FloatArray
    loss: Loss = "error"
    policy: ExactPolicy = "optimum"

    @classmethod
    def of(cls, points: Iterable[CurvePoint], loss: Loss, policy: ExactPolicy) -> ExactCurve:
        """The curve of some points, in any order."""
        ordered = sorted(points, key=lambda p: (p.cost, -p.cost_weight))
        weight, cost, accuracy, entropy = np.array(ordered, np.float64).reshape(-1, 4).T
        return cls(weight, cost, accuracy, entropy, loss, policy)

    def __iter__(self) -> Iterator[CurvePoint]:
        rows = zip(self.cost_weight, self.cost, self.accuracy, self.cross_entropy, strict=True)
        return (CurvePoint(*map(float, row)) for row in rows)

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def points(self) -> FloatArray:
        """`(n_points, 2)` cost and accuracy."""
        return np.stack([self.cost, self.accuracy], axis=1)
