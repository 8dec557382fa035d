"""Bootstrap intervals of operating points, by resampling independent units.

A unit is a subject, or a whole group of subjects if the cohort has groups. The two knees of a
patient are alike; drawing them separately would make the intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError
from nocta.core.losses import normalized, pair_losses
from nocta.core.metrics import METRICS, check_metric, tail_loss
from nocta.core.rollout import Rollout
from nocta.evaluation.ranking import weighted_ranking


@dataclass(frozen=True)
class Bands:
    """Cost and quality of some operating points with percentile intervals, `(k,)` each."""

    costs: NDArray[np.float64]  # mean cost per subject
    qualities: NDArray[np.float64]  # the metric
    cost_low: NDArray[np.float64]
    cost_high: NDArray[np.float64]
    quality_low: NDArray[np.float64]
    quality_high: NDArray[np.float64]
    #: `(k, n_resamples)` the metric in every resample. Resample `i` has the same subjects at every
    #: operating point of one cohort, so differences are paired.
    samples: NDArray[np.float64]


def bootstrap_bands(
    rollouts: Sequence[Rollout],
    metric: str = "accuracy",
    n_resamples: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
) -> Bands:
    """Percentile intervals of cost and quality over subjects drawn with replacement.

    Subjects are drawn, never single visits, because visits of one subject are alike. If the cohort
    has groups, whole groups are drawn. Metrics that are means over predictions are resampled in
    one array operation, ranking metrics with one sort. There is one roll-out per operating point.
    """
    check_metric(metric)
    if not rollouts or min(len(np.unique(r.units)) for r in rollouts) < 2:
        raise ConfigError(
            "A bootstrap needs roll-outs of at least two subjects (two groups if there are groups)."
        )
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    qualities, samples, cost_ends = [], [], []
    for rollout in rollouts:
        units = _Units.of(rollout)
        n = len(units.sizes)
        draws = np.random.default_rng(seed).integers(n, size=(n_resamples, n))
        statistic = _statistic(rollout, metric, units)
        qualities.append(float(statistic(np.arange(n)[None])[0]))
        samples.append(statistic(draws))
        costs = _mean(units.total(rollout.costs), units.sizes)(draws)
        cost_ends.append(np.quantile(costs, tails))
    ends = np.array([_quantiles(sample, tails) for sample in samples])
    return Bands(
        costs=np.array([r.cost for r in rollouts]),
        qualities=np.array(qualities),
        cost_low=np.array(cost_ends)[:, 0],
        cost_high=np.array(cost_ends)[:, 1],
        quality_low=ends[:, 0],
        quality_high=ends[:, 1],
        samples=np.array(samples),
    )


def resampled_rows(
    rollout: Rollout, n_resamples: int = 200, seed: int = 0
) -> list[NDArray[np.int64]]:
    """The subjects of each resample; the same ones for every roll-out of one cohort."""
    units = _Units.of(rollout)
    n = len(units.sizes)
    draws = np.random.default_rng(seed).integers(n, size=(n_resamples, n))
    return [units.subjects(draw) for draw in draws]


@dataclass(frozen=True)
class _Units:
    """The units to draw, each of one or more subjects."""

    of_subject: NDArray[np.int64]  # (n,) the unit of every subject
    sizes: NDArray[np.int64]  # (u,) subjects per unit
    order: NDArray[np.int64]  # (n,) subjects, unit by unit
    starts: NDArray[np.int64]  # (u,) position of the first subject of each unit in `order`

    @classmethod
    def of(cls, rollout: Rollout) -> _Units:
        units = rollout.units
        sizes = np.bincount(units)
        return cls(units, sizes, np.argsort(units, kind="stable"), np.cumsum(sizes) - sizes)

    def total(self, amounts: NDArray[Any]) -> NDArray[np.float64]:
        """Sum over the subjects of each unit, `(u,)`."""
        return np.asarray(np.bincount(self.of_subject, weights=amounts), dtype=float)

    def subjects(self, draw: NDArray[np.int64]) -> NDArray[np.int64]:
        """The subjects of these units; a unit drawn twice gives its subjects twice."""
        sizes = self.sizes[draw]
        shift = self.starts[draw] - (np.cumsum(sizes) - sizes)
        return np.asarray(self.order[np.repeat(shift, sizes) + np.arange(sizes.sum())])


#: From `(r, u)` rows of units to the metric of each of the `r` resamples.
Statistic = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def _statistic(rollout: Rollout, metric: str, units: _Units) -> Statistic:
    labels, probabilities = rollout.labels, rollout.probabilities
    labeled = labels >= 0
    cells = _cell_scores(rollout, metric)
    if cells is not None:
        sums = np.where(labeled, cells, 0.0).sum(axis=1)
        return _mean(units.total(sums), units.total(labeled.sum(axis=1)))
    if metric == "tail_loss":
        losses = pair_losses(labels, probabilities)
        return lambda draws: np.array([tail_loss(losses[units.subjects(d)]) for d in draws])
    if metric in ("ap", "roc_auc"):
        pairs = units.of_subject[np.nonzero(labeled)[0]]
        truth, predicted = labels[labeled], probabilities[labeled]

        def ranking(draws: NDArray[np.int64]) -> NDArray[np.float64]:
            counts = np.stack([np.bincount(d, minlength=len(units.sizes)) for d in draws])
            return weighted_ranking(metric, truth, predicted, counts[:, pairs].astype(float))

        return ranking
    score = METRICS[metric]

    def one_by_one(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        chosen = ((rows, labeled[rows]) for rows in map(units.subjects, draws))
        return np.array([score(labels[r][cells], probabilities[r][cells]) for r, cells in chosen])

    return one_by_one


def _cell_scores(rollout: Rollout, metric: str) -> NDArray[np.float64] | None:
    """The value of each (subject, time) pair, `(n, L)`, if the metric is a mean over pairs."""
    labels, probabilities = rollout.labels, rollout.probabilities
    if metric == "accuracy":
        return np.asarray(probabilities.argmax(axis=2) == labels, dtype=float)
    if metric == "cross_entropy":
        return pair_losses(labels, probabilities)
    if metric == "brier":
        n_classes = probabilities.shape[2]
        truth = np.eye(n_classes)[np.maximum(labels, 0)]
        squares = ((normalized(probabilities) - truth) ** 2).sum(axis=2)
        return np.asarray(squares / 2 if n_classes == 2 else squares)
    return None


def _mean(sums: NDArray[np.float64], counts: NDArray[Any]) -> Statistic:
    """Mean over cases, from sums and counts per unit."""

    def statistic(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):  # no label in a whole resample
            return np.asarray(sums[draws].sum(axis=1) / counts[draws].sum(axis=1))

    return statistic


def _quantiles(sample: NDArray[np.float64], tails: list[float]) -> NDArray[np.float64]:
    """Quantiles over the resamples in which the metric is defined."""
    defined = sample[~np.isnan(sample)]
    return np.quantile(defined, tails) if defined.size else np.full(2, np.nan)
