"""Train a predictor on the requests of a policy, mixed with random requests.

A small network under random masks spends its few units on histories that no policy produces. What
a policy requested by slot `k` depends on earlier values only, so replaying it leaks no future.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.core.random_plans import random_requests


class ReplayedRequests:
    """Draws requests for training subjects, for `NeuralPredictor.fit(requests=...)`.

    A `share` of the draws is replayed, among subjects with any roll-out: `subjects`, `(r,)`, are
    the positions of the roll-outs' subjects, and `requested`, `(r, L, M)`, everything the policy
    requested.

    Example:
        >>> asked = np.ones((1, 2, 1), dtype=bool)
        >>> draw = ReplayedRequests(np.array([3]), asked, np.ones((2, 1), dtype=bool), share=1.0)
        >>> bool(draw(np.array([3, 3]), np.random.default_rng(0)).all())
        True
    """

    def __init__(
        self,
        subjects: NDArray[np.int64],
        requested: NDArray[np.bool_],
        open_slots: NDArray[np.bool_],
        share: float = 0.7,
    ) -> None:
        order = np.argsort(subjects, kind="stable")
        self._subjects, self._requested = subjects[order], requested[order]
        self.open_slots, self.share = open_slots, share

    def __call__(self, index: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        asked = random_requests(len(index), self.open_slots, rng)
        low = np.searchsorted(self._subjects, index)
        high = np.searchsorted(self._subjects, index, side="right")
        replayed = np.flatnonzero((low < high) & (rng.uniform(size=len(index)) < self.share))
        pick = rng.integers(low[replayed], high[replayed])
        asked[replayed] = self._requested[pick]
        return asked
