"""What a model keeps of its training subjects: ranges, shares of missing values, label rates.

It is small and holds no subject's values: quantiles of columns, and counts of frequent values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.runs.results import plain

#: Maximum number of subjects that are summarized or compared, an even sample.
MOST_SUBJECTS = 50_000
#: A column with at most this many values is counted value by value.
MAX_LEVELS = 10
#: The range of a column leaves out this share of its values at either end.
TAIL = 0.01


@dataclass(frozen=True)
class ColumnSummary:
    """One column of the context, of a feature, or the label.

    Args:
        name: Name of the column; `label` for the label.
        role: Where it belongs.
        low: Low end of the usual range: a quantile, or the lowest of few values.
        high: High end of it.
        cuts: Ends of the bins in which values are counted: deciles, or between few values.
        shares: Share of the known values in each bin, one more than cuts.
        missing: Share of unknown values, of the subjects or of the visits that took place.
        n_subjects: Number of subjects with a known value.
    """

    name: str
    role: Literal["context", "feature", "label"]
    low: float
    high: float
    cuts: list[float]
    shares: list[float]
    missing: float
    n_subjects: int

    @classmethod
    def of(cls, name: str, role: Any, values: NDArray[Any], there: NDArray[np.bool_]) -> Self:
        """Summarize `(n, k)` values, NaN if unknown, at the visits that are `there`."""
        known = there & ~np.isnan(values)
        found = values[known].astype(float)
        levels = np.unique(found)
        if role == "label":
            levels = np.arange(levels.max(initial=0.0) + 1)
        if len(levels) <= MAX_LEVELS or role == "label":
            cuts = (levels[1:] + levels[:-1]) / 2
            low, high = (levels[0], levels[-1]) if len(levels) else (np.nan, np.nan)
        else:
            cuts = np.unique(np.quantile(found, np.linspace(0.1, 0.9, 9)))
            low, high = np.quantile(found, [TAIL, 1 - TAIL])
        cuts = np.array([float(f"{cut:.9g}") for cut in cuts])
        return cls(
            name=name,
            role=role,
            low=float(low),
            high=float(high),
            cuts=cuts.tolist(),
            shares=bin_shares(found, cuts),
            missing=float(1 - known.sum() / max(there.sum(), 1)),
            n_subjects=int(known.any(axis=1).sum()),
        )


def bin_shares(values: NDArray[np.float64], cuts: Any) -> list[float]:
    """Share of the values in each bin; a value at a cut is in the bin above it."""
    # In the precision in which values are stored, so that equal numbers stay equal.
    ends, found = np.asarray(cuts, dtype=np.float32), values.astype(np.float32)
    counts = np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(ends) + 1)
    return [round(float(share), 6) for share in counts / max(counts.sum(), 1)]


@dataclass(frozen=True)
class TrainingSummary:
    """All columns, the label last."""

    n_subjects: int
    columns: list[ColumnSummary]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of a model."""
        return {"n_subjects": self.n_subjects, "columns": [plain(c) for c in self.columns]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        known: list[dict[str, Any]] = [
            {name: np.nan if value is None else value for name, value in column.items()}
            for column in data["columns"]
        ]
        return cls(data["n_subjects"], [ColumnSummary(**column) for column in known])


def summarize_training(train: Cohort) -> TrainingSummary:
    """Summarize the subjects a model learns from."""
    some = train.sample(MOST_SUBJECTS)
    columns = [ColumnSummary.of(*entry) for entry in columns_of(some)]
    return TrainingSummary(len(train), columns)


def columns_of(cohort: Cohort) -> list[tuple[str, str, NDArray[Any], NDArray[np.bool_]]]:
    """Name, role, values `(n, k)` and which of them could be known, of every column."""
    catalog = cohort.catalog
    out: list[tuple[str, str, NDArray[Any], NDArray[np.bool_]]] = []
    for name, values in zip(catalog.context, cohort.context.T, strict=True):
        out.append((name, "context", values[:, None], np.ones((len(cohort), 1), dtype=bool)))
    for d, (name, m) in enumerate(zip(catalog.columns, catalog.owner, strict=True)):
        there = cohort.visits & catalog.open_slots[:, m]
        out.append((name, "feature", cohort.values[:, :, d], there))
    labels = np.where(cohort.labels >= 0, cohort.labels, np.nan)
    return [*out, ("label", "label", labels, cohort.visits)]
