"""Turns rows (one per subject and slot) into a cohort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataError
from nocta.datasets._load_log import LoadLog, shown_sources

if TYPE_CHECKING:
    import pandas as pd


def to_cohort(
    rows: pd.DataFrame,
    people: pd.DataFrame,
    catalog: Catalog,
    log: LoadLog,
    *,
    name: str,
    classes: tuple[str, ...],
    slot_times: tuple[float, ...] | None = None,
    time_unit: str = "visit",
) -> Cohort:
    """Place rows on the visit slots.

    Args:
        rows: `subject`, `slot`, `label` (-1 for none) and the catalog's columns, one row per
            visit that took place; each (subject, slot) at most once.
        people: One row per subject, in the order of the cohort, indexed by identifier; has the
            context columns, and `group` and `split` if the data set has them.
        catalog: What can be acquired.
        log: Explains an empty cohort.
        name, classes, slot_times, time_unit: See `Cohort`.

    Raises:
        DataError: No subject is left.
    """
    if not len(people):
        raise _no_subjects(name, log)
    n, shape = len(people), (len(people), catalog.n_times)
    at = people.index.get_indexer(rows["subject"]), rows["slot"].to_numpy(np.int64)
    values = np.full((*shape, len(catalog.columns)), np.nan, dtype=np.float32)
    values[at] = rows[list(catalog.columns)].to_numpy(np.float32)
    labels = np.full(shape, -1, dtype=np.int64)
    labels[at] = rows["label"].to_numpy(np.int64)
    visits = np.zeros(shape, dtype=bool)
    visits[at] = True
    context = people[list(catalog.context)].to_numpy(np.float32).reshape(n, -1)
    return Cohort(
        values=values,
        labels=labels,
        visits=visits,
        context=context,
        subjects=people.index.to_numpy(),
        catalog=catalog,
        classes=classes,
        groups=people["group"].to_numpy() if "group" in people else None,
        name=name,
        slot_times=slot_times,
        time_unit=time_unit,
        fixed_split=people["split"].to_numpy() if "split" in people else None,
    )


def _no_subjects(name: str, log: LoadLog) -> DataError:
    dropped = "; ".join(map(str, log.drops)) or "nothing; the files have no subjects"
    return DataError(
        f"'{name}' has no subjects left, read from {', '.join(shown_sources(log.sources))}. "
        f"Left out: {dropped}. `nocta datasets {name}` lists its files and options."
    )
