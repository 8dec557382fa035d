"""ADNI: Alzheimer's disease from PET and MRI every six months (section 4 of the paper).

Reads the file a user downloads after signing the data-use agreement: `ADNIMERGE.csv`, possibly
with a date in its name, or `TADPOLE_D1_D2.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, did_you_mean
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

SLOT_MONTHS, N_TIMES = 6, 12
MISSING_CODE = -4
CLASSES = ("Dementia", "MCI", "CN")
DIAGNOSES = {"dementia": 0, "ad": 0, "mci": 1, "cn": 2, "nl": 2}
MEASUREMENTS = (
    Measurement("FDG", "glucose metabolism, FDG PET", 1.0, "SUVR", "PET"),
    Measurement("AV45", "amyloid burden, florbetapir PET", 1.0, "SUVR", "PET"),
    Measurement("Hippocampus", "volume of the hippocampus, MRI", 0.5, "mm³", "MRI"),
    Measurement("Entorhinal", "volume of the entorhinal cortex, MRI", 0.5, "mm³", "MRI"),
)
_DATE = re.compile(r"(\d{1,2})([A-Za-z]{3})(\d{4})")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


def load(
    log: LoadLog,
    *,
    path: str | Path | None = None,
    min_labels: int = 1,
    biomarkers: Literal["any", "each", "none"] = "each",
    features: Mapping[str, float] | None = None,
) -> Cohort:
    """Read `ADNIMERGE*.csv` or `TADPOLE_D1_D2.csv` onto twelve slots of six months.

    The card explains the options; `path` is the file or its folder.
    """
    offered = _offered(features)
    file = locate(CARD, path, _find)
    table = _read(file, [m.name for m in offered], log)
    rows = _one_per_slot(table, log)
    rows = _keep(rows, [m.name for m in offered], min_labels, biomarkers, log)
    return to_cohort(
        rows,
        make_catalog(offered, N_TIMES),
        log,
        name="adni",
        classes=CLASSES,
        slot_times=tuple(float(SLOT_MONTHS * t) for t in range(N_TIMES)),
        time_unit="months",
    )


def _offered(features: Mapping[str, float] | None) -> tuple[Measurement, ...]:
    if features is None:
        return MEASUREMENTS
    twins = [f for f in features if f.lower().endswith("_bl") or f.lower() in ("dx", "dxchange")]
    if twins:
        raise ConfigError(
            f"'{twins[0]}' cannot be a feature: a column ending in _bl repeats the first visit at "
            f"every visit, and DX is the label."
        )
    return tuple(Measurement(name, "chosen by the user", cost) for name, cost in features.items())


def _find(place: Path) -> Path | None:
    """The newest main table of a folder; the data dictionary is skipped."""
    if place.is_file():
        return place
    names = re.compile(r"(adnimerge(?!.*dict).*|tadpole_d1_d2)\.csv", re.IGNORECASE)
    found = [p for p in place.iterdir() if names.fullmatch(p.name)]
    return max(found, key=_recency, default=None)


def _recency(file: Path) -> tuple[bool, int, str]:
    """Sort key: ADNIMERGE beats TADPOLE, a later date an earlier one."""
    stamp = 0
    date = _DATE.search(file.stem)
    if date and date[2].lower() in _MONTHS:
        month = _MONTHS.index(date[2].lower()) + 1
        stamp = 10_000 * int(date[3]) + 100 * month + int(date[1])
    return file.name.lower().startswith("adnimerge"), stamp, file.name


def _read(file: Path, features: list[str], log: LoadLog) -> pd.DataFrame:
    """The needed columns: `subject`, `month` (NaN if unknown), `label`, the features."""
    import pandas as pd

    try:
        header = pd.read_csv(file, nrows=0).columns
    except ValueError as error:  # empty, or not text
        raise DataError(f"'{file}' cannot be read as CSV ({error}). Download it again.") from error
    by_lower = {c.lower(): c for c in reversed(header)}
    subject = by_lower.get("rid") or by_lower.get("ptid")
    _check_columns(file, by_lower, subject, features)
    times = [by_lower[c] for c in ("viscode", "m", "month") if c in by_lower]
    names = {f: by_lower[f.lower()] for f in features}
    diagnosis = by_lower["dx"]
    raw = pd.read_csv(
        file, usecols=[str(subject), diagnosis, *times, *names.values()], dtype=str, na_values=[" "]
    )
    raw = raw.where(raw.notna(), "")  # a column without values is text too
    log.read(file)
    table = pd.DataFrame({"month": months(raw, times)})
    table["label"] = _labels(raw[diagnosis], log)
    for feature, column in names.items():
        table[feature] = to_number(raw[column])
    unnamed = raw[subject].str.strip() == ""
    log.drop(unnamed.sum(), "rows", "without a patient number")
    table = table[~unnamed.to_numpy()]
    texts = raw.loc[~unnamed, subject]
    numbers = pd.to_numeric(texts, errors="coerce")  # RID is a number, PTID is text
    table.insert(0, "subject", texts if numbers.isna().any() else numbers.astype(np.int64))
    return table


def _check_columns(
    file: Path, by_lower: Mapping[str, str], subject: str | None, features: list[str]
) -> None:
    problems = []
    if subject is None:
        problems.append("no column RID or PTID (the patient)")
    if not {"viscode", "m", "month"} & set(by_lower):
        problems.append("no column VISCODE, M or Month (the visit)")
    if "dx" not in by_lower:
        problems.append("no column DX (the diagnosis at the visit; not DX_bl)")
    for feature in (f for f in features if f.lower() not in by_lower):
        hint = did_you_mean(feature, by_lower.values()).strip()
        problems.append(f"no column {feature}" + (f" ({hint})" if hint else ""))
    if problems:
        raise DataError(
            f"'{file}' is not a complete ADNIMERGE or TADPOLE table: {'; '.join(problems)}."
        )


def months(raw: pd.DataFrame, columns: list[str]) -> NDArray[np.float64]:
    """Months since baseline from the visit code, else from the month columns, else NaN."""
    import pandas as pd

    out = np.full(len(raw), np.nan)
    for column in columns:
        text = raw[column].str.strip().str.lower().replace({"bl": "m0", "sc": None, "scmri": None})
        found = pd.to_numeric(text.str.removeprefix("m"), errors="coerce").to_numpy(float)
        out = np.where(np.isnan(out), found, out)
    return out


def to_number(column: pd.Series) -> NDArray[np.float64]:
    """Numbers from text: `>1700` is 1700; blanks and -4 are missing."""
    import pandas as pd

    text = column.str.strip().str.lstrip("<>=").str.strip()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(float)
    return np.where(np.isfinite(numbers) & (numbers != MISSING_CODE), numbers, np.nan)


def _labels(column: pd.Series, log: LoadLog) -> NDArray[np.int64]:
    """Class of the diagnosis; for a transition ("NL to MCI"), the state after it."""
    state = column.str.lower().str.split(r"\bto\b", regex=True).str[-1].str.strip()
    label = state.map(DIAGNOSES)
    unknown = column[(state != "") & (state != str(MISSING_CODE)) & label.isna()]
    if len(unknown):
        seen = ", ".join(f"'{v}'" for v in unknown.unique()[:3])
        log.note(f"{len(unknown)} diagnoses not understood, left unlabeled: {seen}")
    return np.asarray(label.fillna(-1), dtype=np.int64)


def _one_per_slot(table: pd.DataFrame, log: LoadLog) -> pd.DataFrame:
    """Visits on the six-month grid; duplicates give the first value of every column."""
    month = table["month"]
    limit = SLOT_MONTHS * (N_TIMES - 1)
    log.drop(month.isna().sum(), "visits", "visit code without a month")
    off = month.notna() & (month % SLOT_MONTHS != 0)
    log.drop(off.sum(), "visits", f"not a multiple of {SLOT_MONTHS} months (m03 and such)")
    log.drop((~off & (month > limit)).sum(), "visits", f"after month {limit}")
    log.drop((~off & (month < 0)).sum(), "visits", "before the first visit (a negative month)")
    kept = table[~off & month.between(0, limit)].copy()
    kept["slot"] = (kept.pop("month") // SLOT_MONTHS).astype(int)
    kept["label"] = kept["label"].where(kept["label"] >= 0)
    merged = kept.groupby(["subject", "slot"], as_index=False).first()
    log.drop(len(kept) - len(merged), "rows", "duplicates of a patient and month")
    merged["label"] = merged["label"].fillna(-1).astype(int)
    return merged


def _keep(
    rows: pd.DataFrame, features: list[str], min_labels: int, biomarkers: str, log: LoadLog
) -> pd.DataFrame:
    """Apply the filters, and note how many patients other settings would keep."""
    grouped = rows.groupby("subject")
    n_labels = grouped["label"].agg(lambda label: (label >= 0).sum())
    seen = grouped[features].count() > 0
    has = {"any": seen.any(axis=1), "each": seen.all(axis=1), "none": seen.any(axis=1) | True}
    few = n_labels < min_labels
    log.drop(few.sum(), "patients", f"fewer than {min_labels} labeled visits")
    bare = ~few & ~has[biomarkers]
    log.drop(bare.sum(), "patients", f"no value of {biomarkers} biomarker")
    for kind in ("any", "each"):
        left = [n_labels[has[kind] & (n_labels >= k)] for k in (1, 2, 3, 4, 6)]
        counts = ", ".join(f"{len(keep):,} ({keep.sum():,})" for keep in left)
        log.note(
            f"biomarkers='{kind}' with min_labels 1, 2, 3, 4, 6 keeps patients (labels): {counts}"
        )
    kept = n_labels.index[~few & ~bare]
    if not len(kept):
        raise DataError(
            f"None of the {len(n_labels)} patients passes min_labels={min_labels} and "
            f"biomarkers='{biomarkers}'. Relax the filters: --data-option min_labels=1 and "
            f"--data-option biomarkers=any on the command line."
        )
    return rows[rows["subject"].isin(kept)]


CARD = Card(
    name="adni",
    title="ADNI: cognitively normal, mild cognitive impairment or dementia, from PET and MRI",
    origin=(
        "Alzheimer's Disease Neuroimaging Initiative: a multi-center observational study in the "
        "USA and Canada since 2004, with visits every six to twelve months."
    ),
    size="1,002 patients (paper), 12 slots",
    labels="3 classes: Dementia, MCI, CN",
    label_rule=(
        "Diagnosis DX of the visit: CN (older files: NL), MCI or Dementia; for a transition such "
        "as 'NL to MCI', the state after 'to'. No label if DX is blank. DX_bl is not used."
    ),
    slots="months 0, 6, 12, ... 66",
    license="data-use agreement",
    terms="The data may not be shared.",
    access="request",
    get=(
        "Apply for access, accept the data-use agreement, then download the table ADNIMERGE from "
        "the study data, or the data of the TADPOLE challenge"
    ),
    url="https://adni.loni.usc.edu",
    files=("ADNIMERGE.csv, or ADNIMERGE_15Nov2026.csv with its date, or TADPOLE_D1_D2.csv",),
    citations=(
        "Petersen et al., Alzheimer's Disease Neuroimaging Initiative (ADNI): clinical "
        "characterization, Neurology 74:201-209, 2010",
        "Publications must also carry ADNI's acknowledgment; its site has the wording.",
    ),
    measurements=MEASUREMENTS,
    cost_source="The paper, after Qin et al. 2024: PET 1 for each tracer, MRI .5 for each volume.",
    fractions=(0.64, 0.16, 0.20),
    published="adni",
    options={
        "min_labels": "minimum number of labeled visits per patient (1)",
        "biomarkers": "keep patients with a value of 'any' or 'each' biomarker, or 'none' (each)",
        "features": "columns that can be acquired, with costs, such as {'FDG': 1, 'ABETA': 0.8}",
    },
    traps=(
        "The paper's filter is not public. Approximate targets: 1,002 patients, 7,530 labeled "
        "visits (983 Dementia, 4,292 MCI, 2,255 CN), 41 % of the values missing. --load counts "
        "the patients each filter keeps.",
        "Columns ending in _bl repeat the first visit at every visit, so they cannot be features.",
        "Values such as >1700 are read as 1700; blanks and -4 are missing.",
        "Month 3 and other visits off the six-month grid are dropped; --load counts them.",
        "A patient may have several rows per visit; the first value of every column counts.",
        "ADNIMERGE_DICT*.csv is the data dictionary, not the table.",
    ),
)
DATASETS = (Dataset(CARD, load),)
