"""Opens a table: a pandas, polars or pyarrow frame, or a CSV or Parquet file.

The result is a narwhals frame, so that all other modules treat every kind alike.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from nocta.tables.notation import Decimal
from nocta.tables.problems import Issues, Unreadable
from nocta.tables.text_file import read_text_table, report_duplicates

#: Cells that mean "not recorded", whatever their case, unless the schema lists them as a value.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "."})
#: Texts of a column and how often each occurs.
Texts = Mapping[str, int]


@dataclass(frozen=True)
class Source:
    """A readable table."""

    name: str  # in messages
    frame: nw.DataFrame[Any]
    lines: NDArray[np.int64] | None = None  # line of each row; only for text files
    positions: NDArray[np.int64] | None = None  # of each row from 0, if some were left out
    subjects: Sequence[str | None] = ()  # the subject of each row, once known
    delimiter: str = ","  # of a text file
    texts: Mapping[str, Texts] = field(default_factory=dict)  # of each column that holds text
    decimal: Decimal = "."  # how numbers are written in text

    def place(self, row: int) -> str:
        """The place of a row: its line in a text file, else its position from 0."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        return f"row {row if self.positions is None else self.positions[row]}"

    def place_of(self, row: int) -> str:
        """The place of a row, and its subject."""
        subject = self.subjects[row] if len(self.subjects) else None
        return self.place(row) + ("" if subject is None else f", subject {subject}")

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def missing_words(self, column: str) -> dict[str, int]:
        """Words of a column that mean "not recorded", and how often each occurs."""
        texts = self.texts.get(column, {})
        return {text: n for text, n in texts.items() if text and text.lower() in MISSING}


def open_source(table: Any, issues: Issues) -> Source | None:
    """Open a frame, or a CSV (`.csv`, `.tsv`, `.csv.gz`) or Parquet file; text stays text.

    If it cannot be opened, the reason is added to the issues.
    """
    try:
        if isinstance(table, str | Path):
            source = _open_file(Path(table), issues)
        else:
            source = _open_frame(table, issues)
    except Unreadable as problem:
        issues.add(*problem.args)
        return None
    return replace(source, texts=_texts_of(source.frame))


def _texts_of(frame: nw.DataFrame[Any]) -> dict[str, Texts]:
    kinds = (nw.String, nw.Object, nw.Categorical, nw.Enum)
    return {
        name: Counter(cell.strip() for cell in frame[name].to_list() if isinstance(cell, str))
        for name in frame.columns
        if frame[name].dtype in kinds
    }


def drop_repeats(source: Source, keys: Collection[str], issues: Issues) -> Source:
    """Leave out rows that equal an earlier row cell by cell; `keys` tell most rows apart."""
    try:
        alike = source.frame.select(list(dict.fromkeys(keys))).is_duplicated().to_numpy()
    except TypeError:  # cells without an order or a hash, such as lists
        return source
    seen: set[str] = set()
    repeats = []
    for row in np.flatnonzero(alike).tolist():
        cells = repr(source.frame.row(row))
        if cells in seen:
            repeats.append(row)
        seen.add(cells)
    if not repeats:
        return source
    issues.note(
        f"{len(repeats)} row(s) of {source.name} repeat an earlier row exactly and are left out."
    )
    kept = np.delete(np.arange(len(source)), repeats)
    frame = source.frame[kept.tolist()]
    lines = None if source.lines is None else source.lines[kept]
    return replace(source, frame=frame, lines=lines, positions=kept, texts=_texts_of(frame))


def _open_frame(table: Any, issues: Issues) -> Source:
    name = "the table"
    if hasattr(table, "iloc"):  # pandas: names may repeat, and may not be text
        first = report_duplicates([str(c) for c in table.columns], name, issues)
        table = table.iloc[:, first].rename(columns=str)
    elif hasattr(table, "column_names"):  # pyarrow
        table = table.select(report_duplicates(table.column_names, name, issues))
    try:
        frame = nw.from_native(table)
    except TypeError:
        remedy = "Pass a pandas, polars or pyarrow table, or the path of a CSV or Parquet file."
        raise Unreadable(name, f"it is a {type(table).__name__}.", remedy) from None
    return Source(name, frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


def _open_file(path: Path, issues: Issues) -> Source:
    if path.is_dir():
        raise Unreadable(str(path), "it is a folder.", "Name one file in it.")
    if not path.is_file():
        raise Unreadable(str(path), "there is no such file.", "Check the path.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(str(path), f"it cannot be read ({error.strerror}).") from None
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return _open_parquet(path.name, data, issues)
    if suffixes[-1:] == [".gz"]:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError):
            found = "it is not a complete gzip file."
            raise Unreadable(path.name, found, "Compress it again.") from None
    return _open_text(path.name, data, "\t" if ".tsv" in suffixes else ",", issues)


def _open_parquet(name: str, data: bytes, issues: Issues) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(BytesIO(data))
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = "is cut short or damaged" if data[:4] == b"PAR1" else "is not Parquet"
        what = f"it is named Parquet but {found} ({str(error).splitlines()[0]})."
        raise Unreadable(name, what, "Write it again, or correct its file extension.") from None
    nested = [f.name for f in table.schema if pa.types.is_nested(f.type)]
    if nested:
        found = f"column '{nested[0]}' holds lists or structures."
        raise Unreadable(name, found, "Write one number or text per cell.")
    first = report_duplicates(table.column_names, name, issues)
    return Source(name, nw.from_native(table.select(first), eager_only=True))


def _open_text(name: str, data: bytes, usual: str, issues: Issues) -> Source:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = read_text_table(name, data, usual, issues)
    words = pa.array(sorted(MISSING))
    blank = np.ones(found.table.num_rows, dtype=bool)
    for cells in found.table.columns:
        lower = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        blank &= pc.is_in(lower, value_set=words).to_numpy()
    table, lines = found.table.filter(~blank), found.lines[~blank]
    return Source(name, nw.from_native(table, eager_only=True), lines, delimiter=found.delimiter)
