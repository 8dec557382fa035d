"""A cohort whose arrays lie on disk and are mapped into memory: only what is looked at is read.

It is a `Cohort` like any other. Training cuts its minibatches from it, and a large part of it,
such as the training subjects, is on disk again. Scratch files go where `TMPDIR` says, have no
name, and are gone when the cohort is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nocta.core.cohort import Cohort
from nocta.tables.parts.parts import CohortParts
from nocta.tables.problems import add_up
from nocta.tables.table import Reading, SchemaLike

#: Arrays up to so many bytes are held in memory.
IN_MEMORY = 1 << 24
_ROWS = 1 << 15


class StoredCohort(Cohort):
    """A cohort on disk; see the module.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> cohort = store(tiny_cohort(6))
        >>> type(cohort).__name__, len(cohort.subset([0, 2]))
        ('StoredCohort', 2)
    """

    def _take(self, array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        if rows.size * array[:1].nbytes <= IN_MEMORY:
            return np.asarray(array[rows])
        out = mapped_array((len(rows), *array.shape[1:]), array.dtype)
        for start in range(0, len(rows), _ROWS):
            out[start : start + _ROWS] = array[rows[start : start + _ROWS]]
        return out


def mapped_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array of zeros in a scratch file without a name."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    with TemporaryFile(prefix="nocta-") as file:
        return np.memmap(file, dtype, "w+", shape=shape).view(np.ndarray)


def gather_parts(path: str | Path, schema: SchemaLike, optional: Collection[str] = ()) -> Reading:
    """Every subject of a folder of Parquet parts, read part by part and kept on disk.

    Subjects come in the order of the parts; the result equals that of reading one table with
    the same rows.

    Args:
        path: The folder.
        schema: What the columns mean.
        optional: Roles whose columns may be absent; what not every part has is left out.
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
    assert cohort is not None  # a folder without parts is an error
    merged = {name: _merge(found) for name, found in names.items() if len(found) == len(parts)}
    nobody = dict.fromkeys(names)
    fields = {**_fields(cohort), **nobody, **arrays, **merged}
    return Reading(StoredCohort(**fields), add_up(notes))


def store(cohort: Cohort) -> StoredCohort:
    """The same cohort with its arrays on disk."""
    arrays = {}
    for name in ("values", "labels", "visits", "context"):
        own = getattr(cohort, name)
        arrays[name] = mapped_array(own.shape, own.dtype)
        arrays[name][...] = own
    return StoredCohort(**{**_fields(cohort), **arrays})


def _fields(cohort: Cohort) -> dict[str, Any]:
    return {name: getattr(cohort, name) for name in cohort.__dataclass_fields__}


def _merge(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Identifiers of all parts: numbers where they are everywhere, else text."""
    if any(piece.dtype.kind != "i" for piece in pieces):
        pieces = [piece.astype(str) for piece in pieces]
    return np.concatenate(pieces)
