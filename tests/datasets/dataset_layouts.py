"""Small files in the layouts users download, made up from scratch: no row is anybody's record.

Names and codes are written out here and not taken from the loaders, which could share a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

# -- PhysioNet ---------------------------------------------------------------------------

#: 34 vital signs and laboratory values, 6 columns about the patient and the stay, the label.
PSV_HEADER = (
    "HR|O2Sat|Temp|SBP|MAP|DBP|Resp|EtCO2|BaseExcess|HCO3|FiO2|pH|PaCO2|SaO2|AST|BUN|Alkalinephos|"
    "Calcium|Chloride|Creatinine|Bilirubin_direct|Glucose|Lactate|Magnesium|Phosphate|Potassium|"
    "Bilirubin_total|TroponinI|Hct|Hgb|PTT|WBC|Fibrinogen|Platelets|Age|Gender|Unit1|Unit2|"
    "HospAdmTime|ICULOS|SepsisLabel"
)


def write_record(
    folder: Path, record: int, lines: Sequence[str], died: int = 0, part: str = "a"
) -> None:
    """One stay of PhysioNet 2012 in set a or another, with its outcome."""
    (folder / f"set-{part}").mkdir(parents=True, exist_ok=True)
    head = ["Time,Parameter,Value", f"00:00,RecordID,{record}"]
    about = ["00:00,Age,60", "00:00,Gender,1", "00:00,Height,-1", "00:00,ICUType,3"]
    (folder / f"set-{part}/{record}.txt").write_text("\n".join([*head, *about, *lines]) + "\n")
    outcomes = folder / f"Outcomes-{part}.txt"
    if not outcomes.exists():
        outcomes.write_text("RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n")
    with outcomes.open("a") as stream:
        stream.write(f"{record},6,1,5,-1,{died}\n")


def write_psv(folder: Path, name: str, hours: Sequence[Mapping[str, float]]) -> None:
    """One stay of PhysioNet 2019; every hour gives the columns that were measured."""
    frame = pd.DataFrame(list(hours)).reindex(columns=PSV_HEADER.split("|"))
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / f"{name}.psv", sep="|", index=False, na_rep="NaN")


# -- ADNI --------------------------------------------------------------------------------

ADNI_COLUMNS = (
    "RID PTID VISCODE EXAMDATE DX_bl AGE FDG AV45 ABETA Hippocampus Entorhinal DX FDG_bl "
    "Hippocampus_bl Month M"
).split()


def adni_row(rid: int, viscode: str, dx: str = "", **values: object) -> dict[str, object]:
    """One visit; what is not given is blank."""
    month = 0 if viscode == "bl" else viscode.removeprefix("m").lstrip("0")
    bl = {"DX_bl": "LMCI", "FDG_bl": 9.99, "Hippocampus_bl": 9999, "AGE": 70.5}
    return {
        "RID": rid, "PTID": f"011_S_{rid:04d}", "VISCODE": viscode, "DX": dx,
        "Month": month, "M": month, **bl, **values,
    }  # fmt: skip


def write_adni(file: Path, rows: Sequence[Mapping[str, object]], drop: Sequence[str] = ()) -> Path:
    """`ADNIMERGE` or `TADPOLE` from visits."""
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = [c for c in ADNI_COLUMNS if c not in drop]
    pd.DataFrame(list(rows)).reindex(columns=columns).to_csv(file, index=False)
    return file


def complete_patient(rid: int, dx: str = "CN", n_visits: int = 3) -> list[dict[str, object]]:
    """A patient whom no filter removes."""
    codes = ["bl", *(f"m{m:02d}" for m in range(6, 6 * n_visits, 6))]
    values = {"FDG": 1.2, "AV45": 1.1, "Hippocampus": 7000, "Entorhinal": 3500}
    return [adni_row(rid, code, dx, **values) for code in codes]


# -- OAI ---------------------------------------------------------------------------------

#: Visit code to the month of the visit and the project that read its X-rays.
OAI_VISITS = {
    "00": (0, 15), "01": (12, 15), "03": (24, 15), "05": (36, 15), "06": (48, 15),
    "08": (72, 37), "10": (96, 37),
}  # fmt: skip


def _write_pipe(file: Path, frame: pd.DataFrame, upper: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    frame.columns = [c.upper() if upper else c.lower() for c in frame.columns]
    frame.to_csv(file, sep="|", index=False)


def _coded(values: np.ndarray, texts: Mapping[int, str], verbose: bool) -> list[str]:
    """`1: Yes` at the first visits, 1 at the later ones."""
    return [f"{v}: {texts[int(v)]}" if verbose else str(v) for v in values]


def write_oai(folder: Path, n_patients: int = 12, upper: bool = True, seed: int = 0) -> Path:
    """A whole download: rosters, clinical files, X-ray readings of two projects.

    The pain of the right knee is `id % 8` at every visit, that of the left knee is missing at
    visit 01. The grade of the right knee is `id % 5`, that of the left `(id + 1) % 5`.
    Readings of project 22 hold absurd values and must be passed over.
    """
    rng = np.random.default_rng(seed)
    ids = np.arange(9_000_001, 9_000_001 + n_patients)
    case = str.upper if upper else str.lower
    yes = {0: "No", 1: "Yes"}
    sexes = rng.integers(1, 3, n_patients)
    roster = pd.DataFrame({"id": ids})
    roster["p02sex"] = _coded(sexes, {1: "Male", 2: "Female"}, True)
    roster["p02race"] = "1: White or Caucasian"
    roster["p02hisp"] = "0: No"
    roster["v00site"] = rng.choice(list("ABCDE"), n_patients)
    roster["v00cohort"] = "1: Progression"
    _write_pipe(folder / f"General_ASCII/{case('Enrollees')}.txt", roster, upper)
    people = pd.DataFrame({"id": ids, "v00age": 60, "v00edcv": "3: College graduate"})
    people["v00income"] = ".: Missing Form/Incomplete Workbook"
    people.loc[0, "v00income"] = "4: $50K to < $100K"
    people["v00maritst"], people["v00cemploy"] = "1: Married", "2: Works for pay"
    _write_pipe(folder / f"General_ASCII/{case('SubjectChar00')}.txt", people, upper)
    for visit in OAI_VISITS:
        verbose = visit in ("00", "01")
        first = visit == "00"
        table = pd.DataFrame({"id": ids})
        table[f"v{visit}pase"] = 100 + int(visit)
        table[f"v{visit}hspss"], table[f"v{visit}hsmss"] = 50.5, 55.5
        if visit != "05":  # not every question is asked at every visit
            table[f"v{visit}bpsys"], table[f"v{visit}bpdias"] = 120, 80
        table["p01bmi" if first else f"v{visit}bmi"] = 27.5
        for side in "lr":
            hurt = rng.integers(0, 2, n_patients)
            table[f"p01inj{side}" if first else f"v{visit}inj{side}12"] = _coded(hurt, yes, verbose)
            name = f"p01ksurg{side}" if first else f"v{visit}ksrg{side}12"
            table[name] = _coded(1 - hurt, yes, verbose)
            table[f"v{visit}koospain{side}"] = 77
        table[f"v{visit}womkpr"] = ids % 8
        table[f"v{visit}womkpl"] = ".: Missing Form/Incomplete Workbook" if visit == "01" else "2"
        clinical = folder / "AllClinical_ASCII"
        _write_pipe(clinical / f"{case('AllClinical')}{visit}.txt", table, upper)
        _write_xrays(folder / "X-Ray Image Assessments_ASCII", visit, ids, case, upper, verbose)
    return folder


def _write_xrays(
    folder: Path, visit: str, ids: np.ndarray, case: object, upper: bool, verbose: bool
) -> None:
    usual = OAI_VISITS[visit][1]
    widths, grades = [], []
    for patient in ids:
        for side in (1, 2):
            project = 42 if usual == 37 and patient % 2 else usual
            text = {1: "1: Right", 2: "2: Left"}[side] if verbose else str(side)
            key = {"id": patient, "side": text}
            width = {f"v{visit}ljsw{x}": f"{x / 200 + side:.3f}" for x in range(700, 901, 25)}
            width[f"v{visit}mcmjsw"] = "4.25"
            widths.append({**key, "readprj": 22, **dict.fromkeys(width, "99")})
            widths.append({**key, "readprj": project, **width})
            grade = (patient + side - 1) % 5
            shown = f"{grade}: grade" if verbose else str(grade)
            grades.append({**key, "readprj": 22, f"v{visit}xrkl": "4", f"v{visit}xrjsm": "3"})
            grades.append({**key, "readprj": project, f"v{visit}xrkl": shown})
    _write_pipe(folder / f"kxr_qjsw_duryea{visit}.txt", pd.DataFrame(widths), upper)
    _write_pipe(folder / f"kxr_sq_bu{visit}.txt", pd.DataFrame(grades), upper)


# -- C-MAPSS -----------------------------------------------------------------------------


def write_engines(file: Path, lives: Sequence[int], wear: float = 0.1, seed: int = 0) -> Path:
    """One text file of C-MAPSS: engine `i` has `lives[i]` cycles at two flight conditions.

    Sensor `j` reads `100 j` at the ground and `50 j` at altitude 20, and rises by `wear` a cycle.
    """
    rng, lines = np.random.default_rng(seed), []
    for unit, life in enumerate(lives, start=1):
        for cycle in range(1, life + 1):
            high = cycle % 3 == 0
            noise = rng.normal(size=21)
            sensors = (50 if high else 100) * np.arange(1, 22) + wear * cycle + noise
            sensors[0] = 445.0 if high else 518.67
            settings = f"{20.0 * high:.4f} {0.7 * high:.4f} 100.0"
            lines.append(f"{unit} {cycle} {settings} " + " ".join(f"{s:.2f}" for s in sensors))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "".join(f"{line}  \n" for line in lines)
    )  # as published, with blanks at the end
    return file


def write_cmapss(
    folder: Path, subset: str = "FD001", train: Sequence[int] = (70, 45, 15), left: int = 30
) -> Path:
    """A subset of C-MAPSS: engines that run to failure, and one that is cut off before."""
    write_engines(folder / f"train_{subset}.txt", train)
    write_engines(folder / f"test_{subset}.txt", [65], seed=1)
    (folder / f"RUL_{subset}.txt").write_text(f"{left} \n")
    return folder


# -- OULAD -------------------------------------------------------------------------------

#: Columns of the published tables, and rows of a small edition: module AAA with an assignment due
#: on days 20, 60 and 130, two students and one who leaves, and module BBB with another page.
OULAD_TABLES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "courses": (
        "code_module code_presentation module_presentation_length",
        [("AAA", "2013J", 268), ("BBB", "2014B", 240)],
    ),
    "studentInfo": (
        "code_module code_presentation id_student gender region highest_education imd_band "
        "age_band num_of_prev_attempts studied_credits disability final_result",
        [
            ("AAA", "2013J", 11, "M", "Wales", "HE Qualification", "90-100%", "55<=", 0, 240, "N",
             "Pass"),
            ("AAA", "2013J", 12, "F", "Wales", "No Formal quals", "10-20", "0-35", 2, 60, "N",
             "Fail"),
            ("AAA", "2013J", 13, "F", "Wales", "A Level or Equivalent", "?", "35-55", 0, 60, "Y",
             "Withdrawn"),
            ("AAA", "2013J", 14, "F", "Wales", "A Level or Equivalent", "?", "35-55", 0, 60, "Y",
             "Withdrawn"),
            ("BBB", "2014B", 11, "M", "Wales", "HE Qualification", "90-100%", "55<=", 0, 60, "N",
             "Pass"),
        ],
    ),
    "studentRegistration": (
        "code_module code_presentation id_student date_registration date_unregistration",
        [
            ("AAA", "2013J", 11, -50, ""), ("AAA", "2013J", 12, 30, "?"),
            ("AAA", "2013J", 13, -3, 56), ("AAA", "2013J", 14, -3, 28),
            ("BBB", "2014B", 11, -50, ""),
        ],
    ),
    "assessments": (
        "code_module code_presentation id_assessment assessment_type date weight",
        [
            ("AAA", "2013J", 1, "TMA", 20, 10), ("AAA", "2013J", 2, "TMA", 60, 20),
            ("AAA", "2013J", 3, "TMA", 130, 20), ("AAA", "2013J", 4, "CMA", 40, 0),
            ("AAA", "2013J", 5, "Exam", "?", 100), ("BBB", "2014B", 6, "TMA", 29, 100),
        ],
    ),
    "studentAssessment": (
        "id_assessment id_student date_submitted is_banked score",
        [
            (1, 11, 18, 0, 80), (2, 11, 56, 0, 70), (3, 11, 140, 0, 39), (4, 11, 29, 0, 100),
            (1, 12, -1, 1, 50), (2, 12, 62, 0, 40), (5, 11, 230, 0, 90), (6, 11, 28, 0, 55),
            (1, 13, 20, 0, "?"),
        ],
    ),
    "vle": (
        "id_site code_module code_presentation activity_type week_from week_to",
        [
            (102, "AAA", "2013J", "homepage", "", ""), (101, "AAA", "2013J", "oucontent", 1, 2),
            (103, "AAA", "2013J", "folder", "", ""), (201, "BBB", "2014B", "homepage", "", ""),
        ],
    ),
    "studentVle": (
        "code_module code_presentation id_student id_site date sum_click",
        [
            ("AAA", "2013J", 11, 101, -10, 3), ("AAA", "2013J", 11, 101, 28, 4),
            ("AAA", "2013J", 11, 101, 29, 5), ("AAA", "2013J", 11, 102, 224, 6),
            ("AAA", "2013J", 11, 102, 225, 7), ("AAA", "2013J", 11, 103, 1, 8),
            ("BBB", "2014B", 11, 201, 1, 9), ("AAA", "2013J", 99, 101, 1, 10),
            ("AAA", "2013J", 12, 101, 1, 11), ("AAA", "2013J", 12, 101, 2, 12),
        ],
    ),
}  # fmt: skip


def write_oulad(folder: Path, leave_out: Sequence[str] = ()) -> Path:
    """The tables as published: quoted text with commas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (columns, rows) in OULAD_TABLES.items():
        if name not in leave_out:
            frame = pd.DataFrame(rows, columns=columns.split())
            frame.to_csv(folder / f"{name}.csv", index=False, quoting=1)
    return folder
