"""The predictor that several methods of one seed acquire for."""

from __future__ import annotations

import time as clock

from nocta.core.predictor import Predictor
from nocta.runs.job import FittedPredictor
from nocta.runs.optimum import finite_task
from nocta.runs.setup import Setup


def is_kept(setup: Setup) -> bool:
    """Whether the predictor takes long to fit, so that it is fitted once per seed and kept."""
    return setup.predictor == "learned"


def shared_predictor(setup: Setup, seed: int) -> FittedPredictor:
    """Make the predictor of a seed, and say how long it took."""
    if not is_kept(setup):
        from nocta.predictors.bayes import BayesPredictor

        return FittedPredictor(BayesPredictor(finite_task(setup.source.data)), 0.0)
    started = clock.perf_counter()
    predictor = fit_predictor(setup, seed)
    return FittedPredictor(predictor, clock.perf_counter() - started)


def fit_predictor(setup: Setup, seed: int) -> Predictor:
    """Fit the preset's predictor on the training subjects of a seed."""
    from nocta.predictors import fitting

    train, val, _ = setup.source.split(setup.source.load(seed), seed)
    return fitting.fit_predictor(train, val, setup.preset, seed, quick=setup.quick)
