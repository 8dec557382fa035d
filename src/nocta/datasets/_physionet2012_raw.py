"""Reads the raw records of PhysioNet 2012: thousands of small files, six slots of eight hours."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.datasets._files import read_stacked
from nocta.datasets._load_log import LoadLog
from nocta.tables.problems import enumerate_some

if TYPE_CHECKING:
    import pandas as pd

#: Number of stays of every set of the challenge.
STAYS_PER_SET = 4000
N_TIMES = 6
SLOT_HOURS = 8
HEADER = "Time,Parameter,Value"
VENTILATION, RECORD = "MechVent", "RecordID"
# A slot keeps the sum or the last of these; for all others, the median.
SUMMED, LAST = ("Urine",), ("GCS",)
# Readings outside these ranges are artifacts (a cuff pressure of 0, a pH of 735) and treated as
# missing. All others must not be negative: -1 means unknown.
NOT_NEGATIVE = (0.0, np.inf)
PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "Gender": (0, 1),
    "Height": (100, 250),
    "ICUType": (1, 4),
    "HR": (10, 300),
    "NISysABP": (20, 300),
    "NIDiasABP": (5, 200),
    "NIMAP": (10, 250),
    "Temp": (25, 45),
    "RespRate": (1, 100),
    "Weight": (25, 300),
    "GCS": (3, 15),
    "FiO2": (0.2, 1),
    "Urine": (0, 5000),
    "SysABP": (20, 300),
    "DiasABP": (5, 200),
    "MAP": (10, 250),
    "HCT": (0, 100),
    "WBC": (0.1, 500),
    "K": (1, 15),
    "BUN": (1, 300),
    "Mg": (0.5, 20),
    "pH": (6.5, 8.0),
    "PaO2": (10, 700),
    "PaCO2": (5, 200),
    "SaO2": (20, 100),
}


def record_files(folder: Path, name: str) -> list[Path]:
    """The records of a set, one file per stay, named by its number."""
    return sorted(p for p in (folder / f"set-{name}").glob("*.txt") if p.stem.isdecimal())


def read_set(
    folder: Path,
    name: str,
    measurements: list[str],
    context: list[str],
    log: LoadLog,
    stays_per_set: int = STAYS_PER_SET,
) -> pd.DataFrame:
    """One set of records (`"a"`, ...) as one row per stay and slot.

    Measurements are summarized per slot; context was charted once, on admission. Columns of the
    result: `subject`, `set`, `visit`, context, measurements, `label_vent`, `label`.
    """
    outcome_file = folder / f"Outcomes-{name}.txt"
    paths = record_files(folder, name)
    parameters = [*context, *measurements, VENTILATION]
    log.read(folder / f"set-{name}")
    died = _read_outcomes(outcome_file)
    ids = np.array([int(p.stem) for p in paths])
    _warn_incomplete(name, ids, died.index.to_numpy(), log, stays_per_set)
    records = read_stacked(
        paths, HEADER, log, lambda body, at: _tidy(body, ids[at], parameters, log)
    )
    rows = _summarize(records, ids, measurements, context)
    rows.insert(1, "set", name)
    rows["label"] = rows["subject"].map(died)
    unknown = rows["label"].isna()
    log.drop(rows.loc[unknown, "subject"].nunique(), "stays", f"not in {outcome_file.name}")
    rows = rows[~unknown]
    return rows.astype({"label": int})


def _read_outcomes(file: Path) -> pd.Series:
    """Whether each stay ended in death, by its number."""
    import pandas as pd

    try:
        outcomes = pd.read_csv(file, skipinitialspace=True)
    except ValueError as error:
        raise DataError(f"'{file}' is damaged: {error}. Download it again.") from error
    for column in ("RecordID", "In-hospital_death"):
        if column not in outcomes.columns:
            raise DataError(
                f"'{file}' has no column {column}; it has {', '.join(outcomes.columns[:6])}. "
                f"Check that it belongs to this data set."
            )
    return outcomes.drop_duplicates("RecordID").set_index("RecordID")["In-hospital_death"]


def _warn_incomplete(
    name: str, ids: NDArray[np.int64], named: NDArray[np.int64], log: LoadLog, stays_per_set: int
) -> None:
    """Warn if outcomes and records do not match, or are not the whole set."""
    absent = named[~np.isin(named, ids)]
    found = f"Outcomes-{name}.txt lists {len(named):,} stays; found {len(ids):,} record files"
    if absent.size:
        found += f"; {absent.size:,} listed stays have none: {enumerate_some(map(str, absent))}"
    if min(len(named), len(ids)) < stays_per_set:
        found += f"; the whole set has {stays_per_set:,}"
    elif not absent.size:
        return
    log.warn(f"{found}. To use all of it, download and unpack set-{name} again.")


def _tidy(
    body: bytes, subject: NDArray[np.int64], parameters: list[str], log: LoadLog
) -> pd.DataFrame:
    """Readings of the first 48 hours with their slot, without artifacts."""
    import pandas as pd

    records = pd.read_csv(
        io.BytesIO(body),
        names=HEADER.split(","),
        dtype={"Time": "category", "Parameter": "category", "Value": float},
        skip_blank_lines=False,
    )
    records["subject"] = subject
    # Millions of rows have a few thousand distinct clock times.
    clock = records["Time"].cat.categories
    minutes = np.array([60 * int(t[:-3]) + int(t[-2:]) for t in clock])
    records["visit"] = minutes[records["Time"].cat.codes] // (60 * SLOT_HOURS)
    late = records["visit"] >= N_TIMES
    log.drop(late.sum(), "readings", f"at or after {N_TIMES * SLOT_HOURS} hours")
    used = records[~late]
    for name, count in used["Parameter"].value_counts().items():
        if name not in (RECORD, *parameters):  # Cholesterol, TroponinI
            log.drop(count, "readings", f"of {name}, a parameter that is not used")
    nameless = used["Parameter"].isna() & used["Time"].notna()
    log.drop(nameless.sum(), "readings", "without a parameter name")
    parameter = records["Parameter"].cat.set_categories(parameters)
    bounds = np.array([PLAUSIBLE.get(p, NOT_NEGATIVE) for p in parameters])
    low, high = bounds[parameter.cat.codes].T
    artifact = ~records["Value"].between(low, high) & ~late & parameter.notna()
    log.drop(artifact.sum(), "readings", "implausible (-1, a pressure of 0, ...) or empty")
    records["Parameter"] = parameter
    return records[~late & ~artifact & parameter.notna()].drop(columns="Time")


def _summarize(
    records: pd.DataFrame, ids: NDArray[np.int64], measurements: list[str], context: list[str]
) -> pd.DataFrame:
    """One row per stay and slot, whether or not anything was recorded in it."""
    import pandas as pd

    measured = records[records["Parameter"].isin(measurements)]
    summed, last = (measured["Parameter"].isin(names) for names in (SUMMED, LAST))
    key = ["subject", "visit", "Parameter"]
    slots = [
        measured[~summed & ~last].groupby(key, observed=True)["Value"].median(),
        measured[summed].groupby(key, observed=True)["Value"].sum(),
        measured[last].groupby(key, observed=True)["Value"].last(),
    ]
    grid = pd.MultiIndex.from_product([ids, range(N_TIMES)], names=key[:2])
    table = pd.concat(slots).unstack("Parameter").reindex(index=grid, columns=measurements)
    ventilated = records[records["Parameter"] == VENTILATION].groupby(key[:2]).size()
    table["label_vent"] = (ventilated.reindex(grid).fillna(0) > 0).astype(int)
    charted = records[records["Parameter"].isin(context)]
    about = charted.groupby(["subject", "Parameter"], observed=True)["Value"].last().unstack()
    table = table.join(about.reindex(columns=context), on="subject")
    return table.reset_index()[["subject", "visit", *context, *measurements, "label_vent"]]
