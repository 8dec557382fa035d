"""Splits by subject: groups stay together, and classes stay balanced if possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError, DataError


def split_subjects(
    labels: NDArray[np.int64], groups: NDArray[Any], fractions: Sequence[float], seed: int
) -> list[NDArray[np.int64]]:
    """Positions of each part, `len(fractions)` arrays that cover every subject once.

    A group, `(n,)`, stays in one part. Labels, `(n, L)`, only stratify.
    """
    sizes = np.asarray(fractions, dtype=float)
    if sizes.size < 2 or (sizes <= 0).any() or abs(sizes.sum() - 1) > 1e-6:
        raise ConfigError(f"Split fractions {tuple(fractions)} must be positive and sum to 1.")
    _, unit = np.unique(groups, return_inverse=True)
    n_units = int(unit.max()) + 1 if unit.size else 0
    if n_units < sizes.size:
        whom = "groups" if n_units < len(groups) else "subjects"
        raise DataError(
            f"{n_units} {whom} cannot be split into {sizes.size} parts. Each part needs at least "
            f"one, and a few dozen to be useful: add {whom} to the data."
        )
    strata = _strata(labels, unit, n_units)
    remaining = np.arange(n_units)
    parts = []
    left = 1.0
    for i, size in enumerate(sizes[:-1]):
        # Leave at least one unit for each later part.
        most = remaining.size - (sizes.size - 1 - i)
        n_take = int(np.clip(round(size / left * remaining.size), 1, most))
        taken, remaining = _take(remaining, n_take, strata, seed + 7919 * i)
        parts.append(taken)
        left -= size
    parts.append(remaining)
    return [np.flatnonzero(np.isin(unit, part)) for part in parts]


def _take(
    units: NDArray[np.int64], n_take: int, strata: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from sklearn.model_selection import train_test_split  # takes a second to import

    kinds, counts = np.unique(strata[units], return_counts=True)
    can = counts.min() >= 2 and kinds.size <= min(n_take, units.size - n_take)
    taken, rest = train_test_split(
        units, train_size=n_take, random_state=seed, stratify=strata[units] if can else None
    )
    return np.sort(taken), np.sort(rest)


def _strata(labels: NDArray[np.int64], unit: NDArray[np.int64], n_units: int) -> NDArray[np.int64]:
    """One stratum per unit: the largest class index seen; rare classes are merged."""
    top = labels.max(axis=1) if labels.size else np.full(len(labels), -1)
    out = np.full(n_units, -1, dtype=np.int64)
    np.maximum.at(out, unit, top)
    kinds, counts = np.unique(out, return_counts=True)
    rare = kinds[counts < 10]
    if rare.size and rare.size < kinds.size:
        common = kinds[counts >= 10]
        for kind in rare:
            out[out == kind] = common[np.abs(common - kind).argmin()]
    return out
