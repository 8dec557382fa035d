"""What a loader read, what it dropped, and why.

A loader writes to a `LoadLog`. The log and the finished cohort make a `LoadSummary`, which the
command line prints; library code prints nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nocta.core.cohort import Cohort
from nocta.tables.summary import CohortSummary


@dataclass(frozen=True)
class Dropped:
    """Something that was read and is not in the cohort."""

    count: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.what}: {self.why}"


@dataclass
class LoadLog:
    """The log of one loader run; `progress` shows a bar while many files are read."""

    progress: bool = False
    sources: list[str] = field(default_factory=list)
    drops: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def read(self, source: str | Path) -> None:
        """Note a file or folder that was read."""
        self.sources.append(str(source))

    def drop(self, count: int, what: str, why: str) -> None:
        """Note what was left out; counts with the same reason are added."""
        if not count:
            return
        for i, earlier in enumerate(self.drops):
            if (earlier.what, earlier.why) == (what, why):
                self.drops[i] = Dropped(earlier.count + int(count), what, why)
                return
        self.drops.append(Dropped(int(count), what, why))

    def note(self, text: str) -> None:
        """Note a decision the reader should know about."""
        self.notes.append(text)

    def warn(self, text: str) -> None:
        """Note that something looks wrong, although the rest was read."""
        self.warnings.append(text)


def shown_sources(sources: Sequence[str]) -> list[str]:
    """The files that were read, or their number if there are more than four."""
    if len(sources) <= 4:
        return list(sources)
    return [f"{len(sources)} files under {os.path.commonpath(sources)}"]


@dataclass(frozen=True)
class LoadSummary:
    """Subjects, visits, labels, missing values, and everything that was left out."""

    name: str
    sources: tuple[str, ...]
    n_subjects: int
    n_groups: int  # patients, students; fewer than subjects if one has several rows
    n_times: int
    n_visits: int  # that took place
    class_counts: dict[str, int]  # labeled (subject, visit) pairs
    missing: float  # share of values not recorded at the visits that took place
    missing_by_feature: dict[str, float]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]  # decisions of the loader
    warnings: tuple[str, ...] = ()  # what looks wrong, such as missing files
    unit: str = "patient"  # what a group is

    @classmethod
    def of(cls, cohort: Cohort, log: LoadLog, unit: str = "patient") -> LoadSummary:
        """Summarize a loaded cohort; `unit` is what a group of subjects is."""
        counted = CohortSummary.of(cohort)
        rates = counted.missing_by_feature.tolist()
        n_offered = int((cohort.visits[:, :, None] & cohort.catalog.open_slots).sum())
        counts = counted.class_counts.sum(axis=0).tolist()
        groups = cohort.subjects if cohort.groups is None else cohort.groups
        return cls(
            name=cohort.name,
            sources=tuple(log.sources),
            n_subjects=len(cohort),
            n_groups=len(np.unique(groups)),
            n_times=cohort.n_times,
            n_visits=int(cohort.visits.sum()),
            class_counts=dict(zip(cohort.classes, counts, strict=True)),
            missing=float(1 - cohort.recorded.sum() / max(n_offered, 1)),
            missing_by_feature=dict(zip(cohort.catalog.names, rates, strict=True)),
            dropped=tuple(log.drops),
            notes=tuple(log.notes),
            warnings=tuple(log.warnings),
            unit=unit,
        )

    @property
    def n_labels(self) -> int:
        """Labeled (subject, visit) pairs."""
        return sum(self.class_counts.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out and decided, without the warnings."""
        return (*(f"left out {d}" for d in self.dropped), *self.notes)

    def short(self) -> str:
        """What was read, in one line."""
        sources = "; ".join(shown_sources(self.sources))
        return (
            f"{self.name}: {self.n_subjects:,} subjects{self._units()}, "
            f"{self.n_visits:,} visits in {self.n_times} slots, {self.n_labels:,} labels, "
            f"{self.missing:.1%} of the values missing"
            + (f"; read from {sources}." if sources else ".")
        )

    def _units(self) -> str:
        return "" if self.n_groups == self.n_subjects else f" of {self.n_groups:,} {self.unit}s"

    def __str__(self) -> str:
        worst = sorted(self.missing_by_feature.items(), key=lambda item: -item[1])[:3]
        lines = [
            *(f"{self.name}: read {source}" for source in shown_sources(self.sources)),
            f"  subjects  {self.n_subjects:,}{self._units()}",
            f"  visits    {self.n_visits:,} in {self.n_times} slots",
            f"  labels    {self.n_labels:,}: {self._classes()}",
            f"  missing   {self.missing:.1%} of the values at these visits; most: "
            + ", ".join(f"{name} {rate:.0%}" for name, rate in worst),
            *(f"  warning   {w}" for w in self.warnings),
            *(f"  dropped   {d}" for d in self.dropped),
            *(f"  note      {n}" for n in self.notes),
        ]
        return "\n".join(lines)

    def _classes(self) -> str:
        shown = [f"{name} {count:,}" for name, count in self.class_counts.items() if count]
        if len(shown) > 8:
            return f"{len(shown)} of {len(self.class_counts)} classes seen"
        total = max(self.n_labels, 1)
        return ", ".join(
            f"{name} {count:,} ({count / total:.1%})" for name, count in self.class_counts.items()
        )
