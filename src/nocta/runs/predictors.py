"""The predictor that the methods of one seed share: learned, exact, or a plug-in."""

from __future__ import annotations

import time as clock

from nocta.core.predictor import Predictor, Savable
from nocta.predictors import fitting
from nocta.predictors.registry import BUILT_IN, check_predictor_name, new_predictor, predictor_class
from nocta.runs.job import FittedPredictor
from nocta.runs.optimum import finite_task
from nocta.runs.setup import DataSource, Setup


def is_kept(setup: Setup) -> bool:
    """Whether the predictor takes long to fit and can be saved: then it is fitted once per seed."""
    if setup.predictor in BUILT_IN:
        return setup.predictor == "learned"
    return issubclass(predictor_class(setup.predictor), Savable)


def shared_predictor(setup: Setup, seed: int) -> FittedPredictor:
    """Make the predictor that methods of a seed share, and say how long it took."""
    if setup.predictor == "bayes":
        return FittedPredictor(bayes_predictor(setup.source), 0.0)
    started = clock.perf_counter()
    train, val, _ = setup.source.split(setup.source.load(seed), seed)
    predictor = fitting.fit_predictor(
        train, val, setup.preset, seed, kind=setup.predictor, quick=setup.quick
    )
    return FittedPredictor(predictor, clock.perf_counter() - started)


def bayes_predictor(source: DataSource) -> Predictor:
    """The exact filter of a finite task."""
    from nocta.predictors.bayes import BayesPredictor

    return BayesPredictor(finite_task(source))


def unfitted_predictor(predictor: str, source: DataSource) -> Predictor | None:
    """What `--predictor` names, before any fit; `None` for the learned one."""
    check_predictor_name(predictor)
    if predictor == "learned":
        return None
    return bayes_predictor(source) if predictor == "bayes" else new_predictor(predictor)
