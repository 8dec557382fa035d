"""Several estimators as one: their weighted mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.planning.estimators.committee import EnsembleEstimator
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.testing import tiny_cohort


class Constant(SequentialEstimator):
    """Every slot costs the same loss; each acquired feature takes some of it off."""

    def __init__(self, loss: float, saved: float) -> None:
        self.loss, self.saved = loss, saved
        self.n_starts = 0

    def start(self, observation: Observation) -> Any:
        self.n_starts += 1
        return None

    def branch(self, state: Any, time: int, parents: Tensor, subsets: Tensor) -> tuple[Any, Tensor]:
        loss = self.loss - self.saved * subsets.float().sum(dim=1)
        return None, loss.expand(*parents.shape, -1)


@pytest.fixture
def observation() -> Observation:
    cohort = tiny_cohort(3)
    return Observation(
        history=History.empty(cohort.catalog, cohort.context),
        time=np.full(3, -1),
        remaining=np.full(3, np.inf),
        catalog=cohort.catalog,
        rows=np.arange(3),
    )


PLANS = np.stack([np.zeros((4, 2), bool), np.ones((4, 2), bool)])


def test_scores_are_the_weighted_mean(observation: Observation) -> None:
    both = EnsembleEstimator([Constant(1.0, 0.1), Constant(3.0, 0.5)], [3.0, 1.0])
    found = both.score_plans(observation, PLANS)
    assert both.weights == [0.75, 0.25]
    expected = [4 * (0.75 * 1 + 0.25 * 3), 4 * (0.75 * 0.8 + 0.25 * 2.0)]
    np.testing.assert_allclose(found, torch.tensor(expected).expand(3, -1), rtol=1e-6)


def test_a_weight_of_zero_leaves_a_member_out(observation: Observation) -> None:
    left_out, kept = Constant(9.0, 0.0), Constant(1.0, 0.1)
    found = EnsembleEstimator([left_out, kept], [0.0, 2.0]).score_plans(observation, PLANS)
    np.testing.assert_array_equal(found, kept.score_plans(observation, PLANS))
    assert left_out.n_starts == 0


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.0], [1.0, -0.5]])
def test_weights_are_checked(weights: list[float]) -> None:
    with pytest.raises(ConfigError, match="each of the 2 estimators, with a sum"):
        EnsembleEstimator([Constant(1, 0), Constant(2, 0)], weights)
