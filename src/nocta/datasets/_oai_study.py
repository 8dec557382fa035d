"""The 17 clinical features and 10 joint space widths of OAI, read from its files.

`Study` turns the files into rows, one per knee and visit that took place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.datasets._card import Measurement
from nocta.datasets._load_log import LoadLog
from nocta.datasets._oai_files import SIDES, VISITS, by_patient, numbers, read_xrays

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["womac", "klg"]
PAIN_FROM = 5


@dataclass(frozen=True)
class Source:
    """A column in the files: lower case, `##` is the visit code, `{s}` the side, r or l."""

    column: str  # its name in the cohort
    first: str  # its name at the first visit
    later: str | None = None  # at later visits; `None` if asked once and then carried forward
    yearly: float = 0.0  # added per year since the first visit to what is carried forward (age)

    def name_at(self, visit: str, side: str) -> str | None:
        """The column's name in the files of a visit."""
        pattern = self.first if visit == "00" else self.later
        return pattern and pattern.replace("##", visit).replace("{s}", side)


@dataclass(frozen=True)
class Clinical:
    """A clinical feature: its cost and the columns it reveals."""

    measurement: Measurement
    sources: tuple[Source, ...]


def clinical_feature(
    name: str,
    about: str,
    cost: float,
    first: str,
    later: str | None = None,
    *,
    unit: str = "",
    yearly: float = 0.0,
) -> Clinical:
    """A clinical feature of one column."""
    return Clinical(Measurement(name, about, cost, unit), (Source(name, first, later, yearly),))


SIDE = "side"
_feature = clinical_feature
CLINICAL = (
    _feature("age", "age", 0.3, "v00age", unit="years", yearly=1.0),
    _feature("sex", "1 male, 2 female", 0.3, "p02sex"),
    _feature("race", "race, as coded", 0.3, "p02race"),
    _feature("ethnicity", "hispanic or latino", 0.3, "p02hisp"),
    _feature("education", "highest grade completed", 0.3, "v00edcv"),
    _feature("income", "yearly income, bracket", 0.3, "v00income"),
    _feature("marital_status", "marital status", 0.3, "v00maritst"),
    _feature("employment", "current employment", 0.3, "v00cemploy"),
    _feature("site", "clinical center, A to E as 1 to 5", 0.3, "v00site"),
    _feature("knee_side", "1 right, 2 left", 0.3, SIDE),
    _feature("injury", "knee injured: ever, then each year", 0.3, "p01inj{s}", "v##inj{s}12"),
    _feature("surgery", "knee operated: ever, then each year", 0.3, "p01ksurg{s}", "v##ksrg{s}12"),
    _feature("activity", "physical activity score (PASE)", 0.3, "v00pase", "v##pase"),
    Clinical(
        Measurement(
            "sf12", "SF-12: physical and mental summary", 0.3,
            columns=("sf12_physical", "sf12_mental"),
        ),
        (
            Source("sf12_physical", "v00hspss", "v##hspss"),
            Source("sf12_mental", "v00hsmss", "v##hsmss"),
        ),
    ),
    _feature("systolic", "systolic pressure", 0.5, "v00bpsys", "v##bpsys", unit="mmHg"),
    _feature("diastolic", "diastolic pressure", 0.5, "v00bpdias", "v##bpdias", unit="mmHg"),
    _feature("bmi", "body mass index", 0.5, "p01bmi", "v##bmi", unit="kg/m²"),
)  # fmt: skip
WIDTHS = {f"jsw_{x}": f"v##ljsw{x}" for x in range(700, 901, 25)} | {"jsw_min": "v##mcmjsw"}
JOINT_SPACE = tuple(
    Measurement("jsw_min", "minimum medial joint space width", 1.0, "mm", "radiograph")
    if name == "jsw_min"
    else Measurement(name, f"joint space width at x = .{name[-3:]}", 0.8, "mm", "radiograph")
    for name in WIDTHS
)


class Study:
    """The files of one download (by name in lower case), read visit by visit."""

    def __init__(
        self, files: Mapping[str, Path], task: Task, clinical: Sequence[Clinical], log: LoadLog
    ) -> None:
        self.files, self.task, self.log = files, task, log
        self.sources = [s for feature in clinical for s in feature.sources]
        self.folder = files["enrollees"].parent
        self.found: set[str] = set()
        self.strangers: set[int] = set()
        self.roster = by_patient(files["enrollees"], self._names("00"), log)

    def _names(self, visit: str) -> list[str]:
        """Clinical columns of a visit, with the pain score if it is the label."""
        names = [s.name_at(visit, side) for s in self.sources for side in SIDES.values()]
        if self.task == "womac":
            names += [f"v{visit}womkp{side}" for side in SIDES.values()]
        return sorted({n for n in names if n and n != SIDE})

    def rows(self, visits: Sequence[str], projects: Mapping[str, int]) -> pd.DataFrame:
        """One row per knee and visit that took place."""
        import pandas as pd

        first = self._clinical("00")
        frames = []
        for slot, visit in enumerate(visits):
            table = first if visit == "00" else self._clinical(visit)
            frame = self._one_visit(visit, table, first, projects[visit])
            frames.append(frame.assign(slot=slot))
        self.log.drop(len(self.strangers), "patients", "not in Enrollees")
        lost = [s.column for s in self.sources if s.column not in self.found]
        if not self.found & set(WIDTHS):
            lost += WIDTHS
        if lost:
            raise DataError(
                f"No file in '{self.folder}' has a value for {', '.join(repr(c) for c in lost)}. "
                f"Check the column names of these features."
            )
        return pd.concat(frames, ignore_index=True)

    def _clinical(self, visit: str) -> pd.DataFrame:
        """The clinical columns of a visit, by patient; those of the first are in three files."""
        names = self._names(visit)
        table = by_patient(self.files[f"allclinical{visit}"], names, self.log)
        if visit == "00":
            if "subjectchar00" in self.files:
                extra = by_patient(self.files["subjectchar00"], names, self.log)
                table = table.combine_first(extra)
            table = table.combine_first(self.roster)
        self._note_strangers(table.index)
        return table.reindex(self.roster.index)

    def _one_visit(
        self, visit: str, table: pd.DataFrame, first: pd.DataFrame, project: int
    ) -> pd.DataFrame:
        import pandas as pd

        def xrays(family: str, columns: Sequence[str]) -> pd.DataFrame:
            return read_xrays(self.files, family, columns, visit, project, self.log)

        films = xrays("kxr_qjsw_duryea", tuple(WIDTHS.values()))
        self._note_strangers(films.index.get_level_values("id"))
        grades = None
        if self.task == "klg":
            grades = xrays("kxr_sq_bu", ("v##xrkl",))["v##xrkl"]
            self._note_strangers(grades.index.get_level_values("id"))
        sides = []
        for code, letter in SIDES.items():
            index = self.roster.index
            knee = pd.MultiIndex.from_arrays([index, np.full(len(index), code)])
            film = films.reindex(knee)
            measured = {c: numbers(film, p) for c, p in WIDTHS.items()}
            asked, carried = self._asked(visit, letter, code, table, first)
            label = self._label(f"v{visit}womkp{letter}", table, grades, knee)
            values = {**measured, **asked, **carried}
            self.found |= {c for c, v in values.items() if not np.isnan(v).all()}
            came = np.any([~np.isnan(v) for v in (*measured.values(), *asked.values())], axis=0)
            frame = pd.DataFrame({**carried, **asked, **measured, "label": label})
            frame["subject"] = [f"{i}-{letter.upper()}" for i in index]
            frame["group"] = index.to_numpy()
            sides.append(frame[came | (label >= 0)])
        return pd.concat(sides, ignore_index=True)

    def _asked(
        self, visit: str, letter: str, side: int, table: pd.DataFrame, first: pd.DataFrame
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Columns asked at this visit, and columns carried forward from the first."""
        asked, carried = {}, {}
        for source in self.sources:
            if source.first == SIDE:
                carried[source.column] = np.full(len(first), float(side))
            elif source.later is None:
                base = numbers(first, str(source.name_at("00", letter)))
                carried[source.column] = base + source.yearly * VISITS[visit] / 12
            else:
                asked[source.column] = numbers(table, str(source.name_at(visit, letter)))
        return asked, carried

    def _note_strangers(self, patients: pd.Index) -> None:
        self.strangers |= set(patients) - set(self.roster.index)

    def _label(
        self, name: str, table: pd.DataFrame, grades: pd.Series | None, knee: pd.MultiIndex
    ) -> NDArray[np.int64]:
        if grades is not None:
            grade = grades.reindex(knee).to_numpy(float)
            known = np.isin(grade, [0, 1, 2, 3, 4])
            return np.where(known, np.maximum(np.nan_to_num(grade), 1) - 1, -1).astype(np.int64)
        score = numbers(table, name)
        return np.where(np.isnan(score), -1, score >= PAIN_FROM).astype(np.int64)
