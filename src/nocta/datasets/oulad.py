"""Open University students (OULAD): is the next tutor-marked assignment missed or failed?

A subject is the enrollment of a student in one presentation of a module. Every feature of a slot is
known at the end of the slot: marks of what was handed in until then, clicks until then.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.datasets._assemble import to_cohort
from nocta.datasets._card import Card, Measurement, make_catalog
from nocta.datasets._dataset import Dataset
from nocta.datasets._files import locate
from nocta.datasets._load_log import LoadLog
from nocta.datasets._oulad_clicks import N_SLOTS, SLOT_DAYS, count_clicks, slot_of
from nocta.datasets._oulad_tables import PRESENTATION, find, read_log, read_table

if TYPE_CHECKING:
    import pandas as pd

WEEKS_AHEAD, PASS_MARK = 8, 40
#: Last day of every slot; all that is known on that day is known at the slot.
ENDS = SLOT_DAYS * np.arange(1, N_SLOTS + 1)
MARKS = {"tutor_mark": "TMA", "computer_mark": "CMA"}
CLICKS = {
    "content": "oucontent", "forum": "forumng", "quiz": "quiz", "homepage": "homepage",
    "subpage": "subpage", "resource": "resource", "wiki": "ouwiki", "url": "url",
}  # fmt: skip
MEASUREMENTS = (
    Measurement("tutor_mark", "mean mark of tutor-marked assignments handed in", 1.0, "of 100"),
    Measurement("computer_mark", "mean mark of computer-marked ones handed in", 0.2, "of 100"),
    Measurement("content", "clicks on course content (oucontent)", 0.05, "clicks", "log"),
    Measurement("forum", "clicks on the forum (forumng)", 0.05, "clicks", "log"),
    Measurement("quiz", "clicks on quizzes (quiz)", 0.05, "clicks", "log"),
    Measurement("homepage", "clicks on the home page of the module", 0.05, "clicks", "log"),
    Measurement("subpage", "clicks on pages below it (subpage)", 0.05, "clicks", "log"),
    Measurement("resource", "clicks on documents (resource)", 0.05, "clicks", "log"),
    Measurement("wiki", "clicks on the wiki (ouwiki)", 0.05, "clicks", "log"),
    Measurement("url", "clicks on links (url)", 0.05, "clicks", "log"),
)
AGES = ("0-35", "35-55", "55<=")
EDUCATION = (
    "No Formal quals", "Lower Than A Level", "A Level or Equivalent", "HE Qualification",
    "Post Graduate Qualification",
)  # fmt: skip
CONTEXT = {
    "age": "0 below 35, 1 below 55, 2 above",
    "male": "1 male, 0 female",
    "education": "0 none, 1 below A level, 2 A level, 3 higher education, 4 postgraduate",
    "imd": "lower end of the band of the index of multiple deprivation, % (0 most deprived)",
    "credits": "credits studied at the time",
    "attempts": "previous attempts at the module",
}


def load(
    log: LoadLog,
    *,
    path: str | Path | None = None,
    weeks_ahead: int = WEEKS_AHEAD,
    marking_days: int = 0,
) -> Cohort:
    """Read the tables onto eight slots of four weeks; the card explains the options."""
    if weeks_ahead < 1 or marking_days < 0:
        raise ConfigError(
            f"weeks_ahead is {weeks_ahead} and marking_days {marking_days}; expected at least 1 "
            f"and at least 0."
        )
    folder = locate(CARD, path, find)
    people = _enrollments(folder, log)
    assessments = read_table(folder, "assessments", CARD, log)
    results = read_table(folder, "studentAssessment", CARD, log)
    results = (
        results.drop_duplicates(["id_assessment", "id_student"])
        .merge(assessments, on="id_assessment")
        .merge(
            people[[*PRESENTATION, "id_student"]].reset_index(names="row"),
            on=[*PRESENTATION, "id_student"],
        )
    )
    labels = _labels(people, assessments, results, 7 * weeks_ahead)
    gone = people["date_unregistration"].to_numpy()[:, None] <= ENDS
    pages = read_table(folder, "vle", CARD, log)
    clicks = count_clicks(read_log(folder, CARD, log), pages, people, tuple(CLICKS.values()), log)
    values = np.concatenate([_marks(results, len(people), marking_days), clicks], axis=2)
    row, slot = np.nonzero(~gone)
    log.drop(int(gone.all(axis=1).sum()), "enrollments", "withdrawn within the first four weeks")
    late = int((people["date_registration"] > SLOT_DAYS)[~gone[:, 0]].sum())
    if late:
        log.note(f"{late} enrollments begin after the first slot; their slots count from the start")
    rows = people.iloc[row].assign(
        slot=slot,
        label=labels[row, slot],
        **{m.name: values[row, slot, i] for i, m in enumerate(MEASUREMENTS)},
    )
    return to_cohort(
        rows,
        make_catalog(MEASUREMENTS, N_SLOTS, CONTEXT),
        log,
        name=CARD.name,
        classes=("passes", "misses or fails"),
        slot_times=tuple(float(4 * (t + 1)) for t in range(N_SLOTS)),
        time_unit="weeks",
    )


def _enrollments(folder: Path, log: LoadLog) -> pd.DataFrame:
    """One row per enrollment: who, when registered, and the free context."""
    key = [*PRESENTATION, "id_student"]
    people = read_table(folder, "studentInfo", CARD, log).drop_duplicates(key)
    dates = read_table(folder, "studentRegistration", CARD, log).drop_duplicates(key)
    people = people.merge(dates, on=key, how="left")
    student = people["id_student"].astype(np.int64)
    text = people["code_module"] + "-" + people["code_presentation"] + "-"
    return people.assign(
        subject=text + student.astype(str),
        group=student,
        age=people["age_band"].map({a: i for i, a in enumerate(AGES)}),
        male=people["gender"].map({"F": 0, "M": 1}),
        education=people["highest_education"].map({e: i for i, e in enumerate(EDUCATION)}),
        imd=people["imd_band"].str.extract(r"^(\d+)", expand=False).astype(float),
        credits=people["studied_credits"],
        attempts=people["num_of_prev_attempts"],
    )


def _labels(
    people: pd.DataFrame, assessments: pd.DataFrame, results: pd.DataFrame, days_ahead: int
) -> NDArray[np.int64]:
    """Whether the next tutor-marked assignment after each slot is missed or failed, `(n, L)`.

    -1 if none is due in time, or if it was handed in before the end of the slot.
    """
    labels = np.full((len(people), N_SLOTS), -1, dtype=np.int64)
    due = assessments[assessments["assessment_type"] == "TMA"].sort_values("date")
    by_presentation = dict(list(due.groupby(PRESENTATION)))
    done = results.set_index(["id_assessment", "row"])[["date_submitted", "score"]]
    for presentation, at in people.groupby(PRESENTATION).indices.items():
        own = by_presentation.get(presentation, due.iloc[:0])
        for slot, end in enumerate(ENDS):
            following = own[(own["date"] > end) & (own["date"] <= end + days_ahead)]
            if following.empty:
                continue
            entry = done.xs(following["id_assessment"].iloc[0]) if len(done) else done
            submitted, score = entry.reindex(at).to_numpy().T
            failed = ~(score >= PASS_MARK)  # a missing mark, or nothing handed in
            labels[at, slot] = np.where(submitted <= end, -1, failed)
    return labels


def _marks(results: pd.DataFrame, n: int, marking_days: int) -> NDArray[np.float64]:
    """Mean mark of what was handed in during each slot, by kind of assignment, `(n, L, 2)`."""
    out = np.full((n, N_SLOTS, len(MARKS)), np.nan)
    for i, kind in enumerate(MARKS.values()):
        marked = results[(results["assessment_type"] == kind) & results["score"].notna()]
        wait = marking_days if kind == "TMA" else 0
        slot = slot_of(marked["date_submitted"].to_numpy() + wait)
        means = marked.assign(slot=slot)[slot < N_SLOTS].groupby(["row", "slot"])["score"].mean()
        out[means.index.get_level_values(0), means.index.get_level_values(1), i] = means
    return out


CARD = Card(
    name="oulad",
    title="Open University students (OULAD): next assignment missed or failed",
    origin=(
        "Students of seven modules of the Open University (UK), 22 presentations in 2013 and 2014: "
        "marks, and daily clicks in the virtual learning environment."
    ),
    size="27,538 enrollments, 8 slots",
    labels="2 classes, 32 % positive",
    label_rule=(
        "The next tutor-marked assignment that is due within 8 weeks after the slot is not handed "
        "in, or gets less than 40 of 100. No label if none is due, or if it was handed in before "
        "the end of the slot. Nothing handed in because of withdrawal counts as missed."
    ),
    slots=(
        "eight slots of four weeks from the start of the presentation (the first includes the "
        "days before it); a slot exists unless the student withdrew by its end"
    ),
    license="CC BY 4.0",
    terms="Name the authors when you share the data.",
    access="download",
    get="Download anonymisedData.zip from the page (no account needed); unpack it.",
    url="https://analyse.kmi.open.ac.uk/open-dataset",
    files=(
        "studentInfo.csv, studentRegistration.csv, assessments.csv, studentAssessment.csv, "
        "vle.csv, studentVle.csv (450 MB)",
        "(may be packed as .csv.gz, or be .parquet; the last also a folder studentVle_ds of "
        "Parquet files)",
    ),
    citations=(
        "Kuzilek, Hlosta, Zdrahal, Open University Learning Analytics dataset, Scientific Data "
        "4:170171, 2017",
    ),
    measurements=MEASUREMENTS,
    context=CONTEXT,
    unit="student",
    cost_source=(
        "Ours, not a price list: a mark by a tutor 1, a mark by a computer .2, each click count "
        ".05 (a query of the log, with consent)."
    ),
    options={
        "weeks_ahead": f"weeks after the slot in which the next assignment is due ({WEEKS_AHEAD})",
        "marking_days": "days from handing in to the mark of a tutor (0)",
    },
    traps=(
        "A mark exists only if something was handed in: missing values are informative. The date "
        "on which a mark was returned is not published; by default a mark is known on the day of "
        "handing in, with marking_days=14 two weeks later.",
        "Students repeat: 27,538 enrollments belong to 24,839 students. A split keeps the "
        "enrollments of a student together.",
        "Slots end with withdrawal, so the number of slots is related to the label.",
        "Room for planning (gradient boosting, one 70/30 split by student): average precision .87 "
        "from everything, .81 from marks or from the first slot, .75 from clicks.",
        "Sixteen enrollments begin after the first slot and still have slots from the start.",
    ),
)
DATASETS = (Dataset(CARD, load),)
