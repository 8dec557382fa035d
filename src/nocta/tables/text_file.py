"""Reads delimited text as people have it: encoding, separator, and every cell as text."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.tables.problems import Issues, Unreadable, enumerate_some

if TYPE_CHECKING:
    import pyarrow as pa

_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n|\n|\r")
_DELIMITERS = (",", ";", "\t", "|")
#: Lines that decide on the separator.
_SAMPLED_LINES = 20
#: Bytes of a letter beyond ASCII in UTF-8.
_UTF8_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
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
class TextTable:
    """The cells of a delimited text file, all as text."""

    table: pa.Table
    lines: NDArray[np.int64]  # line of each row
    delimiter: str


def read_text_table(name: str, data: bytes, usual: str, issues: Issues) -> TextTable:
    """The cells of a file; what was understood of its form, if it is not `usual`, is noted."""
    text = _decode(name, data, issues)
    first_line = _LINE_END.split(text, maxsplit=1)[0]
    delimiter = _delimiter(text, usual)
    header = _cells(first_line, delimiter)
    if not any(header):
        remedy = "Give it a line of column names, then one line per visit."
        raise Unreadable(name, "it is empty.", remedy)
    if delimiter != usual:
        shown = "tabs" if delimiter == "\t" else f"'{delimiter}'"
        issues.note(f"{name}: columns are separated by {shown}.")
    return _parse(name, text, delimiter, header, issues)


def _decode(name: str, data: bytes, issues: Issues) -> str:
    """The text; UTF-8 or, if it cannot be that, UTF-16 with its mark or Windows-1252."""
    head = data[:64].lstrip().lower()
    for signature, kind, remedy in _SIGNATURES:
        if head.startswith(signature.lower()):
            raise Unreadable(name, f"it is named CSV but is {kind}.", f"{remedy}.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and len(data) % 2 == 0:
        issues.note(f"{name}: the text is encoded as UTF-16.")
        return data.decode("utf-16", errors="replace")
    if b"\x00" in data:
        found = "it is named CSV but is binary."
        raise Unreadable(name, found, "Export it as CSV (UTF-8) or Parquet.")
    try:
        return data.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        return _decode_windows(name, data, error, issues)


def _decode_windows(name: str, data: bytes, error: UnicodeDecodeError, issues: Issues) -> str:
    line = data.count(b"\n", 0, error.start) + 1
    mixed = _UTF8_LETTER.search(data) is not None
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        mixed = True
    if mixed:
        found = f"byte {data[error.start]:#04x} is not UTF-8 text."
        remedy = "Save the file with UTF-8 encoding."
        raise Unreadable(f"{name}, line {line}", found, remedy) from None
    word = re.search(rb"[^\s,;|\"]*[\x80-\xff][^\s,;|\"]*", data)
    assert word is not None
    example = word[0].decode("cp1252")
    issues.note(
        f"{name}: the text is not UTF-8 and was read as Windows-1252; check '{example}' "
        f"(line {line})."
    )
    return text


def _delimiter(text: str, usual: str) -> str:
    """The separator that cuts the first lines into the most columns, alike in most lines."""
    start = "\n".join(_LINE_END.split(text, maxsplit=_SAMPLED_LINES)[:_SAMPLED_LINES])
    best, most = usual, 1
    for delimiter in (usual, *(d for d in _DELIMITERS if d != usual)):
        sizes = [len(row) for row in csv.reader(StringIO(start), delimiter=delimiter) if row]
        alike = sum(size == sizes[0] for size in sizes) if sizes else 0
        fits = delimiter == usual or alike >= 0.9 * len(sizes)
        if sizes and fits and sizes[0] > most:
            best, most = delimiter, sizes[0]
    return best


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]


def _parse(name: str, text: str, delimiter: str, header: list[str], issues: Issues) -> TextTable:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    uneven: list[tuple[int, int]] = []

    def skip(row: Any) -> str:
        uneven.append((row.number, row.actual_columns))
        return "skip"

    first = report_duplicates(header, f"{name}, line 1", issues)
    unique = [c if i in first else f"{c}\x00{i}" for i, c in enumerate(header)]
    body = "".join(_LINE_END.split(text, maxsplit=1)[1:]).encode()
    if not body.strip():
        empty = pa.table({c: pa.array([], pa.string()) for c in unique})
        return TextTable(empty, np.array([], dtype=np.int64), delimiter)
    try:
        table = arrow_csv.read_csv(
            BytesIO(body),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=unique),
            arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            arrow_csv.ConvertOptions(
                strings_can_be_null=False, column_types=dict.fromkeys(unique, pa.string())
            ),
        )
    except pa.ArrowException as error:
        what = f"it cannot be read as CSV ({error})."
        raise Unreadable(name, what, "Check quotes and line ends.") from None
    if uneven:
        places = [f"line {number + 1} has {found}" for number, found in uneven]
        separator = {",": "a comma", ";": "a semicolon", "\t": "a tab"}.get(delimiter, "a bar")
        issues.add(
            name,
            f"the header has {len(header)} columns, but {enumerate_some(places)}.",
            f"Quote cells that contain {separator}, and keep the separators of empty cells.",
        )
    skipped = {number + 1 for number, _ in uneven}
    n_lines = table.num_rows + len(uneven)
    lines = np.array([i for i in range(2, n_lines + 2) if i not in skipped], dtype=np.int64)
    return TextTable(table.select(first), lines, delimiter)


def report_duplicates(names: Sequence[str], where: str, issues: Issues) -> list[int]:
    """Positions of the first of every name; a name that occurs twice is a problem."""
    for name, count in Counter(names).items():
        if count > 1:
            issues.add(where, f"column '{name}' occurs {count} times.", "Keep one, or rename.")
    return [names.index(c) for c in dict.fromkeys(names)]
