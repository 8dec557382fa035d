"""Opens a table: a pandas, polars or pyarrow frame, or a CSV or Parquet file.

The result is a narwhals frame, so that all other modules treat every kind alike.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from nocta.tables.problems import Issues, enumerate_some

#: Cells that mean "not recorded", whatever their case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "."})
_NULLS = sorted({v for m in MISSING for v in (m, m.upper(), m.title())} | {"NaN", "<NA>"})
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_SIGNATURES = (
    (b"PAR1", "a Parquet file", "Name it .parquet"),
    (b"PK\x03\x04", "an Excel workbook or zip archive", "Export the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Export the sheet as CSV"),
    (b"\x1f\x8b", "a gzip file", "Name it .csv.gz"),
    (b"%PDF", "a PDF document", "Get the table itself as CSV or Parquet"),
    (b"<!doctype", "a web page", "Log in and download the file itself"),
    (b"<html", "a web page", "Log in and download the file itself"),
    (b"{", "JSON", "Convert it to CSV or Parquet"),
)


@dataclass(frozen=True)
class Source:
    """A readable table."""

    name: str  # in messages
    frame: nw.DataFrame[Any]
    lines: NDArray[np.int64] | None = None  # line of each row; only for text files
    subjects: Sequence[str | None] = ()  # the subject of each row, once known

    def place(self, row: int) -> str:
        """The place of a row: its line in a text file, else its position from 0."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"

    def place_of(self, row: int) -> str:
        """The place of a row, and its subject."""
        subject = self.subjects[row] if len(self.subjects) else None
        return self.place(row) + ("" if subject is None else f", subject {subject}")

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)


def open_source(table: Any, issues: Issues, text: Collection[str] = ()) -> Source | None:
    """Open a frame, or a CSV (`.csv`, `.tsv`, `.csv.gz`) or Parquet file.

    If it cannot be opened, the reason is added to the issues. The columns in `text` are read as
    text, so that `007` stays `007`.
    """
    try:
        if isinstance(table, str | Path):
            return _open_file(Path(table), issues, text)
        return _open_frame(table, issues)
    except _Unreadable as problem:
        issues.add(*problem.args)
        return None


class _Unreadable(Exception):
    """A table that cannot be opened; its arguments are those of `Issues.add`."""


def _open_frame(table: Any, issues: Issues) -> Source:
    name = "the table"
    if hasattr(table, "iloc"):  # pandas: names may repeat, and may not be text
        first = _report_duplicates([str(c) for c in table.columns], name, issues)
        table = table.iloc[:, first].rename(columns=str)
    elif hasattr(table, "column_names"):  # pyarrow
        table = table.select(_report_duplicates(table.column_names, name, issues))
    try:
        frame = nw.from_native(table)
    except TypeError:
        remedy = "Pass a pandas, polars or pyarrow table, or the path of a CSV or Parquet file."
        raise _Unreadable(name, f"it is a {type(table).__name__}.", remedy) from None
    return Source(name, frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


def _open_file(path: Path, issues: Issues, text: Collection[str]) -> Source:
    if path.is_dir():
        raise _Unreadable(str(path), "it is a folder.", "Name one file in it.")
    if not path.is_file():
        raise _Unreadable(str(path), "there is no such file.", "Check the path.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _Unreadable(str(path), f"it cannot be read ({error.strerror}).") from None
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return _open_parquet(path.name, data, issues)
    if suffixes[-1:] == [".gz"]:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError):
            found = "it is not a complete gzip file."
            raise _Unreadable(path.name, found, "Compress it again.") from None
    _check_text(path.name, data)
    return _open_csv(path.name, data, "\t" if ".tsv" in suffixes else ",", issues, text)


def _open_parquet(name: str, data: bytes, issues: Issues) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(BytesIO(data))
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = "is cut short or damaged" if data[:4] == b"PAR1" else "is not Parquet"
        what = f"it is named Parquet but {found} ({str(error).splitlines()[0]})."
        raise _Unreadable(name, what, "Write it again, or correct its file extension.") from None
    nested = [f.name for f in table.schema if pa.types.is_nested(f.type)]
    if nested:
        found = f"column '{nested[0]}' holds lists or structures."
        raise _Unreadable(name, found, "Write one number or text per cell.")
    first = _report_duplicates(table.column_names, name, issues)
    return Source(name, nw.from_native(table.select(first), eager_only=True))


def _check_text(name: str, data: bytes) -> None:
    """Raise if the bytes do not look like a delimited text file."""
    head = data[:64].lstrip().lower()
    for signature, kind, remedy in _SIGNATURES:
        if head.startswith(signature.lower()):
            raise _Unreadable(name, f"it is named CSV but is {kind}.", f"{remedy}.")
    if b"\x00" in data:
        found = "it is named CSV but is binary."
        raise _Unreadable(name, found, "Export it as CSV (UTF-8) or Parquet.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte {data[error.start]:#04x} is not UTF-8 text."
        raise _Unreadable(
            f"{name}, line {line}", found, "Save the file with UTF-8 encoding."
        ) from None


def _open_csv(
    name: str, data: bytes, delimiter: str, issues: Issues, text: Collection[str]
) -> Source:
    header = _header(data, delimiter)
    if not any(header):
        remedy = "Give it a line of column names, then one line per visit."
        raise _Unreadable(name, "it is empty.", remedy)
    other = {d: len(_header(data, d)) for d in (",", ";", "\t", "|") if d != delimiter}
    likely = max(other, key=other.__getitem__)
    if len(header) == 1 and other[likely] > 1:
        found, expected = ("tab" if d == "\t" else d for d in (likely, delimiter))
        raise _Unreadable(
            f"{name}, line 1",
            f"the columns are separated by '{found}', not by '{expected}'.",
            "Save it with commas (or with tabs, as .tsv), or read it in Python and pass the frame.",
        )
    return _parse_csv(name, data, delimiter, header, issues, text)


def _header(data: bytes, delimiter: str) -> list[str]:
    first_line = _LINE_END.split(data.removeprefix(_BOM), maxsplit=1)[0].decode("utf-8")
    return [c.strip() for c in next(csv.reader([first_line], delimiter=delimiter), [])]


def _parse_csv(
    name: str, data: bytes, delimiter: str, header: list[str], issues: Issues, text: Collection[str]
) -> Source:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    uneven: list[tuple[int, int]] = []

    def skip(row: Any) -> str:
        uneven.append((row.number, row.actual_columns))
        return "skip"

    first = _report_duplicates(header, f"{name}, line 1", issues)
    unique = [c if i in first else f"{c}\x00{i}" for i, c in enumerate(header)]
    body = b"".join(_LINE_END.split(data.removeprefix(_BOM), maxsplit=1)[1:])
    if not body.strip():
        return Source(name, nw.from_native(pa.table({c: [] for c in unique}), eager_only=True))
    try:
        table = arrow_csv.read_csv(
            BytesIO(body),
            # One block: types are then decided over the whole column.
            arrow_csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=unique),
            arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            arrow_csv.ConvertOptions(
                null_values=_NULLS,
                strings_can_be_null=True,
                column_types={c: pa.string() for c in text if c in unique},
            ),
        )
    except pa.ArrowException as error:
        what = f"it cannot be read as CSV ({error})."
        raise _Unreadable(name, what, "Check quotes and line ends.") from None
    if uneven:
        places = [f"line {number + 1} has {found}" for number, found in uneven]
        issues.add(
            name,
            f"the header has {len(header)} columns, but {enumerate_some(places)}.",
            "Quote cells that contain a comma, and keep the commas of empty cells.",
        )
    n_lines = table.num_rows + len(uneven)
    skipped = {number + 1 for number, _ in uneven}
    lines = np.array([i for i in range(2, n_lines + 2) if i not in skipped], dtype=np.int64)
    table = table.select(first)
    blank = np.ones(len(lines), dtype=bool)
    for cells in table.columns:
        blank &= cells.is_null().to_numpy()
    return Source(name, nw.from_native(table.filter(~blank), eager_only=True), lines[~blank])


def _report_duplicates(names: Sequence[str], where: str, issues: Issues) -> list[int]:
    """Positions of the first of every name; a name that occurs twice is a problem."""
    for name, count in Counter(names).items():
        if count > 1:
            issues.add(where, f"column '{name}' occurs {count} times.", "Keep one, or rename.")
    return [names.index(c) for c in dict.fromkeys(names)]
