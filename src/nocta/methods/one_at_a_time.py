"""For policies that acquire one slot at a time: what is open at the current visit or later.

Such a policy adds to the visit it is at (`Policy.acts_within_visit`), so the fees of that visit
may be due already, and a price is what a slot adds to the bill.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.policy import Decision, Observation

_TOLERANCE = 1e-9


def slot_prices(catalog: Catalog, acquired: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What each single slot would add to the bill after `acquired`, both `(n, L, M)`.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> catalog = tiny_cohort(1).catalog  # blood costs 1, and 0.5 for the draw; a scan 3
        >>> slot_prices(catalog, np.zeros((1, 4, 2), dtype=bool))[0, 0].tolist()
        [1.5, 3.0]
    """
    prices = np.broadcast_to(catalog.costs, acquired.shape).copy()
    for members, fee in zip(catalog.group_members, catalog.group_fee_values, strict=True):
        unpaid = ~acquired[..., members].any(axis=-1, keepdims=True)
        prices += fee * (unpaid & members)
    if catalog.visit_fee:
        prices += catalog.visit_fee * ~acquired.any(axis=-1, keepdims=True)
    return prices


def affordable_slots(observation: Observation) -> NDArray[np.bool_]:
    """Slots that are open and within the budget, `(n, L, M)`; what is pending counts as paid."""
    prices = slot_prices(observation.catalog, observation.committed)
    left = observation.remaining[:, None, None] + _TOLERANCE
    return np.asarray(observation.open_slots & (prices <= left))


def acquire_slot(slot: NDArray[np.int64], observation: Observation) -> Decision:
    """Acquire one slot each, by its position in `(L, M)`; a negative position stops, `(n,)`.

    If results are pending and the slot is not of the current visit, the visit is ended first, so
    that nobody leaves or stops before the results are seen.
    """
    width = observation.catalog.n_features
    time, feature = np.divmod(slot, width)
    stop = slot < 0
    ends = observation.waiting & (stop | (time != observation.time))
    features = (np.arange(width) == feature[:, None]) & ~(stop | ends)[:, None]
    where = np.where(stop, Decision.STOP, time)
    return Decision(np.where(ends, observation.time, where), features)
