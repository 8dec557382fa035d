"""Judges from the outside, without `Rules`, whether acquisitions keep to constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.constraints import Constraints
from nocta.core.history import History


def broken(constraints: Constraints, catalog: Catalog, found: History) -> list[str]:
    """Which constraints a roll-out breaks."""
    place = {name: m for m, name in enumerate(catalog.names)}
    asked = {name: found.requested[:, :, m] for name, m in place.items()}
    acquired = {name: found.acquired[:, :, m] for name, m in place.items()}
    n_visits = found.acquired.any(axis=2).sum(axis=1)
    checks = {
        "never": any(asked[k][:, _at(v)].any() for k, v in constraints.never.items()),
        "at_most": any((acquired[k].sum(axis=1) > n).any() for k, n in constraints.at_most.items()),
        "apart": any(
            (np.diff(np.flatnonzero(row)) < n).any()
            for k, n in constraints.apart.items()
            for row in acquired[k]
        ),
        "visits": bool((n_visits > (constraints.max_visits or 99)).any()),
        "together": any(
            (asked[a] != asked[b]).any()
            for group in constraints.together
            for a in group
            for b in group
        ),
        "after": any(
            (asked[k] & (acquired[y].cumsum(axis=1) - acquired[y] == 0)).any()
            for k, earlier in constraints.after.items()
            for y in earlier
        ),
        # Something unavailable can stand in the way of what has to come after it.
        "always": not constraints.after
        and any((~asked[k][:, _at(v)]).any() for k, v in constraints.always.items()),
    }
    return [name for name, wrong in checks.items() if wrong]


def _at(visits: Sequence[int] | None) -> Any:
    return slice(None) if visits is None else list(visits)
