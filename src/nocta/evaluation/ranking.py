"""Average precision and ROC AUC of many resamples at once.

A resample says how often each pair counts. Scores are sorted once; all resamples then need only
cumulative sums of these counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Resamples times pairs that are held in memory at once.
_MOST_CELLS = 4_000_000


def weighted_ranking(
    metric: str,
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating[Any]],
    weights: NDArray[np.floating[Any]],
) -> Floats:
    """The metric (`"ap"` or `"roc_auc"`) in each of `r` resamples, `(r,)`; NaN if undefined.

    Args:
        metric: As `nocta.core.metrics` defines it, macro over the classes that occur.
        labels: `(p,)` true classes.
        probabilities: `(p, C)`.
        weights: `(r, p)` how often each pair counts.

    Example:
        >>> chances = np.array([[.9, .1], [.6, .4], [.65, .35], [.2, .8]])
        >>> weighted_ranking("roc_auc", np.array([0, 0, 1, 1]), chances, np.ones((1, 4))).tolist()
        [0.75]
    """
    at_once = max(1, _MOST_CELLS // max(len(labels), 1))
    pieces = [weights[i : i + at_once] for i in range(0, len(weights), at_once)]
    found = [_some(metric, labels, probabilities, np.asarray(p, dtype=float)) for p in pieces]
    return np.concatenate(found) if found else np.zeros(0)


def _some(
    metric: str,
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating[Any]],
    weights: Floats,
) -> Floats:
    n_classes = probabilities.shape[1]
    score: Callable[[Floats, Floats], Floats] = _precision if metric == "ap" else _area
    total, count = np.zeros(len(weights)), np.zeros(len(weights))
    for c in range(1, 2) if n_classes == 2 else range(n_classes):
        order = np.argsort(-probabilities[:, c], kind="stable")
        scores = probabilities[order, c]
        last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(order) else order
        ours = labels[order] == c
        sorted_weights = weights[:, order]
        hits = np.cumsum(sorted_weights * ours, axis=1)[:, last]
        misses = np.cumsum(sorted_weights * ~ours, axis=1)[:, last]
        if not len(last):
            continue
        defined = (hits[:, -1] > 0) & (misses[:, -1] > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            total += np.where(defined, score(hits, misses), 0.0)
        count += defined
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _precision(hits: Floats, misses: Floats) -> Floats:
    """Precision at every threshold, weighted by the recall that the threshold adds."""
    all_above = hits + misses
    precision = np.divide(hits, all_above, out=np.zeros_like(hits), where=all_above > 0)
    added = np.diff(hits, axis=1, prepend=0.0)
    return np.asarray((precision * added).sum(axis=1) / hits[:, -1])


def _area(hits: Floats, misses: Floats) -> Floats:
    """Area under the curve of hits against misses, by trapezoids."""
    before = np.concatenate([np.zeros((len(hits), 1)), hits[:, :-1]], axis=1)
    steps = np.diff(misses, axis=1, prepend=0.0)
    area = (steps * (hits + before) / 2).sum(axis=1)
    return np.asarray(area / (hits[:, -1] * misses[:, -1]))
