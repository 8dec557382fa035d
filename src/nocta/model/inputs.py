"""What users give a model: cohorts to fit on and act on, a table of one subject to decide for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.tables.history_table import HistoryTable, read_history
from nocta.tables.usual import name_unusual

if TYPE_CHECKING:
    from nocta.model.nocta import NOCTA

log = logging.getLogger(__name__)


def require_cohort(found: Any, call: str, role: str) -> None:
    """Raise an error that says how a table becomes a cohort, if this is not one."""
    if isinstance(found, Cohort):
        return
    raise ConfigError(
        f"{call}: {role} is a {type(found).__name__}, not a Cohort. Read the table with "
        f"`cohort = nocta.Cohort.from_table(table, 'schema.toml')`; the schema, which `nocta init` "
        f"drafts, names the label. Then `train, val, test = cohort.split()`, "
        f"`model.fit(train, val)` and `model.rollout(test)`. To decide for one subject of a table, "
        f"use `model.decide(table, subject=...)`."
    )


def one_subject(model: NOCTA, table: Any, subject: object | None) -> tuple[History, int]:
    """The history of one subject of a table, and the slot of the last visit."""
    if isinstance(table, Cohort):
        raise ConfigError(
            "decide takes what was acquired so far: a History, or a table with one row per visit. "
            "`model.rollout(cohort)` acts on a whole cohort."
        )
    name = str(table) if isinstance(table, str | Path) else "The table"
    found = read_history(table, model.schema_, model.catalog_)
    row = found.row_of(subject, name)
    found.check_planned(row)
    for note in (*found.notes, *remarks(model, found, row)):
        log.warning(note)
    return found.history.subset(np.array([row])), int(found.time[row])


def remarks(model: NOCTA, table: HistoryTable, row: int | None = None) -> list[str]:
    """Values of a subject, or of all, that are far outside those seen in training."""
    rows = np.arange(len(table)) if row is None else np.array([row])
    ranges = getattr(model, "ranges_", {})  # a model of an older version has none
    names = [str(name) for name in table.subjects[rows]]
    history, n_shown = table.history.subset(rows), 0 if row is None else 3
    return name_unusual(history, model.catalog_, ranges, names, n_shown)
