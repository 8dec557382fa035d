"""What a user may ask of an operating point, and what it means.

Each goal measures every candidate, with intervals over subjects, and says which one to take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nocta.core.currency import money
from nocta.core.metrics import LOWER_IS_BETTER
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import bootstrap_bands, resampled_rows
from nocta.evaluation.detection import Positive, detect, scores_of
from nocta.evaluation.one_error import UnitLosses

Floats = NDArray[np.float64]
#: What `scores_of` gives.
_Scored = tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]


@dataclass(frozen=True)
class Measured:
    """One number of every candidate with its 95 % interval, `(k,)` each."""

    name: str
    values: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Verdict:
    """The candidate to take, or none, and why in a sentence without its end."""

    index: int | None
    reason: str
    #: Decision threshold that goes with it, if the goal sets one.
    threshold: float | None = None


@dataclass(frozen=True, kw_only=True)
class Goal(ABC):
    """Something asked of an operating point; `currency` is for sentences only."""

    currency: str = field(default="")
    #: Name in records.
    kind: ClassVar[str]

    @abstractmethod
    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        """What the goal looks at, for every candidate."""

    @abstractmethod
    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        """Which candidate to take; candidates are in order of cost."""


@dataclass(frozen=True, kw_only=True)
class AtMostCost(Goal):
    """The lowest loss of the points that cost at most this much a subject, on average."""

    kind = "at-most-cost"
    limit: float

    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        bands = bootstrap_bands(rollouts, "cross_entropy")
        return Measured("cost", bands.costs, bands.cost_low, bands.cost_high)

    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        fits = measured.values <= self.limit + 1e-9
        limit = money(self.limit, self.currency)
        if not fits.any():
            cheapest = money(float(measured.values.min()), self.currency)
            return Verdict(None, f"every point costs more than {limit}; the cheapest {cheapest}")
        losses = np.array([UnitLosses.of(rollout).mean for rollout in rollouts])
        found = int(np.where(fits, losses, np.inf).argmin())
        return Verdict(
            found, f"the lowest loss of the points that cost at most {limit} a subject on average"
        )


@dataclass(frozen=True, kw_only=True)
class Within(Goal):
    """The cheapest point within this share of the best value of a metric."""

    kind = "within"
    share: float
    metric: str = "ap"

    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        bands = bootstrap_bands(rollouts, self.metric)
        return Measured(self.metric, bands.qualities, bands.quality_low, bands.quality_high)

    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        lower = self.metric in LOWER_IS_BETTER
        values = measured.values
        if np.isnan(values).all():
            return Verdict(None, f"{self.metric} is not defined on these subjects")
        best = float(np.nanmin(values) if lower else np.nanmax(values))
        close = values <= best * (1 + self.share) if lower else values >= best * (1 - self.share)
        return Verdict(
            _cheapest(rollouts, close),
            f"the cheapest point within {self.share:.3g} of the best {self.metric} ({best:.3f}), "
            f"as a share of it",
        )


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Goal):
    """The cheapest point with at least this sensitivity at a specificity, over visits."""

    kind = "sensitivity"
    at_least: float
    specificity: float = 0.8
    positive: Positive = field(default_factory=Positive)

    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        def sensitivity(rollout: Rollout, rows: NDArray[np.int64]) -> float:
            truth, scores, labeled = _rows(scores_of(rollout, self.positive), rows)
            return detect(truth, scores, labeled, self.specificity).sensitivity

        return _bootstrapped("sensitivity", rollouts, sensitivity)

    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        asked = f"{self.at_least:.0%} sensitivity at {self.specificity:.0%} specificity"
        good = measured.values >= self.at_least - 1e-9
        if not good.any():
            found = float(np.nan_to_num(measured.values, nan=0.0).max())
            return Verdict(None, f"no point reaches {asked}; the best reaches {found:.0%}")
        i = _cheapest(rollouts, good)
        threshold = detect(*scores_of(rollouts[i], self.positive), self.specificity).threshold
        return Verdict(i, f"the cheapest point with at least {asked}", threshold)


@dataclass(frozen=True, kw_only=True)
class CostPerCase(Goal):
    """The most expensive point up to which one more case found costs at most this much.

    A case is a subject with a positive visit; it is found if one of these visits is predicted
    positive, at a threshold that keeps the specificity over visits. Points that a mixture of a
    cheaper and a more expensive one beats are passed over.
    """

    kind = "cost-per-case"
    limit: float
    specificity: float = 0.8
    positive: Positive = field(default_factory=Positive)

    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        """Cost of one more case found than at the next cheaper point worth taking."""
        every = [np.arange(len(rollouts[0])), *resampled_rows(rollouts[0])]
        scored = [scores_of(rollout, self.positive) for rollout in rollouts]
        costs = np.array([[r.costs[rows].mean() for r in rollouts] for rows in every])
        cases = np.array([[self._cases(s, rows) for s in scored] for rows in every])
        kept = stairs(costs[0], cases[0])
        values, low, high = (np.full(len(rollouts), np.nan) for _ in range(3))
        for before, i in pairwise(kept):
            more, found = costs[:, i] - costs[:, before], cases[:, i] - cases[:, before]
            ratios = np.where(found > 0, more / np.where(found > 0, found, 1.0), np.inf)
            values[i] = ratios[0]
            low[i], high[i] = np.quantile(ratios[1:], [0.025, 0.975], method="nearest")
        return Measured("cost of one more case found", values, low, high)

    def _cases(
        self,
        scored: _Scored,
        rows: NDArray[np.int64],
    ) -> float:
        truth, scores, labeled = _rows(scored, rows)
        return detect(truth, scores, labeled, self.specificity).cases

    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        limit = money(self.limit, self.currency)
        worth = np.flatnonzero(measured.values <= self.limit)
        at = f"one more case found costs at most {limit} (at {self.specificity:.0%} specificity)"
        if not len(worth):
            start = _cheapest(rollouts, np.ones(len(rollouts), dtype=bool))
            return Verdict(start, f"the cheapest point; no step beyond it is one where {at}")
        return Verdict(int(worth[-1]), f"the most expensive point up to which {at}")


def stairs(costs: Floats, gains: Floats) -> list[int]:
    """Points of the upper concave hull in order of cost, from the cheapest to the largest gain.

    Example:
        >>> stairs(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.1, 0.8, 0.7]))
        [0, 2]
    """
    kept: list[int] = []
    for i in np.lexsort((-gains, costs)):
        if kept and gains[i] <= gains[kept[-1]]:
            continue
        while len(kept) > 1:
            a, b = kept[-2:]
            flatter = (gains[b] - gains[a]) * (costs[i] - costs[a])
            if flatter > (gains[i] - gains[a]) * (costs[b] - costs[a]):
                break
            kept.pop()
        kept.append(int(i))
    return kept


def _rows(scored: _Scored, rows: NDArray[np.int64]) -> _Scored:
    truth, scores, labeled = scored
    return truth[rows], scores[rows], labeled[rows]


def _cheapest(rollouts: Sequence[Rollout], good: NDArray[np.bool_]) -> int:
    return min(np.flatnonzero(good).tolist(), key=lambda i: (rollouts[i].cost, i))


def _bootstrapped(
    name: str,
    rollouts: Sequence[Rollout],
    statistic: Callable[[Rollout, NDArray[np.int64]], float],
) -> Measured:
    values, low, high = [], [], []
    for rollout in rollouts:
        values.append(statistic(rollout, np.arange(len(rollout))))
        sample = np.array([statistic(rollout, rows) for rows in resampled_rows(rollout)])
        known = sample[~np.isnan(sample)]
        ends = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
        low.append(ends[0])
        high.append(ends[1])
    return Measured(name, np.array(values), np.array(low), np.array(high))
