"""The predictor that several methods of one seed acquire for: fitted once, kept beside the jobs."""

from __future__ import annotations

import json
import shutil
import time as clock
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from nocta.exceptions import ModelError
from nocta.experiments.files import write_atomically
from nocta.experiments.job import FittedPredictor
from nocta.experiments.optimum import finite_task
from nocta.experiments.setup import Setup
from nocta.predictors.base import Predictor


def is_kept(setup: Setup) -> bool:
    """Whether a predictor is fitted once and kept; otherwise each job makes its own."""
    return setup.predictor == "learned" and find_spec("nocta.persistence") is not None


def shared_predictor(setup: Setup, seed: int, jobs: Path) -> FittedPredictor:
    """The predictor of a seed: read where it was fitted before, fitted and kept otherwise.

    Args:
        setup: Of the comparison.
        seed: Of the split and of the training.
        jobs: Folder of the finished jobs.
    """
    if setup.predictor == "bayes":
        from nocta.predictors.bayes import BayesPredictor

        return FittedPredictor(BayesPredictor(finite_task(setup.source.data)), 0.0)
    started = clock.perf_counter()
    if not is_kept(setup):
        return FittedPredictor(fit_predictor(setup, seed), clock.perf_counter() - started)
    persistence = import_module("nocta.persistence")
    folder = jobs / f"predictor-seed{seed}"
    receipt = folder.with_suffix(".txt")
    if receipt.is_file():
        try:
            seconds = float(json.loads(receipt.read_text("utf-8"))["fit_seconds"])
            return FittedPredictor(persistence.load_predictor(folder), seconds)
        except (ModelError, ValueError, KeyError):
            receipt.unlink()  # damaged: fit it again
    shutil.rmtree(folder, ignore_errors=True)
    predictor = fit_predictor(setup, seed)
    seconds = clock.perf_counter() - started
    persistence.save_predictor(predictor, folder)
    # Written last: without it the folder counts as half written.
    write_atomically(receipt, json.dumps({"fit_seconds": seconds}))
    return FittedPredictor(predictor, seconds)


def fit_predictor(setup: Setup, seed: int) -> Predictor:
    """Fit the preset's predictor on the training subjects of a seed."""
    from nocta.predictors import fitting

    train, val, _ = setup.source.split(setup.source.load(seed), seed)
    return fitting.fit_predictor(train, val, setup.preset, seed)
