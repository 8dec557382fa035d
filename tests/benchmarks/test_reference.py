"""The plain algorithm and the library make the same choices, for every subject and decision."""

from __future__ import annotations

import numpy as np
import pytest

import nocta
from nocta.core.rollout import rollout
from nocta.model.presets.base import EstimatorName
from nocta.planning.estimators.amortized_mlp import AmortizedMLPEstimator
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort
from part_reference import compare
from reference import ReferencePolicy

SHORT = {"n_candidates": 60, "embedding_epochs": 2, "embedding_weights": (0.6,)}
Fitted = tuple[nocta.NOCTA, nocta.Cohort]


def fit(cohort: nocta.Cohort, estimator: EstimatorName, patch: pytest.MonkeyPatch) -> Fitted:
    """The `paper` preset, trained for an instant."""
    training = TrainingConfig(epochs=8, batch_size=32, learning_rate=1e-2)
    defaults = AmortizedMLPEstimator.__init__.__defaults__ or ()
    changed = tuple(training if isinstance(d, TrainingConfig) else d for d in defaults)
    patch.setattr(AmortizedMLPEstimator.__init__, "__defaults__", changed)
    train, val, test = cohort.split(seed=0)
    network = MLPPredictor(training=training).fit(train, val)
    predictor = CrossFittedPredictor([network], np.zeros(len(train), dtype=np.int64), False)
    model = nocta.NOCTA(estimator, "paper", options=SHORT).fit(train, val, predictor=predictor)
    return model, test


@pytest.mark.parametrize("estimator", ["contrastive", "amortized"])
@pytest.mark.parametrize("name", ["tiny", "synthetic"])
def test_the_reference_chooses_alike(
    name: str, estimator: EstimatorName, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = (
        tiny_cohort(120, seed=0)
        if name == "tiny"
        else nocta.datasets.load("synthetic", seed=0, n_subjects=160)
    )
    model, test = fit(cohort, estimator, monkeypatch)
    acquired = []
    for factor in (0.1, 0.5):
        found = compare(model, test, factor)
        assert found["subjects_alike"] == found["subjects"] == len(test)
        assert found["widest_tie"] == 0.0
        acquired.append(found["cost"])
    # The comparison says something: more is acquired where it costs less, and not nothing.
    assert acquired[0] > acquired[1] >= 0
    assert acquired[0] > 0


def test_the_reference_keeps_to_budgets_and_to_what_is_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, test = fit(tiny_cohort(80, seed=1), "contrastive", monkeypatch)
    weight = 0.1 * model.planner_.cost_scale
    plain = ReferencePolicy(model.planner_, weight)
    for options in ({"budget": 4.0}, {"availability": "known"}):
        fast, slow = model.rollout(test, weight, **options), rollout(plain, test, **options)
        assert np.array_equal(fast.history.requested, slow.history.requested)
