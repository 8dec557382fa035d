"""What has been acquired so far. Predictors and policies see nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort


@dataclass(frozen=True)
class History:
    """Partial observations of `n` subjects (`x_o` and `o`).

    Args:
        values: `(n, L, D)` float32; NaN if nothing was acquired.
        acquired: `(n, L, M)`; the slot was requested and revealed.
        unavailable: `(n, L, M)`; the slot was requested, but nothing had been recorded.
        context: `(n, P)` float32; free, known from the start.
    """

    values: NDArray[np.float32]
    acquired: NDArray[np.bool_]
    unavailable: NDArray[np.bool_]
    context: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def requested(self) -> NDArray[np.bool_]:
        """Everything requested, acquired or unavailable, `(n, L, M)`."""
        return np.asarray(self.acquired | self.unavailable)

    @classmethod
    def empty(cls, catalog: Catalog, context: NDArray[np.float32]) -> History:
        """Nothing acquired yet, for as many subjects as `context` has rows."""
        n, length = len(context), catalog.n_times
        values = np.full((n, length, len(catalog.columns)), np.nan, dtype=np.float32)
        nothing = np.zeros((2, n, length, catalog.n_features), dtype=bool)
        return cls(values, nothing[0], nothing[1], context)

    @classmethod
    def of(cls, cohort: Cohort, requested: NDArray[np.bool_]) -> History:
        """What would be known after requesting these slots, `(n, L, M)` or `(L, M)` booleans."""
        requested = np.broadcast_to(requested, cohort.recorded.shape) & cohort.catalog.open_slots
        acquired = requested & cohort.recorded
        shown = cohort.catalog.expand(acquired)
        return cls(
            values=np.where(shown, cohort.values, np.float32(np.nan)),
            acquired=acquired,
            unavailable=requested & ~cohort.recorded,
            context=cohort.context,
        )

    def subset(self, index: NDArray[Any]) -> History:
        """The subjects at these positions."""
        return History(
            self.values[index], self.acquired[index], self.unavailable[index], self.context[index]
        )

    def up_to(self, time: int) -> History:
        """What was known at slot `time`; everything later is removed."""
        known = np.arange(self.values.shape[1])[:, None] <= time
        return History(
            np.where(known, self.values, np.float32(np.nan)),
            self.acquired & known,
            self.unavailable & known,
            self.context,
        )
