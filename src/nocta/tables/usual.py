"""The usual range of every column of a cohort, and values of later tables that are far outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.tables.problems import enumerate_some

#: Lowest and highest usual value of each column.
Ranges = Mapping[str, Sequence[float]]
#: A column with at most this many different values has a range that includes all of them.
_FEW_VALUES = 20
#: Subjects that are looked at; more do not change a range.
_MOST_SUBJECTS = 20_000


def usual_ranges(cohort: Cohort) -> dict[str, list[float]]:
    """The range of 99 % of the values of every column, so that no extreme subject is kept."""
    some = cohort.sample(_MOST_SUBJECTS)
    columns = _columns(some.catalog, some.values, some.context)
    found = {}
    for name, cells in columns.items():
        known = cells[~np.isnan(cells)].astype(float)
        if not known.size:
            continue
        few = np.unique(known).size <= _FEW_VALUES
        low, high = np.quantile(known, [0, 1] if few else [0.005, 0.995])
        found[name] = [float(f"{low:.6g}"), float(f"{high:.6g}")]
    return found


def name_unusual(
    history: History,
    catalog: Catalog,
    ranges: Ranges,
    subjects: Sequence[object],
    n_shown: int = 3,
) -> list[str]:
    """A sentence for each column with values farther outside its range than the range is wide.

    Such a value is often in another unit than in training.
    """
    found = []
    for name, cells in _columns(catalog, history.values, history.context).items():
        if name not in ranges:
            continue
        low, high = ranges[name]
        width = max(high - low, 1e-6)
        far = np.argwhere((cells < low - width) | (cells > high + width))
        if not len(far):
            continue
        places = (f"{cells[tuple(at)]:g} (subject {subjects[at[0]]})" for at in far)
        shown = f": {enumerate_some(places, n_shown)}" if n_shown else ""
        found.append(
            f"{len(far)} value(s) of '{name}' are far outside those seen in training, usually "
            f"{low:g} to {high:g}{shown}. Check the unit."
        )
    return found


def _columns(
    catalog: Catalog, values: NDArray[np.float32], context: NDArray[np.float32]
) -> dict[str, NDArray[np.float32]]:
    free = {name: context[:, p : p + 1] for p, name in enumerate(catalog.context)}
    return {**free, **{name: values[:, :, d] for d, name in enumerate(catalog.columns)}}
