"""A cohort larger than memory: a folder of Parquet parts, read one at a time.

A part holds whole subjects. The folder is surveyed once (subject, visit and label columns only), so
that every part is then read with the same slots and classes. One large file that is sorted by
subject is cut into parts too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import DataError, DataFileMissing
from nocta.tables.columns import class_name, to_numbers, to_text
from nocta.tables.history_table import Absent, HistoryTable, read_history
from nocta.tables.labels import order_classes
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.schema_file import load_schema
from nocta.tables.source import open_source
from nocta.tables.table import Reading, SchemaLike, read_table

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".pq")
TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv")
#: A single file with more rows than this is cut into parts.
ROWS_PER_PART = 200_000


@dataclass(frozen=True)
class Part:
    """Some whole subjects of a large cohort."""

    name: str  # in messages and output files
    path: Path
    rows: tuple[int, int] | None = None  # first row and end, if it is not the whole file

    @property
    def is_text(self) -> bool:
        """Whether it is a text file, which is read as a whole."""
        return self.path.suffix.lower() not in SUFFIXES

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.is_text:
            return int(self.table().num_rows)
        if self.rows is not None:
            return self.rows[1] - self.rows[0]
        with _open(self.path) as file:
            return int(file.metadata.num_rows)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of the part, with all columns or those of `columns` that the file has."""
        from pyarrow import parquet

        if self.is_text:
            return _text_table(self.path, columns)
        with _open(self.path) as file:
            there = file.schema_arrow.names
            wanted = None if columns is None else [c for c in columns if c in there]
            if self.rows is None:
                return parquet.read_table(self.path, columns=wanted, partitioning=None)
            start, stop = self.rows
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop, side="left"))
            found = file.read_row_groups(range(first, last + 1), columns=wanted)
            return found.slice(start - (ends[first] - sizes[first]), stop - start)

    def read(self, schema: Schema, optional: Collection[str] = ()) -> Reading:
        """The records of its subjects; some visits and classes may be absent."""
        with self._named():
            return read_table(self._source(), schema, part=True, optional=optional)

    def read_histories(
        self, schema: SchemaLike, catalog: Catalog, absent: Absent = "refuse"
    ) -> HistoryTable:
        """What has been acquired for its subjects so far; see `read_history`."""
        with self._named():
            return read_history(self._source(), schema, catalog, absent)

    def _source(self) -> Any:
        return self.path if self.rows is None else self.table()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Prefix errors with the name of the part, if it is not a file of its own."""
        try:
            yield
        except DataError as error:
            if self.rows is None:
                raise
            name = f"{self.path.name}, from row {self.rows[0]}"
            raise type(error)(f"{name}: {error}") from None


@dataclass(frozen=True)
class CohortParts:
    """The parts of a large cohort, in order, and their common schema."""

    path: Path  # the folder, or the one file
    parts: tuple[Part, ...]
    n_subjects: NDArray[np.int64]  # (n_parts,)
    schema: Schema  # with the classes and visits of all parts filled in

    @classmethod
    def open(
        cls, path: str | Path, schema: SchemaLike, rows_per_part: int = ROWS_PER_PART
    ) -> CohortParts:
        """Survey a folder of Parquet files, each with whole subjects, or one Parquet file.

        A single file of more than `rows_per_part` rows is cut, if it is sorted by subject. Files
        without rows are left out.
        """
        path = Path(path)
        issues = Issues()
        parsed = load_schema(schema, issues)
        issues.raise_problems(path.name)
        assert parsed is not None
        files = list_files(path)
        found = _Survey(parsed)
        parts = [part for part in (Part(file.stem, file) for file in files) if part.n_rows]
        if not parts:
            raise DataError(f"'{path}' has no rows; give it one row per subject and visit.")
        for part in parts:
            found.add(part)
        found.check_whole(parts)
        sizes = found.n_subjects
        if path.is_file() and not parts[0].is_text:
            parts, sizes = _cut(parts[0], parsed.subject, rows_per_part)
        return cls(path, tuple(parts), np.array(sizes, dtype=np.int64), found.resolved(path))

    def __len__(self) -> int:
        return len(self.parts)

    def cohorts(self, optional: Collection[str] = ()) -> Iterator[Reading]:
        """Read the parts one after the other; see `read_table`."""
        for part in self.parts:
            yield part.read(self.schema, optional)


def list_files(path: Path) -> list[Path]:
    """The Parquet files of a folder by name, or the one Parquet or CSV file itself."""
    if path.is_file() and path.name.lower().endswith((*SUFFIXES, *TEXT_SUFFIXES)):
        return [path]
    if not path.is_dir():
        found = "is not a Parquet or CSV file" if path.exists() else "does not exist"
        raise DataFileMissing(
            f"'{path}' {found}; name a Parquet or CSV file, or a folder of Parquet files."
        )
    files = sorted(file for file in path.iterdir() if _is_part(file))
    if not files:
        raise DataFileMissing(f"'{path}' holds no Parquet file (a name that ends in .parquet).")
    twice = [a.name for a, b in zip(files[1:], files, strict=False) if a.stem == b.stem]
    if twice:
        raise DataError(f"'{path}': two parts are named {enumerate_some(twice)}; rename one.")
    return files


def _is_part(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and file.is_file() and file.name[0] not in "._"


@dataclass
class _Survey:
    """What the parts have in common, found by reading a few columns of each."""

    schema: Schema
    n_subjects: list[int] = field(default_factory=list)
    last_visit: int = 0
    classes: set[str] = field(default_factory=set)
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, part: Part) -> None:
        import pyarrow.compute as pc

        schema = self.schema
        visits = schema.visit if schema.visit and schema.n_visits is None else None
        labels = schema.label if schema.classes is None and schema.bins is None else None
        wanted = [c for c in (schema.subject, visits, labels) if c]
        table = part.table(wanted)
        if schema.subject not in table.column_names:
            raise DataError(
                f"{part.path.name} has no column '{schema.subject}', the subject column of the "
                f"schema."
            )
        distinct = {c: pc.unique(table[c]) for c in wanted if c in table.column_names}
        ids = _texts(distinct[schema.subject])
        self.n_subjects.append(len(ids))
        self.hashes.append(_hash(ids))
        if visits in distinct:
            slots = to_numbers(_series(distinct[visits])).values
            last = np.nanmax(slots, initial=0) - schema.first_visit
            self.last_visit = max(self.last_visit, int(last))
        if labels in distinct:
            self.classes |= {class_name(text) for text in _texts(distinct[labels])}

    def check_whole(self, parts: Sequence[Part]) -> None:
        """Raise if a subject is in two parts. Equal hashes are checked against the identifiers."""
        twice = _occurring_twice(self.hashes)
        shared = [own[np.isin(own, twice)] for own in self.hashes] if twice.size else []
        owners: dict[int, list[int]] = {}
        for i, own in enumerate(shared):
            for value in own.tolist():
                owners.setdefault(value, []).append(i)
        pairs = {pair for found in owners.values() for pair in pairwise(found)}
        torn = [
            f"subject {name} ({parts[a].path.name} and {parts[b].path.name})"
            for a, b in sorted(pairs)
            if a != b
            for name in sorted(self._ids(parts[a]) & self._ids(parts[b]))
        ]
        if torn:
            raise DataError(
                f"Each subject must be in one part, but these are in two: {enumerate_some(torn)}. "
                f"Write all rows of a subject into one file."
            )

    def _ids(self, part: Part) -> set[str]:
        import pyarrow.compute as pc

        column = part.table([self.schema.subject])[self.schema.subject]
        return set(_texts(pc.unique(column)))

    def resolved(self, path: Path) -> Schema:
        """The schema with the name, classes and number of visits of the whole cohort."""
        update: dict[str, Any] = {"name": self.schema.name or path.stem}
        if self.schema.classes is None and self.classes:
            update["classes"] = order_classes(self.classes)
        if self.schema.n_visits is None and not self.schema.grid:
            update["n_visits"] = self.last_visit + 1
        return self.schema.model_copy(update=update)


def _cut(whole: Part, subject: str, most: int) -> tuple[list[Part], list[int]]:
    """Cut a file into parts of about `most` rows, each starting with a new subject.

    A file in which the rows of a subject are not consecutive stays whole.
    """
    codes = whole.table([subject])[subject].combine_chunks().dictionary_encode().indices
    rows = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1))
    n_subjects = int(rows.max(initial=-1)) + 1
    if len(rows) <= most or len(begins) != n_subjects:
        return [whole], [n_subjects]
    wanted = np.arange(0, len(rows), most)
    starts = np.unique(begins[np.searchsorted(begins, wanted, side="right") - 1])
    stops = [*starts[1:].tolist(), len(rows)]
    sizes = np.diff([*np.searchsorted(begins, starts), n_subjects])
    parts = [
        Part(f"{whole.name}-{i:05d}", whole.path, (int(start), int(stop)))
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]
    return parts, sizes.tolist()


def _text_table(path: Path, columns: Sequence[str] | None) -> pa.Table:
    issues = Issues()
    source = open_source(path, issues)
    issues.raise_problems(path.name)
    assert source is not None
    wanted = source.columns if columns is None else [c for c in columns if c in source.columns]
    found: pa.Table = source.frame.select(wanted).to_native()
    return found


def _series(values: Any) -> Any:
    import narwhals as nw
    import pyarrow as pa

    return nw.from_native(pa.chunked_array([values]), series_only=True)


def _texts(values: Any) -> list[str]:
    return [text for text in to_text(_series(values)) if text is not None]


def _hash(ids: Sequence[str]) -> NDArray[np.uint64]:
    from pandas.util import hash_array

    return np.asarray(hash_array(np.array(ids, dtype=object), categorize=False))


def _occurring_twice(hashes: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Values that occur more than once; sorts one copy in place to save memory."""
    every = np.concatenate(hashes)
    every.sort()
    return np.unique(every[:-1][every[1:] == every[:-1]])


def _open(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"'{path}' cannot be read as Parquet ({str(error).splitlines()[0]}). Write it again."
        ) from None
