"""Reads the tables of OULAD: CSV as published (packed or not), or the same as Parquet.

The click log has ten million rows: it is added up batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.datasets._card import Card
from nocta.datasets._files import missing
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

PRESENTATION = ["code_module", "code_presentation"]
#: Columns that are read, and the number of rows of the whole table.
TABLES: Mapping[str, tuple[tuple[str, ...], int]] = {
    "studentInfo": (
        (
            *PRESENTATION, "id_student", "gender", "highest_education", "imd_band", "age_band",
            "num_of_prev_attempts", "studied_credits",
        ),
        32_593,
    ),
    "studentRegistration": (
        (*PRESENTATION, "id_student", "date_registration", "date_unregistration"),
        32_593,
    ),
    "assessments": ((*PRESENTATION, "id_assessment", "assessment_type", "date"), 206),
    "studentAssessment": (("id_assessment", "id_student", "date_submitted", "score"), 173_912),
    "vle": (("id_site", *PRESENTATION, "activity_type"), 6_364),
    "studentVle": (("id_student", "id_site", "date", "sum_click"), 10_655_280),
}  # fmt: skip
_ENDINGS = (".csv", ".csv.gz", ".parquet", "_ds")
_TEXT = {*PRESENTATION, "gender", "highest_education", "imd_band", "age_band", "assessment_type",
         "activity_type"}  # fmt: skip
#: Some editions write a question mark for a missing value.
_MISSING = ("", "?")
_BLOCK_BYTES = 1 << 23


def find(place: Path) -> Path | None:
    """The folder with the tables, at this place or one below."""
    folders = [place, *sorted(p for p in place.glob("*") if p.is_dir())] if place.is_dir() else []
    return next((folder for folder in folders if _file(folder, "studentInfo")), None)


def _file(folder: Path, name: str) -> Path | None:
    """The file of a table, or the folder of its pieces."""
    files = (folder / f"{name}{ending}" for ending in _ENDINGS)
    return next((file for file in files if file.exists()), None)


def _located(folder: Path, name: str, card: Card) -> Path:
    file = _file(folder, name)
    if file is None:
        raise missing(card, [folder], f"{name}.csv is missing")
    return file


def _check_columns(file: Path, found: Sequence[str], name: str) -> list[str]:
    columns = list(TABLES[name][0])
    if absent := [c for c in columns if c not in found]:
        raise DataError(
            f"'{file}' has no column {absent[0]}; it has {', '.join(list(found)[:6])}. Check that "
            f"it belongs to this data set."
        )
    return columns


def _warn_incomplete(file: Path, name: str, n_rows: int, log: LoadLog) -> None:
    log.read(file)
    whole = TABLES[name][1]
    if n_rows < whole:
        log.warn(f"{file.name} has {n_rows:,} rows; the whole table has {whole:,}.")


def read_table(folder: Path, name: str, card: Card, log: LoadLog) -> pd.DataFrame:
    """One of the small tables: text as text, everything else as floats."""
    import pandas as pd

    file = _located(folder, name, card)
    try:
        table = (
            pd.read_parquet(file)
            if file.suffix == ".parquet"
            else pd.read_csv(file, na_values=list(_MISSING), dtype=dict.fromkeys(_TEXT, str))
        )
        table = table[_check_columns(file, list(table.columns), name)]
        table = table.astype({c: float for c in table.columns if c not in _TEXT})
    except DataError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"'{file}' is damaged: {error}. Download it again.") from error
    _warn_incomplete(file, name, len(table), log)
    return table


#: Student, page, day and number of clicks of some rows of the click log.
LogBatch = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def read_log(folder: Path, card: Card, log: LoadLog) -> Iterator[LogBatch]:
    """The click log in batches."""
    import pyarrow as pa

    file, n_rows = _located(folder, "studentVle", card), 0
    try:
        for batch in _batches(file):
            n_rows += batch.num_rows
            student, site, day, clicks = (
                column.to_numpy(zero_copy_only=False).astype(float) for column in batch.columns
            )
            yield student.astype(np.int64), site.astype(np.int64), day.astype(np.int64), clicks
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"'{file}' is damaged: {error}. Download it again.") from error
    _warn_incomplete(file, "studentVle", n_rows, log)


def _batches(file: Path) -> Iterator[Any]:
    """Record batches with the four columns in order."""
    if ".csv" in file.suffixes:
        from pyarrow import csv

        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            convert_options=csv.ConvertOptions(null_values=list(_MISSING)),
        )
        columns = _check_columns(file, reader.schema.names, "studentVle")
        yield from (batch.select(columns) for batch in reader)
    else:
        from pyarrow import dataset

        pieces = dataset.dataset(file, format="parquet")
        columns = _check_columns(file, pieces.schema.names, "studentVle")
        yield from pieces.to_batches(columns=columns, batch_readahead=1, fragment_readahead=1)
