"""results.csv: one row per method, seed and operating point. Scripts rely on its columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.errors import DataError, DataFileMissing
from nocta.runs.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

#: Which row it is.
KEYS = (
    "dataset",
    "method",
    "preset",
    "availability",
    "seed",
    "split",
    "cost_weight",
    "budget",
    "setting",
)
#: What was measured.
MEASURES = (
    "cost",
    "accuracy",
    "ap",
    "roc_auc",
    "cross_entropy",
    "n_subjects",
    "n_labels",
    "fit_seconds",
    "rollout_seconds",
)
COLUMNS = (*KEYS, *MEASURES)
#: Columns that differ between two runs of the same command.
TIMES = ("fit_seconds", "rollout_seconds")


def make_row(
    keys: Mapping[str, Any], setting: Mapping[str, Any], **measures: Any
) -> dict[str, Any]:
    """One row, every column in its place.

    Args:
        keys: dataset, method, preset, availability, seed and split.
        setting: The method's own trade-off knob. `cost_weight` and `budget` have columns of
            their own besides.
        measures: The other columns.
    """
    row = {
        **keys,
        "cost_weight": setting.get("cost_weight"),
        "budget": setting.get("budget"),
        "setting": json.dumps(dict(setting), sort_keys=True),
        **measures,
    }
    return {column: row[column] for column in COLUMNS}


def results_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table; what was not measured is NaN."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
    for column in ("cost_weight", "budget", *MEASURES[:5], *TIMES):
        frame[column] = frame[column].astype(float)
    return frame


def is_results(path: Path) -> bool:
    """Whether a file begins as `write_results` begins one."""
    with path.open("rb") as file:
        return file.readline().strip() == ",".join(COLUMNS).encode()


def write_results(frame: pd.DataFrame, path: Path) -> None:
    """Write `frame` with exactly the columns of the contract, or not at all."""
    write_atomically(path, frame[list(COLUMNS)].to_csv(index=False, lineterminator="\n"))


def read_results(path: Path) -> pd.DataFrame:
    """Read a results.csv; `setting` stays text, `json.loads` opens it."""
    import pandas as pd

    if not path.is_file():
        raise DataFileMissing(f"There is no results file '{path}'; `nocta compare` writes one.")
    frame = pd.read_csv(path, keep_default_na=True)
    missing = [column for column in COLUMNS if column not in frame]
    if missing:
        raise DataError(
            f"'{path}' is not a results file: it lacks the column(s) {', '.join(missing)}."
        )
    return frame


def plain(value: Any) -> Any:
    """Data that JSON can hold: arrays become lists, dataclasses dictionaries, NaN null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
