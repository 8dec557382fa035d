"""What a worker does in one go and returns. It reads the data itself, and writes no file."""

from __future__ import annotations

import time as clock
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nocta.core.errors import ConfigError
from nocta.runs.job import run_job, score_options
from nocta.runs.learning import FittedPredictor
from nocta.runs.predictors import shared_predictor
from nocta.runs.record import Job
from nocta.runs.scheduler import use_one_thread
from nocta.runs.setup import DataSource, Setup, hash_data
from nocta.runs.tuning import one_line


@dataclass(frozen=True)
class Task:
    """Fit the shared predictor of a seed (without a job), try options of a job, or run the job."""

    seed: int
    job: Job | None = None
    options: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """What it is, whatever the seed."""
        return self.job.label if self.job else "predictor"


@dataclass(frozen=True)
class Outcome:
    """What came of a task: its value, or why there is none."""

    value: Any = None
    seconds: float | None = None  # `None`: it was not done, or its process died
    reason: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class DataCheck:
    """The data as they are where the comparison was started; a worker has to read the same."""

    source: DataSource
    data_hash: str

    def __call__(self) -> None:
        """Raise unless this machine reads the same data."""
        if _hash(self.source, self.source.file_states()) != self.data_hash:
            raise ConfigError(
                f"'{self.source.data}' has different contents on the worker and on this machine. "
                f"Copy the same file to both, or use a shared folder."
            )


@lru_cache(maxsize=4)
def _hash(source: DataSource, states: tuple[Any, ...]) -> str:
    return hash_data(source.load(0))


def run_task(
    setup: Setup,
    task: Task,
    shared: FittedPredictor | None = None,
    tuning: Mapping[str, Any] | None = None,
    check: DataCheck | None = None,
) -> Outcome:
    """Do one task in this process and return what comes of it, also if it fails.

    The predictor `shared` is fitted here if it is needed and not given. `tuning` holds the
    finished trials of a job. A machine that reads other data raises `ConfigError`.
    """
    use_one_thread()
    if check is not None:
        check()
    started = clock.perf_counter()
    value: Any = None
    reason = details = ""
    try:
        if shared is None and (task.job is None or task.job.shares_predictor):
            shared = shared_predictor(setup, task.seed)
        if task.job is None:
            value = shared
        elif task.options is not None:
            value = score_options(setup, task.job, shared, task.options)
        else:
            value = run_job(setup, task.job, shared, tuning=tuning)
    except Exception as error:
        reason, details = one_line(error), traceback.format_exc()
    return Outcome(value, clock.perf_counter() - started, reason, details)
