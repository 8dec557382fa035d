"""The predictor that several methods of one seed acquire for: fitted once, kept beside the jobs."""

from __future__ import annotations

import json
import shutil
import time as clock
from pathlib import Path

from nocta.exceptions import ModelError
from nocta.experiments.files import write_atomically
from nocta.experiments.job import FittedPredictor
from nocta.experiments.optimum import finite_task
from nocta.experiments.setup import Setup
from nocta.persistence import load_predictor, save_predictor
from nocta.predictors.base import Predictor


def is_kept(setup: Setup) -> bool:
    """Whether a predictor takes long to make, so that it is fitted once and kept."""
    return setup.predictor == "learned"


def shared_predictor(setup: Setup, seed: int, jobs: Path) -> FittedPredictor:
    """The predictor of a seed: read where it was fitted before, fitted and kept otherwise.

    Args:
        setup: Of the comparison.
        seed: Of the split and of the training.
        jobs: Folder of the finished jobs.
    """
    if not is_kept(setup):
        from nocta.predictors.bayes import BayesPredictor

        return FittedPredictor(BayesPredictor(finite_task(setup.source.data)), 0.0)
    folder = jobs / f"predictor-seed{seed}"
    receipt = folder.with_suffix(".txt")
    if receipt.is_file():
        try:
            seconds = float(json.loads(receipt.read_text("utf-8"))["fit_seconds"])
            return FittedPredictor(load_predictor(folder), seconds)
        except (ModelError, ValueError, KeyError):
            receipt.unlink()  # damaged: fit it again
    shutil.rmtree(folder, ignore_errors=True)
    started = clock.perf_counter()
    predictor = fit_predictor(setup, seed)
    seconds = clock.perf_counter() - started
    save_predictor(predictor, folder)
    # Written last: without it the folder counts as half written.
    write_atomically(receipt, json.dumps({"fit_seconds": seconds}))
    return FittedPredictor(predictor, seconds)


def fit_predictor(setup: Setup, seed: int) -> Predictor:
    """Fit the preset's predictor on the training subjects of a seed."""
    from nocta.predictors import fitting

    train, val, _ = setup.source.split(setup.source.load(seed), seed)
    return fitting.fit_predictor(train, val, setup.preset, seed, quick=setup.quick)
