"""PhysioNet/CinC Challenge 2019: sepsis, from hourly records."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate, read_stacked
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

MEASUREMENTS = (
    Measurement("HR", "heart rate", 0.1, "1/min", "vital"),
    Measurement("O2Sat", "pulse oximetry", 0.1, "%", "vital"),
    Measurement("Temp", "temperature", 0.1, "°C", "vital"),
    Measurement("SBP", "systolic pressure", 0.1, "mmHg", "vital"),
    Measurement("MAP", "mean arterial pressure", 0.1, "mmHg", "vital"),
    Measurement("DBP", "diastolic pressure", 0.1, "mmHg", "vital"),
    Measurement("Resp", "respiration rate", 0.1, "1/min", "vital"),
    Measurement("EtCO2", "end-tidal carbon dioxide", 0.3, "mmHg", "bedside"),
    Measurement("BaseExcess", "excess bicarbonate", 1.0, "mmol/l", "arterial blood gas"),
    Measurement("HCO3", "bicarbonate", 0.5, "mmol/l", "chemistry"),
    Measurement("FiO2", "fraction of inspired oxygen", 0.3, "", "bedside"),
    Measurement("pH", "arterial pH", 1.0, "", "arterial blood gas"),
    Measurement("PaCO2", "arterial carbon dioxide pressure", 1.0, "mmHg", "arterial blood gas"),
    Measurement("SaO2", "arterial oxygen saturation", 1.0, "%", "arterial blood gas"),
    Measurement("AST", "aspartate transaminase", 0.5, "IU/l", "liver"),
    Measurement("BUN", "blood urea nitrogen", 0.5, "mg/dl", "chemistry"),
    Measurement("Alkalinephos", "alkaline phosphatase", 0.5, "IU/l", "liver"),
    Measurement("Calcium", "calcium", 0.5, "mg/dl", "chemistry"),
    Measurement("Chloride", "chloride", 0.5, "mmol/l", "chemistry"),
    Measurement("Creatinine", "creatinine", 0.5, "mg/dl", "chemistry"),
    Measurement("Bilirubin_direct", "direct bilirubin", 0.5, "mg/dl", "liver"),
    Measurement("Glucose", "glucose", 0.5, "mg/dl", "chemistry"),
    Measurement("Lactate", "lactate", 1.0, "mg/dl", "arterial blood gas"),
    Measurement("Magnesium", "magnesium", 0.5, "mmol/dl", "chemistry"),
    Measurement("Phosphate", "phosphate", 0.5, "mg/dl", "chemistry"),
    Measurement("Potassium", "potassium", 0.5, "mmol/l", "chemistry"),
    Measurement("Bilirubin_total", "total bilirubin", 0.5, "mg/dl", "liver"),
    Measurement("TroponinI", "troponin I", 1.0, "ng/ml", "cardiac"),
    Measurement("Hct", "hematocrit", 0.5, "%", "blood count"),
    Measurement("Hgb", "hemoglobin", 0.5, "g/dl", "blood count"),
    Measurement("PTT", "partial thromboplastin time", 0.5, "s", "clotting"),
    Measurement("WBC", "white blood cells", 0.5, "1000/µl", "blood count"),
    Measurement("Fibrinogen", "fibrinogen", 0.5, "mg/dl", "clotting"),
    Measurement("Platelets", "platelets", 0.5, "1000/µl", "blood count"),
)
CONTEXT = {
    "Age": "years; 100 for 90 and above",
    "Gender": "0 female, 1 male",
    "Unit1": "medical intensive care (1) or not (0)",
    "Unit2": "surgical intensive care (1) or not (0)",
    "HospAdmTime": "hours from hospital admission to intensive care, negative",
}
#: First two characters of the file names: name of the set and its number of files.
SETS = {"p0": ("training_setA", 20_336), "p1": ("training_setB", 20_000)}
HOUR, LABEL = "ICULOS", "SepsisLabel"
COLUMNS = (*(m.name for m in MEASUREMENTS), *CONTEXT, HOUR, LABEL)
HEADER = "|".join(COLUMNS)


def load(
    log: LoadLog,
    *,
    path: str | Path | None = None,
    slot_hours: int = 8,
    n_slots: int = 6,
    fees: Mapping[str, float] | None = None,
) -> Cohort:
    """Read every `.psv` file under the folder onto slots of a few hours.

    The card explains the options. Hours after the last slot are dropped.
    """
    if slot_hours < 1 or n_slots < 1:
        raise ConfigError(
            f"slot_hours is {slot_hours} and n_slots {n_slots}; both must be at least 1."
        )
    found = locate(CARD, path, lambda place: sorted(place.rglob("p*.psv")) or None)
    paths = list({p.stem: p for p in reversed(found)}.values())[::-1]
    log.drop(len(found) - len(paths), "files", "copies of a stay in another folder")
    for folder in sorted({p.parent for p in paths}):
        log.read(folder)
    subjects = np.array([p.stem for p in paths])
    warn_incomplete(subjects.tolist(), log)
    hourly = read_stacked(
        paths, HEADER, log, lambda body, at: _to_slots(body, at, slot_hours, n_slots, log)
    )
    folders = np.array([p.parent.name for p in paths])
    at = hourly.pop("position")
    rows = hourly.assign(subject=subjects[at], split=folders[at])
    n_empty = len(paths) - at.nunique()
    log.drop(n_empty, "stays", f"no hour among the first {slot_hours * n_slots}")
    return to_cohort(
        rows,
        make_catalog(MEASUREMENTS, n_slots, CONTEXT, fees),
        log,
        name="physionet2019",
        classes=("no sepsis", "sepsis"),
        slot_times=tuple(float(slot_hours * (t + 1)) for t in range(n_slots)),
        time_unit="hours",
    )


def warn_incomplete(
    subjects: list[str], log: LoadLog, sets: Mapping[str, tuple[str, int]] = SETS
) -> None:
    """Warn if files of a set are missing; a missing set is only noted."""
    for start, (name, n_whole) in sets.items():
        n = sum(subject.startswith(start) for subject in subjects)
        if not n:
            log.note(f"{name} ({start}00001.psv, ...) is missing and was skipped")
        elif n < n_whole:
            log.warn(
                f"Found {n:,} files of {name} ({start}00001.psv, ...); the whole set has "
                f"{n_whole:,}. To use all of it, download and unpack it again."
            )


def _to_slots(
    body: bytes, position: NDArray[np.int64], slot_hours: int, n_slots: int, log: LoadLog
) -> pd.DataFrame:
    """One row per stay (its position among the files) and slot."""
    import pandas as pd

    hours = pd.read_csv(
        io.BytesIO(body), sep="|", names=list(COLUMNS), dtype=np.float32, skip_blank_lines=False
    )
    hours = hours.assign(position=position)[hours[HOUR].notna()]
    # The first hour in intensive care is hour 1.
    hours["slot"] = (hours[HOUR].to_numpy(np.int64) - 1).clip(min=0) // slot_hours
    late = hours["slot"] >= n_slots
    log.drop(late.sum(), "hours", f"after the first {n_slots * slot_hours} of the stay")
    grouped = hours[~late].groupby(["position", "slot"])
    table = grouped[[m.name for m in MEASUREMENTS]].median()
    table = table.join(grouped[list(CONTEXT)].first())
    table["label"] = grouped[LABEL].max().astype(np.int64)  # any positive hour
    return table.reset_index()


CARD = Card(
    name="physionet2019",
    title="PhysioNet/CinC Challenge 2019: early prediction of sepsis",
    origin="Intensive care stays of two hospital systems (training sets A and B), hour by hour.",
    size="40,336 stays, 6 slots",
    labels="2 classes, 2 % positive",
    label_rule=(
        "A slot is positive if any of its hours has SepsisLabel 1, which starts six hours before "
        "the onset of sepsis."
    ),
    slots="slots of 8 hours from the start of intensive care (both configurable); median of a slot",
    license="CC BY 4.0",
    terms="No data-use agreement; name the authors when you share the data.",
    access="download",
    get="Download training_setA and training_setB from the page (no account needed); unpack them.",
    url="https://physionet.org/content/challenge-2019/1.0.0/",
    files=("training_setA/p000001.psv ... and training_setB/p100001.psv ... (or one of them)",),
    citations=(
        "Reyna et al., Early prediction of sepsis from clinical data: the PhysioNet/Computing "
        "in Cardiology Challenge 2019, Critical Care Medicine 48:210-217, 2020",
        "Goldberger et al., PhysioBank, PhysioToolkit, and PhysioNet, Circulation 101:e215, 2000",
    ),
    measurements=MEASUREMENTS,
    context=CONTEXT,
    split_column="folder",
    cost_source=(
        "Our own tiers, not a price list, the same as for physionet2012: vital signs .1, "
        "bedside .3, common blood tests .5, blood gas, lactate and troponin 1."
    ),
    options={
        "slot_hours": "hours per slot (8)",
        "n_slots": "number of slots (6)",
        "fees": 'fee per visit of a group, such as {"blood count": 0.2} (none)',
    },
    traps=(
        "A slot mixes hours before and after its label turns positive: with long slots, some "
        "values are recorded after the onset. Use short slots to study early warning.",
        "Files end some hours after the onset of sepsis or at discharge, so the length of a stay "
        "is related to its label; slots after the end do not exist and have no label.",
        "The hour in intensive care (ICULOS) is the time axis, not a feature.",
        "The two sets come from different hospitals; the data set's own split is by folder.",
        "Most laboratory values are missing at most hours.",
        "Sepsis often comes later: of the 1,790 septic stays of set A, 1,117 have a positive slot "
        "within the first 48 hours.",
        "There is little room for planning (gradient boosting, one 70/30 split of set A, eight "
        "slots of six hours): average precision .12 from everything, .11 from the first slot "
        "alone, .10 from laboratory values, .07 from vital signs. Do not expect methods to differ.",
    ),
)
DATASETS = (Dataset(CARD, load),)
