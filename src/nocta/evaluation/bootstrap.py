"""How far an operating point could have come out otherwise: resampling subjects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.evaluation.metrics import METRICS, check_metric, tail_loss
from nocta.evaluation.rollout import Rollout
from nocta.exceptions import ConfigError
from nocta.predictors.losses import normalised, pair_losses


@dataclass(frozen=True)
class Bands:
    """Cost and quality of some operating points with percentile intervals, `(k,)` each.

    Args:
        costs: Mean cost per subject.
        qualities: The metric.
        cost_low: Lower end of the interval of the cost; `cost_high` is the upper end.
        cost_high: See `cost_low`.
        quality_low: Lower end of the interval of the metric.
        quality_high: Upper end.
        samples: `(k, n_resamples)` the metric in every resample. Resample `i` holds the same
            subjects at every operating point of one cohort, so differences are paired.
    """

    costs: NDArray[np.float64]
    qualities: NDArray[np.float64]
    cost_low: NDArray[np.float64]
    cost_high: NDArray[np.float64]
    quality_low: NDArray[np.float64]
    quality_high: NDArray[np.float64]
    samples: NDArray[np.float64]


def bootstrap_bands(
    rollouts: Sequence[Rollout],
    metric: str = "accuracy",
    n_resamples: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
) -> Bands:
    """Percentile intervals of cost and quality over subjects drawn with replacement.

    Subjects are drawn, never single visits: visits of one subject are alike. Metrics that are
    means over predictions are resampled in one array operation; ranking metrics one by one.

    Args:
        rollouts: One per operating point.
        metric: Any of `nocta.evaluation.metrics`.
        n_resamples: More gives steadier ends.
        seed: Same seed, same bands.
        confidence: Share of the resamples inside the band.
    """
    check_metric(metric)
    if not rollouts or min(len(r) for r in rollouts) < 2:
        raise ConfigError("A bootstrap needs roll-outs of at least two subjects.")
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    qualities, samples, cost_ends = [], [], []
    for rollout in rollouts:
        statistic, is_vectorized = _statistic(rollout, metric)
        qualities.append(float(statistic(np.arange(len(rollout)))))
        samples.append(_resample(statistic, is_vectorized, len(rollout), n_resamples, seed))
        mean_cost = _mean(rollout.costs, np.ones(len(rollout)))
        costs = _resample(mean_cost, True, len(rollout), n_resamples, seed)
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


Statistic = Callable[..., Any]


def _resample(
    statistic: Statistic, vectorized: bool, n: int, n_resamples: int, seed: int
) -> NDArray[np.float64]:
    """The statistic of `n_resamples` draws of `n` rows; same seed, same draws."""
    from scipy.stats import bootstrap  # slow to import

    result = bootstrap(
        (np.arange(n),),
        statistic,
        n_resamples=n_resamples,
        vectorized=vectorized,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    return np.asarray(result.bootstrap_distribution)


def _statistic(rollout: Rollout, metric: str) -> tuple[Statistic, bool]:
    """From rows to the metric, and whether it takes many sets of rows at once."""
    labels, probabilities = rollout.labels, rollout.probabilities
    if metric == "tail_loss":
        losses = pair_losses(labels, probabilities)
        return (lambda rows: tail_loss(losses[rows])), False
    cells = _cell_scores(rollout, metric)
    if cells is not None:
        labelled = labels >= 0
        sums = np.where(labelled, cells, 0.0).sum(axis=1)
        return _mean(sums, labelled.sum(axis=1).astype(float)), True
    score = METRICS[metric]

    def pooled(rows: NDArray[np.int64]) -> float:
        chosen = labels[rows] >= 0
        return score(labels[rows][chosen], probabilities[rows][chosen])

    return pooled, False


def _cell_scores(rollout: Rollout, metric: str) -> NDArray[np.float64] | None:
    """The share of every (subject, time) pair in a metric that is a mean, `(n, L)`."""
    labels, probabilities = rollout.labels, rollout.probabilities
    if metric == "accuracy":
        return np.asarray(probabilities.argmax(axis=2) == labels, dtype=float)
    if metric == "cross_entropy":
        return pair_losses(labels, probabilities)
    if metric == "brier":
        n_classes = probabilities.shape[2]
        truth = np.eye(n_classes)[np.maximum(labels, 0)]
        squares = ((normalised(probabilities) - truth) ** 2).sum(axis=2)
        return np.asarray(squares / 2 if n_classes == 2 else squares)
    return None


def _mean(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Statistic:
    def statistic(rows: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
        total = counts[rows].sum(axis=axis)
        with np.errstate(invalid="ignore"):  # no label in the whole resample
            return np.asarray(sums[rows].sum(axis=axis) / total)

    return statistic


def _quantiles(sample: NDArray[np.float64], tails: list[float]) -> NDArray[np.float64]:
    """Quantiles of the resamples in which the metric was defined."""
    defined = sample[~np.isnan(sample)]
    return np.quantile(defined, tails) if defined.size else np.full(2, np.nan)
