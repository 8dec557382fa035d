"""What the report shows: records of finished jobs, averaged over seeds.

Curves show every operating point. Everything else (quality over time, calibration, dynamics,
ledger) shows the leading method at its recommended point, and each other method at its point
nearest to that cost, so methods are compared at about the same cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.currency import money
from nocta.core.metrics import N_CALIBRATION_BINS
from nocta.report.plots.dynamics import Dynamics, TimeAxis
from nocta.report.plots.style import legend_order
from nocta.report.published import PaperTable, published_for
from nocta.runs.compare import Comparison
from nocta.runs.recommended import shown_index
from nocta.runs.record import CalibrationCurve, JobRecord, PointDetails, Together
from nocta.runs.summary import mean_and_error

if TYPE_CHECKING:
    import pandas as pd

#: Bins with a smaller share of the pairs are too noisy to draw.
MIN_BIN_SHARE = 0.01

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
#: Largest relative distance from the reference cost that counts as near.
_NEAR = 0.25


class ReportView:
    """A comparison with at least one finished job, ready to be drawn and tabulated.

    The reference cost is by default that of the leading method's recommended point.
    """

    def __init__(self, comparison: Comparison, reference_cost: float | None = None) -> None:
        self.comparison = comparison
        self._reference_cost = reference_cost
        self.cohort = comparison.records[0].cohort
        self.methods = legend_order(comparison.methods)

    @property
    def axis(self) -> TimeAxis:
        return TimeAxis(tuple(self.cohort.slot_times), self.cohort.time_unit, self.currency)

    @property
    def currency(self) -> str:
        return self.cohort.catalog.currency

    def price(self, cost: float) -> str:
        return money(cost, self.currency)

    @property
    def lead(self) -> str:
        """The method to look at first: NOCTA's first, or else the first that has a choice.

        It does not depend on any result.
        """
        methods = self.comparison.methods
        ours = [m for m in methods if m.startswith("nocta-")]
        points = self.comparison.results.groupby("method")["setting"].nunique()
        return next((m for m in (*ours, *methods) if m in ours or points[m] > 1), methods[0])

    def records_of(self, method: str) -> list[JobRecord]:
        return [r for r in self.comparison.records if r.job.label == method]

    @cached_property
    def recommended(self) -> list[PointDetails]:
        """The recommended operating point of the leading method, by seed."""
        quality = self.comparison.quality
        records = self.records_of(self.lead)
        return [r.details[shown_index(r, quality)] for r in records]

    @property
    def rule(self) -> str:
        """How the recommended point was chosen; completes "It is ..."."""
        known = [r.recommended for r in self.records_of(self.lead)]
        first = known[0]
        if first is None or None in known:
            return (
                "the cheapest point within one standard error of the best on the subjects it is "
                "judged on, which flatters it: these results hold no point that validation chose"
            )
        return first.reason

    @cached_property
    def reference_cost(self) -> float:
        if self._reference_cost is not None:
            return self._reference_cost
        return float(np.mean([entry.cost for entry in self.recommended]))

    @cached_property
    def chosen(self) -> dict[str, list[PointDetails]]:
        """By method and seed, the operating point that is shown."""
        out = {
            method: [
                min(record.details, key=lambda d: abs(d.cost - self.reference_cost))
                for record in self.records_of(method)
            ]
            for method in self.methods
        }
        return out if self._reference_cost is not None else {**out, self.lead: self.recommended}

    def far_from_reference(self) -> dict[str, float]:
        """Methods without a point near the reference cost, and the mean cost of the point shown."""
        costs = {
            method: float(np.mean([entry.cost for entry in entries]))
            for method, entries in self.chosen.items()
            if entries and method not in ("nothing", "everything")
        }
        most = _NEAR * self.reference_cost
        return {m: cost for m, cost in costs.items() if abs(cost - self.reference_cost) > most}

    def over_time(self, metric: str) -> dict[str, Pair]:
        """By method, mean and standard error of a metric at each slot."""
        return {
            method: _over_seeds(entry.per_time[metric] for entry in entries)
            for method, entries in self.chosen.items()
        }

    def calibration(self) -> dict[str, Pair]:
        """By method, the reliability curve of all seeds together."""
        curves = {
            method: _merge_bins([e.calibration for e in entries if e.calibration])
            for method, entries in self.chosen.items()
        }
        return {method: curve for method, curve in curves.items() if len(curve[0])}

    def dynamics(self) -> list[Dynamics]:
        """Acquisition over time of each method that acquires anything."""
        out = []
        for method, entries in self.chosen.items():
            stops = np.array([_shares(e.stop_histogram) for e in entries]).mean(axis=0)
            found = Dynamics(
                method=method,
                cost_per_time=_mean(e.per_time["cost"] for e in entries),
                stop_share=stops,
                acquired=_mean(e.acquired for e in entries),
                features=self.cohort.catalog.names,
                together=_mean_pairs([e.together for e in entries]),
            )
            if found.cost > 0:
                out.append(found)
        return out

    def ledger(self) -> tuple[list[str], list[tuple[str, list[float]]]]:
        """Methods, and one row of mean charges per item."""
        spending = {
            method: {
                item: float(np.mean([e.ledger[item] for e in entries]))
                for item in entries[0].ledger
            }
            for method, entries in self.chosen.items()
        }
        methods = [m for m in self.methods if sum(spending[m].values()) > 0]
        items = list(next(iter(spending.values())))
        rows = [(item, [spending[m][item] for m in methods]) for item in items]
        rows = [row for row in rows if any(row[1])]
        rows.sort(key=lambda row: -max(row[1]))
        return methods, rows

    def frontier_rows(self) -> pd.DataFrame:
        """The results with a band per row, for a comparison of a single seed."""
        rows = self.comparison.results.copy()
        details = [entry for record in self.comparison.records for entry in record.details]
        bands = [entry.band or (math.nan, math.nan) for entry in details]
        rows["low"], rows["high"] = ([band[i] for band in bands] for i in (0, 1))
        return rows

    @property
    def cost_of_everything(self) -> tuple[float, float]:
        """Mean over seeds, and standard error, of what everything recorded costs a test subject."""
        by_seed = {r.job.seed: r.cohort.cost_of_everything for r in self.comparison.records}
        return mean_and_error(list(by_seed.values()))

    @property
    def paper(self) -> PaperTable | None:
        """The paper's own results on these data."""
        return published_for(self.comparison.setup.source)


def _over_seeds(rows: Iterable[list[float]]) -> Pair:
    table = np.array(list(rows), dtype=float)
    pairs = [mean_and_error(column[~np.isnan(column)]) for column in table.T]
    return np.array([mean for mean, _ in pairs]), np.array([error for _, error in pairs])


def _mean(tables: Iterable[Any]) -> NDArray[np.float64]:
    return np.asarray(np.mean([np.array(t, dtype=float) for t in tables], axis=0))


def _mean_pairs(tables: list[list[Together]]) -> tuple[Together, ...]:
    """Pairs averaged over seeds, most often first; a pair that a seed did not keep counts as 0."""
    total: dict[tuple[int, int, int, int], float] = {}
    for t, m, later, other, share in (pair for table in tables for pair in table):
        key = (t, m, later, other)
        total[key] = total.get(key, 0.0) + share / len(tables)
    found = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple((*key, share) for key, share in found)


def _shares(counts: list[int]) -> NDArray[np.float64]:
    found = np.array(counts, dtype=float)
    return np.asarray(found / max(found.sum(), 1.0))


def _merge_bins(curves: list[CalibrationCurve]) -> Pair:
    """Pool reliability curves by bin, weighted by their pairs; tiny bins are left out."""
    if not curves:
        return np.zeros(0), np.zeros(0)
    stated, observed, counts = (
        np.concatenate([np.array(getattr(c, key), dtype=float) for c in curves])
        for key in ("stated", "observed", "counts")
    )
    bins = np.minimum((stated * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1)
    total = np.bincount(bins, counts, minlength=N_CALIBRATION_BINS)
    filled = total >= MIN_BIN_SHARE * total.sum()
    means = [
        np.bincount(bins, counts * v, minlength=N_CALIBRATION_BINS)[filled] / total[filled]
        for v in (stated, observed)
    ]
    return means[0], means[1]
