"""How far an operating point could have come out otherwise: resampling subjects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
        n = len(rollout)
        draws = np.random.default_rng(seed).integers(n, size=(n_resamples, n))
        statistic = _statistic(rollout, metric)
        qualities.append(float(statistic(np.arange(n)[None])[0]))
        samples.append(statistic(draws))
        cost_ends.append(np.quantile(rollout.costs[draws].mean(axis=1), tails))
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


#: From `(r, n)` rows of subjects to the metric of each of the `r` resamples.
Statistic = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def _statistic(rollout: Rollout, metric: str) -> Statistic:
    labels, probabilities = rollout.labels, rollout.probabilities
    labelled = labels >= 0
    cells = _cell_scores(rollout, metric)
    if cells is not None:
        sums = np.where(labelled, cells, 0.0).sum(axis=1)
        return _mean(sums, labelled.sum(axis=1).astype(float))
    if metric == "tail_loss":
        losses = pair_losses(labels, probabilities)
        return lambda draws: np.array([tail_loss(losses[rows]) for rows in draws])
    score = METRICS[metric]

    def one_by_one(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        chosen = ((rows, labelled[rows]) for rows in draws)
        return np.array([score(labels[r][cells], probabilities[r][cells]) for r, cells in chosen])

    return one_by_one


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
    def statistic(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):  # no label in a whole resample
            return np.asarray(sums[draws].sum(axis=1) / counts[draws].sum(axis=1))

    return statistic


def _quantiles(sample: NDArray[np.float64], tails: list[float]) -> NDArray[np.float64]:
    """Quantiles of the resamples in which the metric was defined."""
    defined = sample[~np.isnan(sample)]
    return np.quantile(defined, tails) if defined.size else np.full(2, np.nan)
