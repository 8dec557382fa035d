"""Changed worlds: a cohort with changes in everything a policy has not acquired yet.

An honest policy cannot tell such a world from the real one before it reaches a change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort

Kind = Literal["value", "future", "label", "availability", "result"]
#: Together they change everything; a pending result counts as a future value.
KINDS: tuple[Kind, ...] = get_args(Kind)[:4]

#: What a leak of each kind depends on, for messages.
CHANGES: dict[Kind, str] = {
    "value": "a value that was never acquired",
    "future": "a value of a later time",
    "label": "a label",
    "availability": "which later values, visits or labels exist",
    "result": "a result that is pending until the visit is over",
}


def perturb(
    cohort: Cohort,
    kinds: Collection[Kind],
    requested: NDArray[np.bool_],
    cut: int,
    rng: np.random.Generator,
) -> Cohort:
    """A world that looks the same up to slot `cut` after these requests.

    `"value"` changes recorded values up to `cut` that were not requested, `"future"` all recorded
    values after it, `"label"` every label, `"availability"` which values, later visits and later
    labels exist, `"result"` recorded values that were requested at the slot after `cut`, which may
    be pending. New values come from the same column, so they stay in its range. `requested`, `(n,
    L, M)`, is that of the whole roll-out.
    """
    later = np.arange(cohort.n_times) > cut
    looked_at = requested & ~later[:, None]
    values, labels, visits = cohort.values.copy(), cohort.labels.copy(), cohort.visits.copy()
    pools = [np.unique(column[~np.isnan(column)]) for column in np.moveaxis(values, 2, 0)]
    if "value" in kinds:
        slots = ~looked_at & ~later[:, None]
        _change(values, cohort.catalog.expand(slots), pools, rng)
    if "future" in kinds:
        slots = np.broadcast_to(later[:, None], requested.shape)
        _change(values, cohort.catalog.expand(slots), pools, rng)
    if "result" in kinds:
        under_way = np.arange(cohort.n_times) == cut + 1
        _change(values, cohort.catalog.expand(requested & under_way[:, None]), pools, rng)
    if "label" in kinds:
        step = rng.integers(1, max(cohort.n_classes, 2), size=labels.shape)
        labels = np.where(labels >= 0, (labels + step) % cohort.n_classes, labels)
    if "availability" in kinds:
        flip = ~looked_at & (rng.random(requested.shape) < 0.5)
        _flip(values, cohort.catalog.expand(flip), pools, rng)
        # A request reveals whether its visit took place.
        visits ^= ~looked_at.any(axis=2) & (rng.random(visits.shape) < 0.5)
        drawn = rng.integers(cohort.n_classes, size=labels.shape)
        other = np.where(labels >= 0, -1, drawn)
        labels = np.where(later & (rng.random(labels.shape) < 0.5), other, labels)
    return replace(cohort, values=values, labels=labels, visits=visits)


def _change(
    values: NDArray[np.float32],
    cells: NDArray[np.bool_],
    pools: list[NDArray[np.float32]],
    rng: np.random.Generator,
) -> None:
    """Replace recorded values, in place, with other values of the same column."""
    for d, pool in enumerate(pools):
        chosen = cells[..., d] & ~np.isnan(values[..., d])
        current = values[..., d][chosen]
        if pool.size < 2:
            values[..., d][chosen] = current + 1
            continue
        step = rng.integers(1, pool.size, size=current.size)
        values[..., d][chosen] = pool[(np.searchsorted(pool, current) + step) % pool.size]


def _flip(
    values: NDArray[np.float32],
    cells: NDArray[np.bool_],
    pools: list[NDArray[np.float32]],
    rng: np.random.Generator,
) -> None:
    """Remove recorded values and fill in missing ones, in place."""
    missing = np.isnan(values)
    values[cells & ~missing] = np.nan
    for d, pool in enumerate(pools):
        new = cells[..., d] & missing[..., d]
        if pool.size:
            values[..., d][new] = rng.choice(pool, size=int(new.sum()))
