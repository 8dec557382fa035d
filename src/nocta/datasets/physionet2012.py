"""PhysioNet/CinC Challenge 2012: the first 48 hours of intensive care.

`physionet2012`: death in hospital. `physionet2012-vent`: ventilated in this slot. Reads the
downloaded raw records (`set-a/`, `set-b/`), or the same data as one prepared table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate, missing
from nocta.datasets._load_log import LoadLog
from nocta.datasets._physionet2012_raw import (
    N_TIMES,
    SLOT_HOURS,
    STAYS_PER_SET,
    read_set,
    record_files,
)

if TYPE_CHECKING:
    import pandas as pd

TABLE_NAMES = ("physionet2012.csv.gz", "physionet2012.csv", "physionet2012.parquet")

MEASUREMENTS = (
    Measurement("HR", "heart rate", 0.1, "1/min", "vital"),
    Measurement("NISysABP", "systolic pressure, cuff", 0.1, "mmHg", "vital"),
    Measurement("NIDiasABP", "diastolic pressure, cuff", 0.1, "mmHg", "vital"),
    Measurement("NIMAP", "mean pressure, cuff", 0.1, "mmHg", "vital"),
    Measurement("Temp", "temperature", 0.1, "°C", "vital"),
    Measurement("RespRate", "respiration rate", 0.1, "1/min", "vital"),
    Measurement("Weight", "weight", 0.1, "kg", "vital"),
    Measurement("GCS", "Glasgow coma score, last of the slot", 0.3, "", "bedside"),
    Measurement("Urine", "urine output, sum over the slot", 0.3, "ml", "bedside"),
    Measurement("FiO2", "fraction of inspired oxygen", 0.3, "", "bedside"),
    Measurement("SysABP", "systolic pressure, arterial line", 0.5, "mmHg", "arterial line"),
    Measurement("DiasABP", "diastolic pressure, arterial line", 0.5, "mmHg", "arterial line"),
    Measurement("MAP", "mean pressure, arterial line", 0.5, "mmHg", "arterial line"),
    Measurement("HCT", "hematocrit", 0.5, "%", "blood count"),
    Measurement("Platelets", "platelets", 0.5, "1000/µl", "blood count"),
    Measurement("WBC", "white blood cells", 0.5, "1000/µl", "blood count"),
    Measurement("Na", "sodium", 0.5, "mmol/l", "chemistry"),
    Measurement("K", "potassium", 0.5, "mmol/l", "chemistry"),
    Measurement("HCO3", "bicarbonate", 0.5, "mmol/l", "chemistry"),
    Measurement("BUN", "blood urea nitrogen", 0.5, "mg/dl", "chemistry"),
    Measurement("Creatinine", "creatinine", 0.5, "mg/dl", "chemistry"),
    Measurement("Glucose", "glucose", 0.5, "mg/dl", "chemistry"),
    Measurement("Mg", "magnesium", 0.5, "mmol/l", "chemistry"),
    Measurement("ALP", "alkaline phosphatase", 0.5, "IU/l", "liver"),
    Measurement("ALT", "alanine transaminase", 0.5, "IU/l", "liver"),
    Measurement("AST", "aspartate transaminase", 0.5, "IU/l", "liver"),
    Measurement("Bilirubin", "bilirubin", 0.5, "mg/dl", "liver"),
    Measurement("Albumin", "albumin", 0.5, "g/dl", "liver"),
    Measurement("pH", "arterial pH", 1.0, "", "arterial blood gas"),
    Measurement("PaO2", "arterial oxygen pressure", 1.0, "mmHg", "arterial blood gas"),
    Measurement("PaCO2", "arterial carbon dioxide pressure", 1.0, "mmHg", "arterial blood gas"),
    Measurement("SaO2", "arterial oxygen saturation", 1.0, "%", "arterial blood gas"),
    Measurement("Lactate", "lactate", 1.0, "mmol/l", "arterial blood gas"),
    Measurement("TroponinT", "troponin T", 1.0, "µg/l", "cardiac"),
)
CONTEXT = {
    "Age": "years",
    "Gender": "1 male, 0 female",
    "Height": "cm",
    "ICUType": "1 coronary, 2 cardiac surgery, 3 medical, 4 surgical",
}
CLASSES = {"death": ("survived", "died"), "vent": ("not ventilated", "ventilated")}
LABEL_COLUMN = {"death": "label", "vent": "label_vent"}


def load(
    log: LoadLog,
    *,
    task: Literal["death", "vent"],
    path: str | Path | None = None,
    sets: Sequence[str] = ("a", "b"),
    fees: Mapping[str, float] | None = None,
) -> Cohort:
    """Read the folder with `set-a/` and so on, or the prepared table.

    The card explains the options. `FiO2` would reveal ventilation and is left out for `"vent"`.
    """
    unknown = [s for s in sets if s not in ("a", "b", "c")]
    if unknown:
        raise ConfigError(f"There is no set '{unknown[0]}'; the sets are 'a', 'b' and 'c'.")
    source = locate(CARD, path, lambda place: _find(place, sets))
    rows = read_table(source, sets, log) if source.is_file() else read_raw(source, sets, log)
    chosen = [m for m in MEASUREMENTS if task == "death" or m.name != "FiO2"]
    rows = rows.rename(columns={"visit": "slot", "set": "split"})
    rows["label"] = rows[LABEL_COLUMN[task]]
    return to_cohort(
        rows,
        make_catalog(chosen, N_TIMES, CONTEXT, fees),
        log,
        name="physionet2012" if task == "death" else "physionet2012-vent",
        classes=CLASSES[task],
        slot_times=tuple(float(SLOT_HOURS * (t + 1)) for t in range(N_TIMES)),
        time_unit="hours",
    )


def _find(place: Path, sets: Sequence[str]) -> Path | None:
    """The folder that holds the sets, or the table file."""
    if place.is_file():
        return place
    if any((place / f"set-{s}").is_dir() for s in sets):
        return place
    for name in TABLE_NAMES:
        if (place / name).is_file():
            return place / name
    nested = sorted(p.parent for s in sets for p in place.glob(f"*/set-{s}") if p.is_dir())
    return nested[0] if nested else None


def read_table(file: Path, sets: Sequence[str], log: LoadLog) -> pd.DataFrame:
    """The prepared table: one row per stay and slot, with the columns of `read_raw`."""
    import pandas as pd

    try:
        rows = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"'{file}' cannot be read as a table: {error}. Get it again, or give the folder with "
            f"set-a/ instead."
        ) from error
    needed = ["subject", "set", "visit", *CONTEXT, *(m.name for m in MEASUREMENTS)]
    absent = [c for c in [*needed, *LABEL_COLUMN.values()] if c not in rows.columns]
    if absent:
        raise DataError(
            f"'{file}' is not the PhysioNet 2012 table: it lacks {len(absent)} of the expected "
            f"columns ({', '.join(absent[:5])}, ...). Give the folder with set-a/ instead."
        )
    log.read(file)
    chosen = rows["set"].isin(list(sets))
    log.drop(rows.loc[~chosen, "subject"].nunique(), "stays", "in other sets")
    stays = rows[chosen].groupby("set")["subject"].nunique()
    for name in sets:
        n = int(stays.get(name, 0))
        if n < STAYS_PER_SET:
            whole = f"the whole set has {STAYS_PER_SET:,}"
            log.warn(f"{file.name} has {n:,} stays of set {name}; {whole}.")
    return rows[chosen].reset_index(drop=True)


def read_raw(
    folder: Path, sets: Sequence[str], log: LoadLog, stays_per_set: int = STAYS_PER_SET
) -> pd.DataFrame:
    """The raw records as one row per stay and slot; a set with fewer stays gets a warning."""
    import pandas as pd

    frames = []
    for name in sets:
        if not (folder / f"set-{name}").is_dir():
            log.note(f"set-{name} is not in '{folder}' and was skipped")
            continue
        if not (folder / f"Outcomes-{name}.txt").is_file():
            raise missing(CARD, [folder], f"Outcomes-{name}.txt is missing")
        if not record_files(folder, name):
            raise missing(CARD, [folder], f"set-{name} has no records (132539.txt, ...)")
        measured = [m.name for m in MEASUREMENTS]
        frames.append(read_set(folder, name, measured, list(CONTEXT), log, stays_per_set))
    return pd.concat(frames, ignore_index=True)


CARD = Card(
    name="physionet2012",
    title="PhysioNet/CinC Challenge 2012: first 48 hours in intensive care, death in hospital",
    origin=(
        "Adult stays of at least 48 hours in four intensive care units of one Boston hospital, "
        "drawn from MIMIC-II and released openly for the challenge."
    ),
    size="8,000 stays, 6 slots",
    labels="2 classes, 14 % positive",
    label_rule="In-hospital death (Outcomes-*.txt), the same at every slot of a stay.",
    slots="six slots of 8 hours; median of a slot (urine: sum, coma score: last)",
    license="open access",
    terms="No data-use agreement; read the license on PhysioNet's page before sharing data.",
    access="download",
    get="Download set-a, set-b and the outcomes from the page (no account needed); unpack them.",
    url="https://physionet.org/content/challenge-2012/1.0.0/",
    files=(
        "set-a/ and set-b/ (or one of them): one RecordID.txt per stay",
        "Outcomes-a.txt and Outcomes-b.txt",
        "or, instead of these, a prepared table physionet2012.csv.gz",
    ),
    citations=(
        "Silva, Moody, Scott, Celi, Mark, Predicting in-hospital mortality of ICU patients: the "
        "PhysioNet/Computing in Cardiology Challenge 2012, CinC 39:245-248, 2012",
        "Goldberger et al., PhysioBank, PhysioToolkit, and PhysioNet, Circulation 101:e215, 2000",
    ),
    measurements=MEASUREMENTS,
    context=CONTEXT,
    split_column="set",
    cost_source=(
        "Our own tiers, not a price list: vital signs .1, bedside .3, arterial line and common "
        "blood tests .5, blood gas, lactate and troponin 1. A group comes from one draw or line "
        "and has no fee by default."
    ),
    options={
        "sets": 'which sets to read ("a", "b")',
        "fees": 'fee per visit of a group, such as {"blood count": 0.2} (none)',
    },
    traps=(
        "59 % of the values are missing, and missingness is informative: sicker patients get "
        "more tests.",
        "Readings include artifacts (-1, a pressure of 0, a pH of 735); values outside plausible "
        "ranges are treated as missing.",
        "The challenge's own split is set a versus set b.",
        "The records at hour 0 hold weight, height, age and unit type; -1 there means unknown.",
        "A death after discharge is not a death in hospital.",
    ),
)
VENT_CARD = replace(
    CARD,
    name="physionet2012-vent",
    folder="physionet2012",
    title="PhysioNet/CinC Challenge 2012: mechanically ventilated in this slot",
    labels="2 classes, 47 % positive",
    label_rule="Any record of mechanical ventilation (MechVent) within the slot.",
    measurements=tuple(m for m in MEASUREMENTS if m.name != "FiO2"),
    traps=(*CARD.traps, "FiO2 is set on the ventilator and would reveal the label: left out."),
)
DATASETS = (
    Dataset(CARD, partial(load, task="death")),
    Dataset(VENT_CARD, partial(load, task="vent")),
)
