"""Turns the OAI files into rows: one per knee and visit that took place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError
from nocta.datasets._load_log import LoadLog
from nocta.datasets._oai_features import SIDE, WIDTHS, Clinical
from nocta.datasets._oai_files import SIDES, VISITS, by_patient, numbers, read_xrays

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["womac", "klg"]
PAIN_FROM = 5


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
