"""A cohort whose arrays are memory-mapped files, so that only the rows in use are read.

It is used like any other `Cohort`; a large subset, such as the training subjects, is on disk too.
The scratch files are in `TMPDIR`, have no name, and disappear with the cohort.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nocta.core.cohort import Cohort
from nocta.tables.parts.parts import CohortParts
from nocta.tables.problems import add_up
from nocta.tables.table import Reading, SchemaLike


@dataclass(frozen=True)
class StorageLimits:
    """How much of a stored cohort may be in memory."""

    bytes_in_memory: int = 1 << 24  # a subset's array of up to this size is held in memory
    rows_per_copy: int = 1 << 15  # rows copied at a time into a larger one


@dataclass(frozen=True, repr=False, eq=False)
class StoredCohort(Cohort):
    """A cohort on disk; see the module."""

    limits: StorageLimits = StorageLimits()

    def _take(self, array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        if rows.size * array[:1].nbytes <= self.limits.bytes_in_memory:
            return np.asarray(array[rows])
        out = mapped_array((len(rows), *array.shape[1:]), array.dtype)
        step = self.limits.rows_per_copy
        for start in range(0, len(rows), step):
            out[start : start + step] = array[rows[start : start + step]]
        return out


def mapped_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros in a scratch file without a name."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    with TemporaryFile(prefix="nocta-") as file:
        return np.memmap(file, dtype, "w+", shape=shape).view(np.ndarray)


def gather_parts(path: str | Path, schema: SchemaLike, optional: Collection[str] = ()) -> Reading:
    """Read every subject of a folder of Parquet parts, part by part, into arrays on disk.

    Subjects are in the order of the parts; the cohort equals that of one table with all rows.
    Columns of `optional` roles may be absent; a column that some parts lack is left out.
    """
    parts = CohortParts.open(path, schema)
    n, filled = int(parts.n_subjects.sum()), 0
    arrays: dict[str, NDArray[Any]] = {}
    names: dict[str, list[NDArray[Any]]] = {"subjects": [], "groups": [], "fixed_split": []}
    notes: list[str] = []
    cohort = None
    for reading in parts.cohorts(optional):
        cohort = reading.cohort
        notes += reading.notes
        rows = slice(filled, filled + len(cohort))
        filled += len(cohort)
        for name in ("values", "labels", "visits", "context"):
            own = getattr(cohort, name)
            if name not in arrays:
                arrays[name] = mapped_array((n, *own.shape[1:]), own.dtype)
            arrays[name][rows] = own
        for name, found in names.items():
            if getattr(cohort, name) is not None:
                found.append(getattr(cohort, name))
    assert cohort is not None  # `open` refuses a folder without parts
    merged = {name: _merge(found) for name, found in names.items() if len(found) == len(parts)}
    absent = dict.fromkeys(names)
    fields = {**_fields(cohort), **absent, **arrays, **merged}
    return Reading(StoredCohort(**fields), add_up(notes))


def store(cohort: Cohort, limits: StorageLimits | None = None) -> StoredCohort:
    """The same cohort with its arrays on disk."""
    arrays = {}
    for name in ("values", "labels", "visits", "context"):
        own = getattr(cohort, name)
        arrays[name] = mapped_array(own.shape, own.dtype)
        arrays[name][...] = own
    return StoredCohort(**{**_fields(cohort), **arrays}, limits=limits or StorageLimits())


def _fields(cohort: Cohort) -> dict[str, Any]:
    return {name: getattr(cohort, name) for name in cohort.__dataclass_fields__}


def _merge(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Identifiers of all parts: integers if they are in every part, else text."""
    if any(piece.dtype.kind != "i" for piece in pieces):
        pieces = [piece.astype(str) for piece in pieces]
    return np.concatenate(pieces)
