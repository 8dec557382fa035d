"""For policies that acquire one slot at a time: what is open at the current visit or later.

Such a policy may add to the visit it is at (`Policy.acts_within_visit`), so the fees of that
visit may have been paid already, and a price is what a slot adds to the bill.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nocta.cohort.catalog import Catalog
from nocta.policies.base import Decision, Observation

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


def affordable_slots(observation: Observation, within_visit: bool = True) -> NDArray[np.bool_]:
    """Slots of the current visit or later that are open and within the budget, `(n, L, M)`.

    Args:
        observation: What is known.
        within_visit: Whether the current visit is still open; otherwise later ones only.
    """
    catalog, history = observation.catalog, observation.history
    out = observation.open_slots
    if within_visit:
        now = np.arange(catalog.n_times)[None, :, None] == observation.time[:, None, None]
        here = now & catalog.open_slots & ~history.requested
        out = out | (here if observation.available is None else here & observation.available)
    left = observation.remaining[:, None, None] + _TOLERANCE
    return np.asarray(out & (slot_prices(catalog, history.acquired) <= left))


def acquire_slot(slot: NDArray[np.int64], catalog: Catalog) -> Decision:
    """Acquire one slot each, by its position in `(L, M)`; a negative position stops, `(n,)`."""
    time, feature = np.divmod(slot, catalog.n_features)
    stop = slot < 0
    features = np.arange(catalog.n_features) == feature[:, None]
    return Decision(np.where(stop, Decision.STOP, time), features & ~stop[:, None])
