"""The predictor that the methods of one seed share: learned, exact, or a plug-in."""

from __future__ import annotations

import pickle
import time as clock
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.options import Preset
from nocta.core.predictor import Predictor, Savable
from nocta.evaluation.isolation import Cell, pack
from nocta.predictors import fitting
from nocta.predictors.registry import BUILT_IN, check_predictor_name, new_predictor, predictor_class
from nocta.runs.learning import FittedPredictor
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
    args = (train, val, setup.preset, seed, setup.predictor, setup.quick)
    if setup.audit_subjects:
        with Cell() as cell:  # which never holds the test subjects
            predictor: Predictor = pickle.loads(cell.run(pack(_fit_packed), *args))
    else:
        predictor = _fit(*args)
    return FittedPredictor(predictor, clock.perf_counter() - started)


def _fit(
    train: Cohort, val: Cohort, preset: Preset, seed: int, kind: str, quick: bool
) -> Predictor:
    return fitting.fit_predictor(train, val, preset, seed, kind=kind, quick=quick)


def _fit_packed(*args: Any) -> bytes:
    return pack(_fit(*args))


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
