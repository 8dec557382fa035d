"""results.csv: one row per method, seed and operating point."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from nocta.core.errors import DataError, DataFileMissing
from nocta.model.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

#: A number that may be undefined: NaN here, null in a file.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]


@dataclass(frozen=True)
class Row:
    """One row: which operating point it is, then what was measured.

    Scripts rely on the columns. `cost_weight` and `budget` repeat what `setting` (JSON of the
    method's own trade-off knob) says.
    """

    dataset: str
    method: str
    preset: str
    availability: str
    seed: int
    split: str
    cost_weight: float | None
    budget: float | None
    setting: str
    cost: Number
    accuracy: Number
    ap: Number
    roc_auc: Number
    cross_entropy: Number
    n_subjects: int
    n_labels: int
    fit_seconds: float
    rollout_seconds: float
    tests: Number = math.nan
    visits: Number = math.nan
    threshold: Number = math.nan
    detection_delay: Number = math.nan
    detected: Number = math.nan
    false_alarms: Number = math.nan
    #: Loss and charge per subject that the policy expected before the first visit, and the loss
    #: per subject that followed.
    expected_loss: Number = math.nan
    expected_cost: Number = math.nan
    realized_loss: Number = math.nan
    #: 95 % bootstrap intervals over subjects, written by `nocta evaluate`.
    cost_low: Number = math.nan
    cost_high: Number = math.nan
    accuracy_low: Number = math.nan
    accuracy_high: Number = math.nan
    ap_low: Number = math.nan
    ap_high: Number = math.nan
    roc_auc_low: Number = math.nan
    roc_auc_high: Number = math.nan
    cross_entropy_low: Number = math.nan
    cross_entropy_high: Number = math.nan


COLUMNS = tuple(f.name for f in fields(Row))
#: Columns that results of earlier versions lack.
ADDED = COLUMNS[COLUMNS.index("rollout_seconds") + 1 :]
#: What was measured.
MEASURES = COLUMNS[COLUMNS.index("cost") : COLUMNS.index("cost_low")]
#: Columns that differ between two runs of the same command.
TIMES = ("fit_seconds", "rollout_seconds")


def make_row(keys: Mapping[str, Any], setting: Mapping[str, Any], **measures: Any) -> Row:
    """One row: `keys` are dataset, method, preset, availability, seed and split."""
    return Row(
        **keys,
        cost_weight=setting.get("cost_weight"),
        budget=setting.get("budget"),
        setting=json.dumps(dict(setting), sort_keys=True),
        **measures,
    )


def results_frame(rows: Iterable[Row | Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table; what was not measured is NaN."""
    import pandas as pd

    content = [vars(row) if isinstance(row, Row) else row for row in rows]
    frame = pd.DataFrame(content, columns=list(COLUMNS))
    for column in ("cost_weight", "budget", *MEASURES[:5], *TIMES, *ADDED):
        frame[column] = frame[column].astype(float)
    return frame


def is_results(path: Path) -> bool:
    """Whether the first line of a file is a header that this or an earlier version writes."""
    with path.open("rb") as file:
        first = file.readline().strip()
    least = len(COLUMNS) - len(ADDED)
    return first in {",".join(COLUMNS[:k]).encode() for k in range(least, len(COLUMNS) + 1)}


def write_results(frame: pd.DataFrame, path: Path) -> None:
    """Write `frame` with exactly the columns of the contract; the file appears whole."""
    write_atomically(path, frame[list(COLUMNS)].to_csv(index=False, lineterminator="\n"))


def read_results(path: Path) -> pd.DataFrame:
    """Read a results.csv; `setting` stays JSON text."""
    import pandas as pd

    if not path.is_file():
        raise DataFileMissing(f"Results file '{path}' not found; `nocta compare` writes one.")
    frame = pd.read_csv(path, keep_default_na=True)
    missing = [column for column in COLUMNS if column not in frame and column not in ADDED]
    if missing:
        raise DataError(
            f"'{path}' is not a results file: it lacks the column(s) {', '.join(missing)}. Use a "
            f"results.csv that `nocta compare` or `nocta evaluate` wrote."
        )
    return frame.assign(**{column: math.nan for column in ADDED if column not in frame})


def plain(value: Any) -> Any:
    """Data that JSON can hold: arrays become lists, dataclasses dictionaries, NaN becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
