"""The predictor that several methods of one seed acquire for: fitted once, kept beside the jobs."""

from __future__ import annotations

import json
import shutil
import time as clock
from pathlib import Path

from nocta.core.errors import ModelError
from nocta.core.predictor import Predictor, Savable
from nocta.model.persistence import load_predictor, save_predictor
from nocta.predictors.registry import (
    BUILT_IN,
    check_predictor_name,
    new_predictor,
    predictor_class,
)
from nocta.runs.files import write_atomically
from nocta.runs.job import FittedPredictor
from nocta.runs.optimum import finite_task
from nocta.runs.setup import Setup


def is_kept(setup: Setup) -> bool:
    """Whether a predictor takes long to make and can be saved, so that it is fitted once."""
    if setup.predictor in BUILT_IN:
        return setup.predictor == "learned"
    return issubclass(predictor_class(setup.predictor), Savable)


def shared_predictor(setup: Setup, seed: int, jobs: Path) -> FittedPredictor:
    """The predictor of a seed: read where it was fitted before, fitted and kept otherwise.

    Args:
        setup: Of the comparison.
        seed: Of the split and of the training.
        jobs: Folder of the finished jobs.
    """
    if setup.predictor == "bayes":
        return FittedPredictor(bayes_predictor(setup.source.data), 0.0)
    if not is_kept(setup):
        return fit_timed(setup, seed)
    kept = kept_predictor(seed, jobs)
    if kept is not None:
        return kept
    fitted = fit_timed(setup, seed)
    keep_predictor(fitted, seed, jobs)
    return fitted


def kept_predictor(seed: int, jobs: Path) -> FittedPredictor | None:
    """The predictor that was fitted before, where it is whole."""
    folder = jobs / f"predictor-seed{seed}"
    receipt = folder.with_suffix(".txt")
    if not receipt.is_file():
        return None
    try:
        seconds = float(json.loads(receipt.read_text("utf-8"))["fit_seconds"])
        return FittedPredictor(load_predictor(folder), seconds)
    except (ModelError, ValueError, KeyError):
        receipt.unlink()  # damaged: fit it again
    return None


def keep_predictor(fitted: FittedPredictor, seed: int, jobs: Path) -> None:
    """Keep a fitted predictor for the jobs of its seed."""
    folder = jobs / f"predictor-seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    save_predictor(fitted.predictor, folder)
    # Written last: without it the folder counts as half written.
    receipt = json.dumps({"fit_seconds": fitted.seconds})
    write_atomically(folder.with_suffix(".txt"), receipt)


def fit_timed(setup: Setup, seed: int) -> FittedPredictor:
    """Fit a new predictor, and say how long it took."""
    started = clock.perf_counter()
    predictor = fit_predictor(setup, seed)
    return FittedPredictor(predictor, clock.perf_counter() - started)


def fit_predictor(setup: Setup, seed: int) -> Predictor:
    """Fit the preset's predictor, or a plug-in, on the training subjects of a seed."""
    from nocta.predictors import fitting

    train, val, _ = setup.source.split(setup.source.load(seed), seed)
    return fitting.fit_predictor(
        train, val, setup.preset, seed, kind=setup.predictor, quick=setup.quick
    )


def bayes_predictor(data: str) -> Predictor:
    """The exact filter of a finite task."""
    from nocta.predictors.bayes import BayesPredictor

    return BayesPredictor(finite_task(data))


def unfitted_predictor(predictor: str, data: str) -> Predictor | None:
    """What `--predictor` names, before any fit; `None` for the learned one."""
    check_predictor_name(predictor)
    if predictor == "learned":
        return None
    return bayes_predictor(data) if predictor == "bayes" else new_predictor(predictor)
