"""The finished stages of a fit, kept on disk until the whole model is written."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nocta.core.errors import ModelError
from nocta.model import persistence
from nocta.model.nocta import NOCTA
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mixed import MixedPredictor
from nocta.predictors.neural import NeuralPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.predictors.training import TrainingConfig, TrainingLog
from nocta.runs.files import write_atomically
from nocta.runs.results import plain

Run = tuple[TrainingConfig, TrainingLog]


class Stages:
    """Finished stages of a fit, on disk."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self._file = folder / "stages.json"
        self.log: list[dict[str, Any]] = []
        if self._file.is_file():
            self.log = json.loads(self._file.read_text("utf-8"))

    @property
    def seconds(self) -> dict[str, float]:
        return {stage["stage"]: stage["seconds"] for stage in self.log}

    def predictor(self, fit: Callable[[], CrossFittedPredictor]) -> CrossFittedPredictor:
        """The kept predictor, or a new one that is then kept."""
        folder = self.folder / "predictor"
        kept = self._kept("predictor", lambda: persistence.load_predictor(folder))
        if isinstance(kept, CrossFittedPredictor):
            return kept
        started = clock.perf_counter()
        fitted = fit()
        seconds = clock.perf_counter() - started
        persistence.save_predictor(fitted, folder)
        linear = [m for m in fitted.members if isinstance(m, SummaryPredictor)]
        if linear:
            text = "1 linear model" if len(linear) == 1 else f"{len(linear)} linear models"
            self.note("predictor", seconds, text, [_choice_of_penalty(m) for m in linear])
            return fitted
        networks = [m for m in fitted.members if isinstance(m, NeuralPredictor)]
        if not networks:
            text = f"{len(fitted.members)} x {type(fitted.members[0]).__name__}"
            self.note("predictor", seconds, text)
            return fitted
        runs = [(m.training, m.log_) for m in networks]
        mixed = isinstance(fitted.members[0], MixedPredictor)
        self.note("predictor", seconds, _in_words(runs, mixed), _on_record(runs))
        return fitted

    def model(self, fit: Callable[[], NOCTA]) -> NOCTA:
        """The kept model, or a new one that is then kept."""
        folder = self.folder / "model"
        kept = self._kept("estimator", lambda: persistence.load(folder))
        if isinstance(kept, NOCTA):
            return kept
        started = clock.perf_counter()
        fitted = fit()
        seconds = clock.perf_counter() - started
        persistence.save_model(fitted, folder)
        runs = _estimator_runs(fitted)
        self.note("estimator", seconds, _in_words(runs), _on_record(runs))
        return fitted

    def _kept(self, stage: str, load: Callable[[], Any]) -> Any:
        if stage not in self.seconds:
            return None
        try:
            kept = load()
        except ModelError:
            self.log = [entry for entry in self.log if entry["stage"] != stage]
            return None  # damaged: fit it again
        self.say(f"{stage}: kept from before.")
        return kept

    def note(
        self,
        stage: str,
        seconds: float,
        text: str,
        runs: list[dict[str, Any]] | None = None,
    ) -> None:
        """Tell and remember that a stage is finished, and how its models were fitted."""
        self.log.append(plain({"stage": stage, "seconds": seconds, "runs": runs or []}))
        write_atomically(self._file, json.dumps(self.log))
        self.say(f"{stage}: {text} in {seconds:.0f} s.")


def _estimator_runs(model: NOCTA) -> list[Run]:
    """The training runs of whichever networks the estimator has."""
    planner: Any = model.planner_
    retrieval = getattr(planner, "contrastive", None)
    networks: list[Any] = [
        getattr(planner, "amortized", None),
        getattr(getattr(retrieval, "bank", None), "embedding", None),
    ]
    return [(network.training, network.log_) for network in networks if hasattr(network, "log_")]


def _on_record(runs: list[Run]) -> list[dict[str, Any]]:
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
    early = [log for config, log in runs if log.epochs and log.epochs[-1] < config.epochs]
    if not runs:
        return "fitted"
    best = ", ".join(str(log.best_epoch) for _, log in runs)
    networks = "1 network" if len(runs) == 1 else f"{len(runs)} networks"
    if mixed:
        networks += " and a linear model" if len(runs) == 1 else " and as many linear models"
    stopped = f"; {len(early)} stopped early" if early else ""
    return f"{networks}, best at epoch {best}{stopped},"
