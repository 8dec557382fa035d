"""The finished stages of a fit, kept until the whole model is written."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nocta.model import persistence
from nocta.model.nocta import NOCTA
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.neural import NeuralPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig, TrainingLog
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.results import plain

Run = tuple[TrainingConfig, TrainingLog]
T = TypeVar("T")


class Stages:
    """Finished stages of a fit: each is a folder, and an entry of the log in a file beside it."""

    def __init__(self, finished: Checkpoint, say: Callable[[str], None]) -> None:
        self.finished, self.say = finished, say
        self.log: list[dict[str, Any]] = []

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time by stage."""
        return {stage["stage"]: stage["seconds"] for stage in self.log}

    def predictor(self, fit: Callable[[], CrossFittedPredictor]) -> CrossFittedPredictor:
        """The kept predictor, or a new one that is then kept."""

        def load(folder: Path) -> CrossFittedPredictor:
            found = persistence.load_predictor(folder)
            if not isinstance(found, CrossFittedPredictor):
                raise TypeError(f"'{folder}' holds a {type(found).__name__}")
            return found

        return self._stage("predictor", fit, load, persistence.save_predictor, _predictor_runs)

    def model(self, fit: Callable[[], NOCTA]) -> NOCTA:
        """The kept model, or a new one that is then kept."""
        save, load = persistence.save_model, persistence.load
        return self._stage("estimator", fit, load, save, _estimator_runs)

    def _stage(
        self,
        stage: str,
        fit: Callable[[], T],
        load: Callable[[Path], T],
        save: Callable[[T, Path], None],
        describe: Callable[[T], tuple[str, list[dict[str, Any]]]],
    ) -> T:
        entry = self.finished.get(f"{stage}.json")
        kept = self.finished.read(stage, load)
        if entry is not None and kept is not None:
            self.log.append(entry)
            self.say(f"{stage}: kept from before.")
            return kept
        started = clock.perf_counter()
        fitted = fit()
        seconds = clock.perf_counter() - started
        self.finished.write(stage, lambda folder: save(fitted, folder))
        text, runs = describe(fitted)
        self.note(stage, seconds, text, runs)
        self.finished.put(f"{stage}.json", self.log[-1])
        return fitted

    def note(
        self, stage: str, seconds: float, text: str, runs: list[dict[str, Any]] | None = None
    ) -> None:
        """Say and log that a stage is finished, and how its models were fitted."""
        self.log.append(plain({"stage": stage, "seconds": seconds, "runs": runs or []}))
        self.say(f"{stage}: {text} in {seconds:.0f} s.")


def _predictor_runs(fitted: CrossFittedPredictor) -> tuple[str, list[dict[str, Any]]]:
    """How its models were fitted, in words and for the log."""
    linear = [m for m in fitted.members if isinstance(m, SummaryPredictor)]
    if linear:
        text = "1 linear model" if len(linear) == 1 else f"{len(linear)} linear models"
        return text, [_choice_of_penalty(m) for m in linear]
    runs = [(m.training, m.log_) for m in fitted.members if isinstance(m, NeuralPredictor)]
    if not runs:
        return f"{len(fitted.members)} x {type(fitted.members[0]).__name__}", []
    return _in_words(runs, isinstance(fitted.members[0], MixedPredictor)), _for_log(runs)


def _estimator_runs(model: NOCTA) -> tuple[str, list[dict[str, Any]]]:
    """How its networks were trained, if it has any, in words and for the log."""
    planner: Any = model.planner_
    retrieval = getattr(planner, "contrastive", None)
    networks: list[Any] = [
        getattr(planner, "amortized", None),
        getattr(getattr(retrieval, "bank", None), "embedding", None),
    ]
    runs = [(network.training, network.log_) for network in networks if hasattr(network, "log_")]
    return _in_words(runs), _for_log(runs)


def _for_log(runs: list[Run]) -> list[dict[str, Any]]:
    return [
        {
            "max_epochs": config.epochs,
            "best_epoch": log.best_epoch,
            "epochs": log.epochs,
            "validation_losses": log.validation_losses,
        }
        for config, log in runs
    ]


def _choice_of_penalty(model: SummaryPredictor) -> dict[str, Any]:
    return {
        "inverse_penalties": model.inverse_penalties,
        "best_inverse_penalty": model.inverse_penalties[model.log_.best_epoch - 1],
        "validation_losses": model.log_.validation_losses,
    }


def _in_words(runs: list[Run], mixed: bool = False) -> str:
    if not runs:
        return "fitted"
    early = [log for config, log in runs if log.epochs and log.epochs[-1] < config.epochs]
    best = ", ".join(str(log.best_epoch) for _, log in runs)
    networks = "1 network" if len(runs) == 1 else f"{len(runs)} networks"
    if mixed:
        networks += " and a linear model" if len(runs) == 1 else " and as many linear models"
    stopped = f"; {len(early)} stopped early" if early else ""
    return f"{networks}, best at epoch {best}{stopped},"
