"""What the tests of fitted models have in common."""

from __future__ import annotations

import numpy as np

from nocta.core.cohort import Cohort
from nocta.model.presets.base import EstimatorName
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.neural import NeuralPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig

Parts = tuple[Cohort, Cohort, Cohort]
#: Short fits of the default preset; everything else is as recommended.
QUICK = {"hidden": 16, "n_rounds": 0, "n_neighbors": 8, "width": 8, "voting_width": 4}
#: Options of a short `nocta fit`; the default method would fit several models.
QUICK_FIT = ("--method", "nocta-amortized", "--quick", "--quiet")
ESTIMATORS: tuple[EstimatorName, ...] = ("amortized", "contrastive", "ensemble")
#: A cost weight at which every one of them acquires something, and not everything.
WEIGHT = 0.005


def linear_members(kind: str, parts: Parts) -> CrossFittedPredictor:
    """Two linear models, or means of one and a network, each for half of the subjects."""
    train, val, _ = parts
    fold = np.arange(len(train)) % 2
    short = TrainingConfig(epochs=6, batch_size=32, learning_rate=1e-2)
    members: list[NeuralPredictor] = []
    for i in range(2):
        member = (
            SummaryPredictor((0.3,), seed=i)
            if kind == "summary"
            else MixedPredictor(8, training=short, seed=i)
        )
        members.append(member.fit(train.subset(np.flatnonzero(fold != i)), val))
    return CrossFittedPredictor(members, fold)
