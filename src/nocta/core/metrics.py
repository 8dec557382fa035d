"""Metrics of the predictions of a roll-out, pooled over the labeled (subject, time) pairs.

Functions take `(p,)` labels and `(p, C)` probabilities. Ranking metrics (`ap`, `roc_auc`) compare
one class with the rest and average over the classes that occur (macro); with two classes only the
positive class, index 1, counts. A metric that is not defined is NaN, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.detection import DEFAULT_THRESHOLD, find_alarms
from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.losses import normalized, pair_losses
from nocta.core.rollout import Rollout

Labels = NDArray[np.int64]
Probabilities = NDArray[np.floating[Any]]

N_CALIBRATION_BINS = 10
#: Share of the subjects that make up the tail.
TAIL_SHARE = 0.1


def accuracy(labels: Labels, probabilities: Probabilities) -> float:
    """Share of pairs whose most probable class is the true one."""
    from sklearn.metrics import accuracy_score

    if not len(labels):
        return float("nan")
    return float(accuracy_score(labels, probabilities.argmax(axis=1)))


def average_precision(labels: Labels, probabilities: Probabilities) -> float:
    """Area under the precision-recall curve, macro over classes."""
    from sklearn.metrics import average_precision_score

    return _one_against_rest(average_precision_score, labels, probabilities)


def roc_auc(labels: Labels, probabilities: Probabilities) -> float:
    """Area under the receiver operating characteristic, macro over classes."""
    from sklearn.metrics import roc_auc_score

    return _one_against_rest(roc_auc_score, labels, probabilities)


def cross_entropy(labels: Labels, probabilities: Probabilities) -> float:
    """Mean negative log probability of the true class, in nats."""
    from sklearn.metrics import log_loss

    return _of_normalized(log_loss, labels, probabilities)


def brier(labels: Labels, probabilities: Probabilities) -> float:
    """Mean squared error of the probabilities: summed over classes, or of the positive class."""
    from sklearn.metrics import brier_score_loss

    return _of_normalized(brier_score_loss, labels, probabilities)


def _of_normalized(
    score: Callable[..., float], labels: Labels, probabilities: Probabilities
) -> float:
    if not len(labels):
        return float("nan")
    normal = normalized(probabilities)
    return float(score(labels, normal, labels=np.arange(normal.shape[1])))


@dataclass(frozen=True)
class Reliability:
    """Stated and observed frequency over bins of equal width; empty bins are dropped."""

    stated: NDArray[np.float64]  # (b,) mean stated probability of each bin
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]  # (b,) pairs in each bin


def reliability(labels: Labels, probabilities: Probabilities) -> Reliability:
    """The calibration curve over ten bins of equal width.

    With two classes: the probability of the positive class against its frequency. With more:
    the confidence in the predicted class against the accuracy.
    """
    from sklearn.calibration import calibration_curve

    if probabilities.shape[1] == 2:
        stated, came_true = probabilities[:, 1], labels == 1
    else:
        stated, came_true = probabilities.max(axis=1), labels == probabilities.argmax(axis=1)
    stated = np.clip(stated.astype(float), 0.0, 1.0)
    true, predicted = calibration_curve(
        came_true, stated, pos_label=True, n_bins=N_CALIBRATION_BINS, strategy="uniform"
    )
    edges = np.linspace(0.0, 1.0, N_CALIBRATION_BINS + 1)[1:-1]
    counts = np.bincount(np.searchsorted(edges, stated), minlength=N_CALIBRATION_BINS)
    return Reliability(predicted, true, counts[counts > 0])


def calibration_error(labels: Labels, probabilities: Probabilities) -> float:
    """Expected calibration error: mean distance of the `reliability` curve from the diagonal."""
    if not len(labels):
        return float("nan")
    curve = reliability(labels, probabilities)
    return float(np.average(np.abs(curve.observed - curve.stated), weights=curve.counts))


#: Metrics of pooled pairs, by the name they have in `results.csv`.
METRICS: dict[str, Callable[[Labels, Probabilities], float]] = {
    "accuracy": accuracy,
    "ap": average_precision,
    "roc_auc": roc_auc,
    "cross_entropy": cross_entropy,
    "brier": brier,
    "calibration_error": calibration_error,
}
#: Including the metric that is computed over subjects instead of pairs.
ALL_METRICS = (*METRICS, "tail_loss")
#: Metrics for which lower is better.
LOWER_IS_BETTER = frozenset({"cross_entropy", "brier", "calibration_error", "tail_loss"})


def check_metric(name: str) -> str:
    """Return the name of a metric if it exists; raise an error that lists all otherwise."""
    if name not in ALL_METRICS:
        hint = did_you_mean(name, ALL_METRICS)
        raise ConfigError(f"There is no metric '{name}'.{hint} Known: {', '.join(ALL_METRICS)}.")
    return name


def tail_loss(losses: NDArray[np.float64]) -> float:
    """Mean loss of the worst tenth of the subjects (at least one), from `(n, L)` pair losses.

    A subject's loss is the mean over its labeled times; subjects without a label are dropped.
    """
    losses = losses[~np.isnan(losses).all(axis=1)]
    if not len(losses):
        return float("nan")
    per_subject = np.sort(np.nanmean(losses, axis=1))
    n_worst = max(1, int(np.ceil(TAIL_SHARE * len(per_subject))))
    return float(per_subject[-n_worst:].mean())


def evaluate_pairs(
    labels: Labels, probabilities: Probabilities, names: Collection[str] = ALL_METRICS
) -> dict[str, float]:
    """Metrics of `(n, L)` labels (-1: none) and `(n, L, C)` probabilities, pooled."""
    labeled = labels >= 0
    truth, predicted = labels[labeled], probabilities[labeled]
    out = {name: METRICS[name](truth, predicted) for name in METRICS if name in names}
    if "tail_loss" in names:
        out["tail_loss"] = tail_loss(pair_losses(labels, probabilities))
    return out


def summarize(
    rollout: Rollout, per_time: bool = True, threshold: float = DEFAULT_THRESHOLD
) -> dict[str, Any]:
    """Cost and metrics of a roll-out, as plain numbers and lists.

    Args:
        rollout: The roll-out.
        per_time: Also evaluate each slot separately, which takes most of the time.
        threshold: Positive probability above which there is an alarm (`nocta.core.detection`).
            Choose it on validation or beforehand, never on these subjects.

    Returns:
        `cost` (mean charge per subject); `accuracy`, `ap`, `roc_auc`, `cross_entropy`, `brier`,
        `calibration_error`, `tail_loss` pooled over all labeled pairs; `n_subjects`,
        `n_labels`; `tests` and `visits` (mean number per subject of features acquired and of slots
        with any); `threshold`, `detection_delay`, `detected` and `false_alarms` (two classes only,
        NaN otherwise); `mean_stop_time` (slot of the last request, over subjects with any request);
        `stop_histogram`, the number of subjects without a request, with the last one at slot 0, 1,
        ...; and `per_time`, the same metrics as one list per name over the slots.
    """
    labels, probabilities, stops = rollout.labels, rollout.probabilities, rollout.stop_time
    asked = stops[stops >= 0]
    out = {
        "cost": rollout.cost,
        **evaluate_pairs(labels, probabilities),
        "n_subjects": len(rollout),
        "n_labels": int((labels >= 0).sum()),
        "tests": float(rollout.tests.mean()) if len(rollout) else float("nan"),
        "visits": float(rollout.visits.mean()) if len(rollout) else float("nan"),
        "threshold": threshold if probabilities.shape[2] == 2 else np.nan,
        **find_alarms(labels, probabilities, threshold).summary(),
        "mean_stop_time": float(asked.mean()) if asked.size else float("nan"),
        "stop_histogram": np.bincount(stops + 1, minlength=labels.shape[1] + 1).tolist(),
    }
    if per_time:
        out["per_time"] = _per_time(rollout)
    return out


def _per_time(rollout: Rollout) -> dict[str, list[Any]]:
    labels, probabilities = rollout.labels, rollout.probabilities
    columns = [slice(t, t + 1) for t in range(labels.shape[1])]
    slots = [evaluate_pairs(labels[:, t], probabilities[:, t]) for t in columns]
    return {
        "cost": rollout.cost_per_visit.mean(axis=0).tolist(),
        **{name: [slot[name] for slot in slots] for name in ALL_METRICS},
        "n_labels": (labels >= 0).sum(axis=0).tolist(),
    }


def _one_against_rest(
    score: Callable[[Any, Any], float], labels: Labels, probabilities: Probabilities
) -> float:
    """Mean of `score` over the classes that have both members and non-members here."""
    n_classes = probabilities.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    counted = range(1, 2) if n_classes == 2 else range(n_classes)
    scores = [
        score(labels == c, probabilities[:, c]) for c in counted if 0 < counts[c] < len(labels)
    ]
    return float(np.mean(scores)) if scores else float("nan")
