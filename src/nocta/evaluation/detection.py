"""Sensitivity, specificity and cases found: the classes as positive or negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.rollout import Rollout

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Positive:
    """What counts as positive.

    Args:
        classes: Positions of the positive classes.
        threshold: A visit is predicted positive if their probability is at least this.
    """

    classes: tuple[int, ...] = (1,)
    threshold: float = 0.5

    @classmethod
    def named(
        cls, names: Sequence[str] | None, classes: Sequence[str], threshold: float = 0.5
    ) -> Positive:
        """The positive classes by name; with two classes the second one by default."""
        if not names:
            if len(classes) != 2:
                raise ConfigError(
                    f"There are {len(classes)} classes ({', '.join(classes)}); say which are "
                    f"positive: --positive {','.join(classes[1:])}, or positive=[...] in Python."
                )
            return cls((1,), threshold)
        for name in names:
            if name not in classes:
                hint = did_you_mean(name, classes)
                raise ConfigError(f"No class '{name}'.{hint} Classes: {', '.join(classes)}.")
        if len(set(names)) == len(classes):
            raise ConfigError("Every class is positive; leave out the negative ones.")
        return cls(tuple(sorted({list(classes).index(name) for name in names})), threshold)


def scores_of(rollout: Rollout, positive: Positive) -> tuple[Mask, Floats, Mask]:
    """Whether each visit is truly positive, its predicted probability, and whether it is labeled;
    each `(n, L)`."""
    truth = np.isin(rollout.labels, positive.classes)
    scores = rollout.probabilities[:, :, list(positive.classes)].sum(axis=2, dtype=float)
    return truth, scores, rollout.labels >= 0


def threshold_at(negatives: Floats, specificity: float) -> float:
    """The lowest threshold at which at least this share of negative scores is below it.

    Example:
        >>> threshold_at(np.array([0.1, 0.2, 0.3, 0.9]), 0.75) > 0.3
        True
    """
    needed = int(np.ceil(specificity * len(negatives) - 1e-9))
    if not needed:
        return 0.0
    return float(np.nextafter(np.sort(negatives)[needed - 1], np.inf))


@dataclass(frozen=True)
class Detection:
    """How well positive visits are found at a specificity.

    Args:
        sensitivity: Share of positive visits that are found.
        cases: Share of all subjects who are a case and found: at one of their positive visits.
        threshold: Probability from which a visit is called positive.
    """

    sensitivity: float
    cases: float
    threshold: float


def detect(
    truth: Mask, scores: Floats, labeled: Mask, specificity: float | None, threshold: float = 0.5
) -> Detection:
    """Detection at a specificity, or at a threshold if none is given; NaN without positives."""
    positives, negatives = truth & labeled, ~truth & labeled
    if specificity is not None:
        threshold = threshold_at(scores[negatives], specificity)
    hits = (scores >= threshold) & positives
    n = int(positives.sum())
    sensitivity = float(hits.sum() / n) if n else float("nan")
    return Detection(sensitivity, float(hits.any(axis=1).mean()), threshold)
