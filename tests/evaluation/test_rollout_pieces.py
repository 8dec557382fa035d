"""Large cohorts are rolled out piece by piece, to the same acquisitions."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.model.nocta import NOCTA
from nocta.planning.limits import Limits
from small_models import WEIGHT, Parts


@pytest.mark.parametrize("limited", [False, True])
def test_pieces_acquire_and_predict_as_the_whole_does(
    limited: bool, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model, test = tiny_models["amortized"], tiny_parts[2]
    budget = np.linspace(0, 8, len(test)) if limited else None
    whole = model.rollout(test, WEIGHT, budget=budget)
    pieces = model.rollout(test, WEIGHT, budget=budget, limits=Limits(rollout_subjects=6))
    assert len(pieces) == len(test)
    np.testing.assert_array_equal(whole.history.requested, pieces.history.requested)
    np.testing.assert_array_equal(whole.costs, pieces.costs)
    np.testing.assert_array_equal(whole.subjects, pieces.subjects)
    np.testing.assert_allclose(whole.probabilities, pieces.probabilities, atol=1e-6)
    assert whole.history.requested.any()
