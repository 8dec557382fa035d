"""Ranking metrics of many resamples equal those of each resample written out."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.metrics import METRICS
from nocta.evaluation.ranking import weighted_ranking


@pytest.mark.parametrize("metric", ["ap", "roc_auc"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("digits", [1, 6])
def test_weights_count_as_repeated_pairs(metric: str, n_classes: int, digits: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(n_classes, size=40)
    scores = rng.random((40, n_classes)).round(digits) + 0.01  # one digit: many ties
    probabilities = scores / scores.sum(axis=1, keepdims=True)
    weights = rng.integers(0, 3, size=(6, 40))
    found = weighted_ranking(metric, labels, probabilities, weights)
    for row, value in zip(weights, found, strict=True):
        rows = np.repeat(np.arange(40), row)
        assert value == pytest.approx(METRICS[metric](labels[rows], probabilities[rows]))


def test_a_resample_with_one_class_is_undefined() -> None:
    labels, chances = np.array([0, 1]), np.array([[0.8, 0.2], [0.3, 0.7]])
    found = weighted_ranking("ap", labels, chances, np.array([[2, 0], [1, 1]]))
    assert np.isnan(found[0])
    assert found[1] == 1.0
