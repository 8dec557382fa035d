"""Does a model still fit? New data against what it keeps of its training subjects.

The population stability index (PSI) compares the shares of values in the bins of the training
subjects: below 0.1 is usually called stable, above 0.25 a large change. With few subjects it is
large by chance, so a change counts only if it is also larger than chance would make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.methods.saving import SavedMethod
from nocta.runs.training_summary import (
    MOST_SUBJECTS,
    TAIL,
    ColumnSummary,
    TrainingSummary,
    bin_shares,
    columns_of,
)

Level = Literal["stable", "moved", "moved a lot"]
MOVED, MOVED_A_LOT = 0.10, 0.25
#: Larger changes than this happen by chance in one column of a thousand.
_CHANCE = 0.999
#: Smallest share of a bin, so that empty bins do not count without limit.
_LEAST = 1e-3
NOT_RECORDED = "not recorded: this model was fitted by a version that kept no training summary."


@dataclass(frozen=True)
class ColumnDrift:
    """How one column of new data differs from training."""

    name: str
    role: str
    psi: float
    missing_before: float
    missing_now: float
    outside: float  # share of the known values outside the usual range of training
    level: Level


@dataclass(frozen=True)
class Drift:
    """All columns, the label last."""

    columns: list[ColumnDrift]

    @property
    def moved(self) -> list[ColumnDrift]:
        return [column for column in self.columns if column.level != "stable"]

    @property
    def fits(self) -> bool:
        """Whether nothing moved a lot."""
        return all(column.level != "moved a lot" for column in self.columns)

    @property
    def verdict(self) -> str:
        """Whether the model still fits, in a sentence or two."""
        if not self.moved:
            return "The model still fits these data: no input or label differs from training."
        worst = sorted(self.moved, key=lambda c: -max(c.psi, _missing_change(c)))
        names = ", ".join(_words(column) for column in worst[:5])
        more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
        said = f"Different from training: {names}{more}."
        if self.fits:
            return f"The model probably still fits these data. {said}"
        return (
            f"The model may not fit these data. {said} Check its quality and calibration here, "
            f"and fit again on data like these."
        )


def drift_of(model: SavedMethod, cohort: Cohort) -> Drift | None:
    """New data against the training subjects of a model; `None` if it kept no summary."""
    kept = model.record_.get("training")
    return None if kept is None else compare_with_training(TrainingSummary.from_dict(kept), cohort)


def compare_with_training(training: TrainingSummary, cohort: Cohort) -> Drift:
    """Compare every column that training had; of a large cohort, an even sample."""
    some = columns_of(cohort.sample(MOST_SUBJECTS))
    now = {(name, role): (values, there) for name, role, values, there in some}
    return Drift([_compare(c, *now[c.name, c.role]) for c in training.columns])


def _compare(
    before: ColumnSummary, values: NDArray[np.float64], there: NDArray[np.bool_]
) -> ColumnDrift:
    known = there & ~np.isnan(values)
    found = values[known].astype(float)
    # Visits of one subject are alike, so subjects count.
    n = int(known.any(axis=1).sum())
    psi, by_chance = 0.0, np.inf
    if n and before.n_subjects:
        psi = stability_index(before.shares, bin_shares(found, before.cuts))
        by_chance = _largest_by_chance(len(before.shares), n, before.n_subjects)
    missing = float(1 - known.sum() / max(there.sum(), 1))
    tolerance = 1e-6 * max(abs(before.low), abs(before.high), 1.0)
    outside = (found < before.low - tolerance) | (found > before.high + tolerance)
    change = abs(missing - before.missing)
    spread = before.missing * (1 - before.missing) / max(int(there.any(axis=1).sum()), 1)
    gone = change if change > 3.3 * np.sqrt(spread) else 0.0
    size = max(psi if psi > by_chance else 0.0, gone)
    level: Level = "stable" if size <= MOVED else "moved"
    return ColumnDrift(
        name=before.name,
        role=before.role,
        psi=psi,
        missing_before=before.missing,
        missing_now=missing,
        outside=float(outside.mean()) if found.size else 0.0,
        level="moved a lot" if size > MOVED_A_LOT else level,
    )


def stability_index(before: Sequence[float], now: Sequence[float]) -> float:
    """The population stability index of two sets of shares.

    Example:
        >>> round(stability_index([0.5, 0.5], [0.5, 0.5]), 3)
        0.0
        >>> round(stability_index([0.5, 0.5], [0.8, 0.2]), 3)
        0.416
    """
    p, q = (np.maximum(np.asarray(shares, dtype=float), _LEAST) for shares in (before, now))
    return float(((q - p) * np.log(q / p)).sum())


def _largest_by_chance(n_bins: int, n: int, n_before: int) -> float:
    """About the largest index of two samples of the same population."""
    from scipy.stats import chi2

    return float(chi2.ppf(_CHANCE, max(n_bins - 1, 1))) * (1 / n + 1 / n_before)


def _missing_change(column: ColumnDrift) -> float:
    return abs(column.missing_now - column.missing_before)


def _words(column: ColumnDrift) -> str:
    texts = [f"PSI {column.psi:.2f}"] if column.psi > MOVED else []
    if _missing_change(column) > MOVED:
        texts.append(f"missing {column.missing_now:.0%} instead of {column.missing_before:.0%}")
    if column.outside > 5 * TAIL:
        texts.append(f"{column.outside:.0%} outside the usual range")
    return f"{column.name} ({', '.join(texts)})"
