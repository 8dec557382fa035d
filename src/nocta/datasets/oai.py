"""Osteoarthritis Initiative: knee pain (`oai-womac`) and Kellgren-Lawrence grade (`oai-klg`).

Reads the text files a user downloads after accepting the data-use terms. One row per knee;
the two knees of a patient form a group and are never split apart.
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
from nocta.datasets._files import locate, missing
from nocta.datasets._oai_features import CLINICAL, JOINT_SPACE, Clinical, Source, clinical_feature
from nocta.datasets._oai_files import READ_PROJECT, VISITS, find_files
from nocta.datasets._oai_study import Study, Task
from nocta.datasets._registry import Dataset
from nocta.datasets._report import LoadLog

__all__ = ["CLINICAL", "DATASETS", "Clinical", "Source", "clinical_feature", "load"]

CLASSES = {"womac": ("no pain", "pain"), "klg": ("grade 0-1", "grade 2", "grade 3", "grade 4")}
#: What would give the label of a task away.
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

    Args:
        log: Receives what was read and dropped.
        task: What the label is.
        path: Folder with the files (folders inside are searched too).
        clinical: Clinical features, the 17 of the card by default.
        visits: Visit codes to use, in order.
        static_at: Whether what never changes (sex, race, ...) can be acquired at every visit,
            as in the paper, or only at the first.
        read_project: Reading project per visit code, where it is not the usual one.
    """
    _check(task, clinical, visits, read_project or {})
    needed = [f"{family}{v}" for v in visits for family in _families(task)]
    files = locate(CARDS[task], path, find_files)
    absent = [name for name in ("enrollees", *needed) if name not in files]
    if absent:
        folder = next(iter(files.values())).parent
        raise missing(CARDS[task], [folder], f"Not found: {', '.join(absent)} (.txt)")
    projects = {**READ_PROJECT, **(read_project or {})}
    study = Study(files, task, clinical, log)
    rows = study.rows(visits, projects)
    labelled = rows.loc[rows["label"] >= 0, "subject"].unique()
    log.drop(rows["subject"].nunique() - len(labelled), "knees", "without any label")
    rows = rows[rows["subject"].isin(labelled)]
    people = rows.drop_duplicates("subject").set_index("subject")[["group"]]
    return to_cohort(
        rows,
        people,
        make_catalog(_measurements(clinical, static_at), len(visits)),
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
            f"visits is {tuple(visits)}; use some of {', '.join(VISITS)}, in order, with 00."
        )
    strange = [v for v in projects if v not in VISITS]
    if strange:
        raise ConfigError(
            f"read_project names a visit '{strange[0]}'; the visits are {', '.join(VISITS)}."
        )
    for feature in clinical:
        for source in feature.sources:
            leak = [w for w in LEAKS[task] if w in f"{source.first} {source.later}".lower()]
            if leak:
                raise ConfigError(
                    f"'{source.first}' gives the label of oai-{task} away (columns with "
                    f"'{leak[0].upper()}' are read from the same form or film); leave it out."
                )


def _families(task: str) -> tuple[str, ...]:
    common = ("allclinical", "kxr_qjsw_duryea")
    return (*common, "kxr_sq_bu") if task == "klg" else common


def _measurements(clinical: Sequence[Clinical], static_at: str) -> list[Measurement]:
    def placed(feature: Clinical) -> Measurement:
        static = all(s.later is None and not s.yearly for s in feature.sources)
        at = (0,) if static and static_at == "first" else None
        return replace(feature.measurement, at=at)

    return [*(placed(feature) for feature in clinical), *JOINT_SPACE]


WOMAC_CARD = Card(
    name="oai-womac",
    folder="oai",
    title="Osteoarthritis Initiative: knee pain (WOMAC) over eight years",
    origin=(
        "Osteoarthritis Initiative: 4,796 men and women of 45 to 79 years with or at risk "
        "of knee osteoarthritis (both knees), five centres in the USA, enrolled 2004-2006."
    ),
    size="4,796 patients, 7 slots",
    labels="2 classes: no pain, pain",
    label_rule="WOMAC pain of this knee at this visit (V##WOMKPR/L, 0 to 20): pain from 5.",
    slots="months 0, 12, 24, 36, 48, 72, 96 (visit codes 00, 01, 03, 05, 06, 08, 10)",
    licence="data-use agreement",
    terms="That of the NIMH Data Archive (NDA); the data may not be passed on.",
    access="request",
    get=(
        "Request access at the NIMH Data Archive, accept the terms, then download the clinical "
        "and the X-ray assessment files as text (ASCII)"
    ),
    url="https://nda.nih.gov/oai/",
    files=(
        "Enrollees.txt and, where there, SubjectChar00.txt",
        "AllClinical##.txt for ## = 00, 01, 03, 05, 06, 08, 10",
        "kxr_qjsw_duryea##.txt for the same visits (joint space width)",
        "kxr_sq_bu##.txt for the same visits (grades; for oai-klg only)",
        "(any case, in any folder below; | or , between columns)",
    ),
    citations=(
        "Nevitt, Felson, Lester, The Osteoarthritis Initiative: protocol for the cohort study, "
        "2006",
        "Publications must also carry OAI's acknowledgement; its site has the wording.",
    ),
    measurements=(*(c.measurement for c in CLINICAL), *JOINT_SPACE),
    cost_source=(
        "The paper: questions .3, blood pressure and body mass index .5, joint space width .8 "
        "at each position and 1 for the minimum."
    ),
    fractions=(0.50, 0.125, 0.375),
    published="womac",
    options={
        "clinical": "other clinical features (a list of nocta.datasets.oai.clinical_feature(...))",
        "visits": 'visit codes to use ("00", "01", "03", "05", "06", "08", "10")',
        "static_at": "'every' visit or only the 'first' for what never changes (every)",
        "read_project": "reading project per visit, such as {'08': 37}",
    },
    traps=(
        "The paper's list of 17 clinical features is not public; this one is a choice. The "
        "SF-12 form counts as one feature of two columns; the site stands in for 'site or "
        "cohort', because the cohort was assigned by the knee's state at enrolment.",
        "The two knees of a patient belong to one group: split by patient, never by knee.",
        "Codes are '1: Yes' at some visits and 1 at others; '.: Missing ...' is missing.",
        "X-rays were read in several projects: 15 counts to month 48, 37 (and 42, its "
        "continuation) after; of a knee read in both, 37. The report counts what was left out.",
        "Some questions were not asked at every visit (blood pressure); they are missing there.",
        "WOM* and KOOS* of the visit come from the form the label comes from: never features.",
        "Age advances with the visits; sex, race, education and the like are carried on from "
        "enrolment.",
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
        "XRJS* (graded joint space narrowing) is half of the grade itself: never a feature."
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
