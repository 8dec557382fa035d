"""Osteoarthritis Initiative: knee pain (`oai-womac`) and Kellgren-Lawrence grade (`oai-klg`).

Reads the text files a user downloads after accepting the data-use terms. One row per knee; the
two knees of a patient form a group and stay in the same split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate, missing
from nocta.datasets._load_log import LoadLog
from nocta.datasets._oai_features import CLINICAL, JOINT_SPACE, Clinical, Source, clinical_feature
from nocta.datasets._oai_files import READ_PROJECT, VISITS, find_files
from nocta.datasets._oai_study import Study, Task

__all__ = ["CLINICAL", "DATASETS", "Clinical", "Source", "clinical_feature", "load"]

CLASSES = {"womac": ("no pain", "pain"), "klg": ("grade 0-1", "grade 2", "grade 3", "grade 4")}
#: Parts of column names that would reveal the label of a task.
LEAKS = {"womac": ("wom", "koos"), "klg": ("xrjs", "xrkl")}


def load(
    log: LoadLog,
    *,
    task: Task,
    path: str | Path | None = None,
    clinical: Sequence[Clinical] = CLINICAL,
    visits: Sequence[str] = tuple(VISITS),
    static_at: Literal["every", "first"] = "every",
    read_project: Mapping[str, int] | None = None,
) -> Cohort:
    """Read the OAI text files onto one slot per visit, one row per knee.

    The card explains the options; `path` is the folder (subfolders are searched too). In the
    paper, constant features (sex, race, ...) can be acquired at every visit.
    """
    _check(task, clinical, visits, read_project or {})
    families = ["allclinical", "kxr_qjsw_duryea", *(["kxr_sq_bu"] if task == "klg" else [])]
    needed = [f"{family}{v}" for v in visits for family in families]
    files = locate(CARDS[task], path, find_files)
    absent = [name for name in ("enrollees", *needed) if name not in files]
    if absent:
        folder = next(iter(files.values())).parent
        raise missing(CARDS[task], [folder], f"Not found: {', '.join(absent)} (.txt)")
    projects = {**READ_PROJECT, **(read_project or {})}
    study = Study(files, task, clinical, log)
    rows = study.rows(visits, projects)
    labeled = rows.loc[rows["label"] >= 0, "subject"].unique()
    log.drop(rows["subject"].nunique() - len(labeled), "knees", "without any label")
    rows = rows[rows["subject"].isin(labeled)]
    offered = (_measurement(feature, static_at) for feature in clinical)
    return to_cohort(
        rows,
        make_catalog([*offered, *JOINT_SPACE], len(visits)),
        log,
        name=f"oai-{task}",
        classes=CLASSES[task],
        slot_times=tuple(float(VISITS[v]) for v in visits),
        time_unit="months",
    )


def _check(
    task: str, clinical: Sequence[Clinical], visits: Sequence[str], projects: Mapping[str, int]
) -> None:
    if list(visits) != [v for v in VISITS if v in visits] or "00" not in visits:
        raise ConfigError(
            f"visits is {tuple(visits)}; use some of {', '.join(VISITS)}, in order, including 00."
        )
    unknown = [v for v in projects if v not in VISITS]
    if unknown:
        raise ConfigError(
            f"read_project has a visit '{unknown[0]}'; the visits are {', '.join(VISITS)}."
        )
    for source in (source for feature in clinical for source in feature.sources):
        leak = [w for w in LEAKS[task] if w in f"{source.first} {source.later}".lower()]
        if leak:
            raise ConfigError(
                f"'{source.first}' reveals the label of oai-{task} (columns with "
                f"'{leak[0].upper()}' come from the same form or film); leave it out."
            )


def _measurement(feature: Clinical, static_at: str) -> Measurement:
    static = all(s.later is None and not s.yearly for s in feature.sources)
    return replace(feature.measurement, at=(0,) if static and static_at == "first" else None)


WOMAC_CARD = Card(
    name="oai-womac",
    folder="oai",
    title="Osteoarthritis Initiative: knee pain (WOMAC) over eight years",
    origin=(
        "Osteoarthritis Initiative: 4,796 men and women aged 45 to 79 with or at risk of knee "
        "osteoarthritis (both knees), five centers in the USA, enrolled 2004-2006."
    ),
    size="4,796 patients, 7 slots",
    labels="2 classes: no pain, pain",
    label_rule="WOMAC pain of this knee at this visit (V##WOMKPR/L, 0 to 20): 5 or more is pain.",
    slots="months 0, 12, 24, 36, 48, 72, 96 (visit codes 00, 01, 03, 05, 06, 08, 10)",
    license="data-use agreement",
    terms="With the NIMH Data Archive (NDA); the data may not be shared.",
    access="request",
    get=(
        "Request access at the NIMH Data Archive, accept the terms, then download the clinical "
        "and the X-ray assessment files as text (ASCII)"
    ),
    url="https://nda.nih.gov/oai/",
    files=(
        "Enrollees.txt and, if available, SubjectChar00.txt",
        "AllClinical##.txt for ## = 00, 01, 03, 05, 06, 08, 10",
        "kxr_qjsw_duryea##.txt for the same visits (joint space width)",
        "kxr_sq_bu##.txt for the same visits (grades; for oai-klg only)",
        "(upper or lower case, in any subfolder; columns separated by | or ,)",
    ),
    citations=(
        "Nevitt, Felson, Lester, The Osteoarthritis Initiative: protocol for the cohort study, "
        "2006",
        "Publications must also carry OAI's acknowledgment; its site has the wording.",
    ),
    measurements=(*(c.measurement for c in CLINICAL), *JOINT_SPACE),
    cost_source=(
        "The paper: questions .3, blood pressure and body mass index .5, joint space width .8 "
        "at each position and 1 for the minimum."
    ),
    fractions=(0.50, 0.125, 0.375),
    published="womac",
    options={
        "clinical": "clinical features: a list of nocta.datasets.oai.clinical_feature(...)",
        "visits": 'visit codes to use ("00", "01", "03", "05", "06", "08", "10")',
        "static_at": "acquire constant features at 'every' visit or only the 'first' (every)",
        "read_project": "reading project per visit, such as {'08': 37}",
    },
    traps=(
        "The paper's list of 17 clinical features is not public; this list is our choice. The "
        "SF-12 form is one feature of two columns. The site is used for 'site or cohort', because "
        "the cohort was assigned by the state of the knee at enrollment.",
        "The two knees of a patient belong to one group: split by patient, not by knee.",
        "Codes are '1: Yes' at some visits and 1 at others; '.: Missing ...' is missing.",
        "X-rays were read in several projects: project 15 is used up to month 48, project 37 (and "
        "42, its continuation) after that; 37 is used if a knee was read in both. --load counts "
        "the readings left out.",
        "Some items were not collected at every visit (blood pressure); they are missing there.",
        "WOM* and KOOS* come from the same form as the label, so they cannot be features.",
        "Age increases with the visits; sex, race, education and similar items are carried "
        "forward from enrollment.",
    ),
)
KLG_CARD = replace(
    WOMAC_CARD,
    name="oai-klg",
    published="klg",
    title="Osteoarthritis Initiative: Kellgren-Lawrence grade over eight years",
    labels="4 classes: grades 0-1, 2, 3, 4",
    label_rule="Kellgren-Lawrence grade of this knee at this visit (V##XRKL); 0 and 1 merged.",
    traps=tuple(
        "XRJS* (graded joint space narrowing) is part of the grade, so it cannot be a feature."
        if trap.startswith("WOM*")
        else trap
        for trap in WOMAC_CARD.traps
    ),
)
CARDS = {"womac": WOMAC_CARD, "klg": KLG_CARD}
DATASETS = (
    Dataset(WOMAC_CARD, partial(load, task="womac")),
    Dataset(KLG_CARD, partial(load, task="klg")),
)
