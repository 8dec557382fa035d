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
    catalog: Catalog,
    log: LoadLog,
    *,
    name: str,
    classes: tuple[str, ...],
    slot_times: tuple[float, ...] | None = None,
    time_unit: str = "visit",
) -> Cohort:
    """Place rows on the visit slots; `DataError` if no subject is left.

    Args:
        rows: `subject`, `slot`, `label` (-1 for none), the catalog's columns and context, and
            `group` and `split` if the data set has them. One row per visit that took place, each
            (subject, slot) at most once.
    """
    people = rows.drop_duplicates("subject").set_index("subject")
    if not len(people):
        dropped = "; ".join(map(str, log.drops)) or "nothing; the files have no subjects"
        raise DataError(
            f"'{name}' has no subjects left, read from {', '.join(shown_sources(log.sources))}. "
            f"Left out: {dropped}. `nocta datasets {name}` lists its files and options."
        )
    shape = (len(people), catalog.n_times)
    at = people.index.get_indexer(rows["subject"]), rows["slot"].to_numpy(np.int64)
    values = np.full((*shape, len(catalog.columns)), np.nan, dtype=np.float32)
    values[at] = rows[list(catalog.columns)].to_numpy(np.float32)
    labels = np.full(shape, -1, dtype=np.int64)
    labels[at] = rows["label"].to_numpy(np.int64)
    visits = np.zeros(shape, dtype=bool)
    visits[at] = True
    return Cohort(
        values=values,
        labels=labels,
        visits=visits,
        context=people[list(catalog.context)].to_numpy(np.float32).reshape(len(people), -1),
        subjects=people.index.to_numpy(),
        catalog=catalog,
        classes=classes,
        groups=people["group"].to_numpy() if "group" in people else None,
        name=name,
        slot_times=slot_times,
        time_unit=time_unit,
        fixed_split=people["split"].to_numpy() if "split" in people else None,
    )
