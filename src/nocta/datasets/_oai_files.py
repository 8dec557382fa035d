"""Reads the text files of the Osteoarthritis Initiative: names, codes and reading projects.

Names and columns vary in case between releases, codes are `1: Yes` or `1`, missing values are
`.: Missing Form` or blank, and a knee may have been read in several projects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

#: Visit code to months since enrollment.
VISITS: Mapping[str, int] = {"00": 0, "01": 12, "03": 24, "05": 36, "06": 48, "08": 72, "10": 96}
#: The project whose readings are used; 42 continues 37 and is treated as 37.
READ_PROJECT: Mapping[str, int] = {v: 15 if month <= 48 else 37 for v, month in VISITS.items()}
SIDES = {1: "r", 2: "l"}


def find_files(place: Path) -> dict[str, Path] | None:
    """Every text file under a folder by its name in lower case; the shallowest wins."""
    if not place.is_dir():
        return None
    found: dict[str, Path] = {}
    for path in sorted(place.rglob("*"), key=lambda p: (len(p.parts), p.name)):
        if path.suffix.lower() in (".txt", ".csv"):
            found.setdefault(path.stem.lower(), path)
    return found if any(name.startswith("allclinical") for name in found) else None


def to_code(column: pd.Series) -> pd.Series:
    """Numbers from codes: `1: Yes` is 1, `.52` is 0.52; `.: Missing` and `M` are missing."""
    import pandas as pd

    text = column.astype(str).str.strip()
    number = text.str.extract(r"^([+-]?(?:\d+\.?\d*|\.\d+))\s*(?::|$)", expand=False)
    return pd.to_numeric(number, errors="coerce").astype(float)


def to_letter_code(column: pd.Series) -> pd.Series:
    """Numbers from letters: `C` or `C: Pittsburgh` is 3; numbers stay as they are.

    Only for the site column: in other columns, a letter is the reason a value is missing.
    """
    letter = column.astype(str).str.extract(r"^\s*([A-Za-z])\s*(?::|$)", expand=False).str.upper()
    codes = letter.map({chr(ord("A") + i): float(i + 1) for i in range(26)})
    return to_code(column).fillna(codes)


def read(path: Path, wanted: Sequence[str], key: Sequence[str], log: LoadLog) -> pd.DataFrame:
    """The wanted columns (in lower case) that the file has, as numbers, indexed by `key`.

    Columns are separated by pipes, or by commas if a spreadsheet program saved the file.
    """
    import pandas as pd

    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        first = stream.readline().rstrip("\r\n")
    separator = "|" if "|" in first else ","
    names = [name.strip().strip('"').lower() for name in first.split(separator)]
    absent = [k for k in key if k not in names]
    if absent:
        raise DataError(
            f"'{path}' has no column {absent[0].upper()}; its columns are "
            f"{', '.join(names[:6])}, ... Check that it is a file of the Osteoarthritis Initiative."
        )
    chosen = [names.index(c) for c in [*key, *wanted] if c in names]
    raw = pd.read_csv(
        path, sep=separator, usecols=chosen, dtype=str, encoding="utf-8-sig",
        encoding_errors="replace", index_col=False,
    )  # fmt: skip
    raw.columns = [names[i] for i in sorted(chosen)]
    log.read(path)
    # There are few distinct texts: translate each once.
    cell, texts = pd.factorize(raw.to_numpy(dtype=object).ravel(), use_na_sentinel=False)
    codes = to_code(pd.Series(texts)).to_numpy(float)[cell].reshape(raw.shape)
    table = pd.DataFrame(codes, columns=raw.columns)
    for name in (c for c in raw.columns if c.endswith("site")):
        table[name] = to_letter_code(raw[name])
    keyed = table[list(key)].notna().all(axis=1)
    log.drop((~keyed).sum(), "rows", f"without ID, side or project ({path.name})")
    table = table[keyed]
    return table.astype({k: int for k in key}).set_index(list(key))


def by_patient(path: Path, wanted: Sequence[str], log: LoadLog) -> pd.DataFrame:
    """A clinical file, one row per patient; duplicates give the first value of every column."""
    table = read(path, wanted, ("id",), log)
    merged = table.groupby(level="id").first()
    log.drop(len(table) - len(merged), "rows", f"duplicates of a patient ({path.name})")
    return merged


def read_xrays(
    files: Mapping[str, Path],
    family: str,
    columns: Sequence[str],
    visit: str,
    project: int,
    log: LoadLog,
) -> pd.DataFrame:
    """Readings of one visit by (id, side), columns named by their pattern (`##` is the visit).

    If a knee was read in projects 37 and 42, 37 is used, and 42 for its blanks.
    """
    path = files[family + visit]
    names = {c.replace("##", visit): c for c in columns}
    table = read(path, list(names), ("id", "side", "readprj"), log).reset_index()
    table = table.sort_values("readprj", kind="stable")
    table["readprj"] = table["readprj"].replace(42, 37)
    chosen = table["readprj"] == project
    if len(table) and not chosen.any():
        found = sorted(table["readprj"].unique())
        choice = f"read_project={{'{visit}': {found[0]}}}"
        raise DataError(
            f"'{path}' has no readings of project {project}, only of "
            f"{', '.join(map(str, found))}. To use those, give "
            f'--data-option "{choice}" on the command line, {choice} in Python.'
        )
    log.drop((~chosen).sum(), "readings", f"of another project ({family})")
    sided = table["side"].isin(list(SIDES))
    log.drop((chosen & ~sided).sum(), "readings", f"side is neither 1 nor 2 ({family})")
    kept = table[chosen & sided]
    merged = kept.drop(columns="readprj").groupby(["id", "side"]).first()
    log.drop(len(kept) - len(merged), "readings", f"duplicates of a knee ({family})")
    return merged.rename(columns=names).reindex(columns=list(columns))


def numbers(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """A column, or NaN if the files of this visit do not have it."""
    if name not in table.columns:
        return np.full(len(table), np.nan)
    return table[name].to_numpy(float)  # type: ignore[no-any-return]
