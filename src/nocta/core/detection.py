"""Detection delay: how long after its onset a positive class is noticed.

For data with two classes. The *onset* of a subject is its first slot with a positive label. At a
labeled slot, an *alarm* is a positive probability above the threshold. The delay is the number of
slots from the onset to the first alarm at or after it. An alarm before the onset is a false alarm
and shortens no delay; if it lasts until the onset, the delay is 0. Without any alarm from the onset
on, the subject is missed, and its delay runs to the slot after its last label, the shortest it can
have been. Subjects without an onset have no delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The threshold if nothing else is said.
DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class Alarms:
    """What the alarms at one threshold mean for each of `n` subjects.

    Args:
        delay: `(n,)` slots from onset to detection; NaN without an onset.
        missed: `(n,)` whether there is an onset and no alarm from then on.
        n_false: `(n,)` number of alarms at slots with a negative label.
        n_negative: `(n,)` number of slots with a negative label.
    """

    delay: NDArray[np.float64]
    missed: NDArray[np.bool_]
    n_false: NDArray[np.int64]
    n_negative: NDArray[np.int64]

    def summary(self) -> dict[str, float]:
        """Means over the subjects with an onset, and the share of false alarms.

        `detection_delay` in slots; `detected`, the share of subjects with an onset that are not
        missed; `false_alarms`, the share of slots with a negative label that have an alarm. NaN if
        there is no onset, or no negative label.
        """
        onset = ~np.isnan(self.delay)
        negative = int(self.n_negative.sum())
        return {
            "detection_delay": float(self.delay[onset].mean()) if onset.any() else np.nan,
            "detected": float(1 - self.missed[onset].mean()) if onset.any() else np.nan,
            "false_alarms": float(self.n_false.sum() / negative) if negative else np.nan,
        }


def find_alarms(
    labels: NDArray[np.int64], probabilities: NDArray[np.floating[Any]], threshold: float
) -> Alarms:
    """Alarms from `(n, L)` labels (-1: none) and `(n, L, C)` probabilities.

    With other than two classes, there is no positive class and so no onset.

    Example:
        >>> labels = np.array([[0, 1, 1], [0, 1, 1], [0, 0, 0]])
        >>> positive = np.array([[0.1, 0.2, 0.9], [0.9, 0.1, 0.1], [0.1, 0.6, 0.1]])
        >>> found = find_alarms(labels, np.stack([1 - positive, positive], axis=2), 0.5)
        >>> found.delay, found.missed
        (array([ 1.,  2., nan]), array([False,  True, False]))
    """
    n, length = labels.shape
    if probabilities.shape[2] != 2:
        nothing = np.zeros(n, dtype=np.int64)
        return Alarms(np.full(n, np.nan), nothing.astype(bool), nothing, nothing)
    labeled, positive, slot = labels >= 0, labels == 1, np.arange(length)
    alarm = labeled & (probabilities[:, :, 1] > threshold)
    onset = positive.argmax(axis=1)
    in_time = alarm & (slot >= onset[:, None])
    end = np.where(labeled, slot + 1, 0).max(axis=1, initial=0)
    detected = np.where(in_time.any(axis=1), in_time.argmax(axis=1), end)
    ill = positive.any(axis=1)
    return Alarms(
        delay=np.where(ill, detected - onset, np.nan),
        missed=ill & ~in_time.any(axis=1),
        n_false=(alarm & ~positive).sum(axis=1),
        n_negative=(labeled & ~positive).sum(axis=1),
    )


def prevalence(labels: NDArray[np.int64], n_classes: int) -> float:
    """Share of positive labels: the threshold of comparisons, taken from training subjects.

    NaN if there is no label, or if there are not two classes.
    """
    labeled = labels >= 0
    if n_classes != 2 or not labeled.any():
        return np.nan
    return float((labels[labeled] == 1).mean())
