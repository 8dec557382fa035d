"""Tuning: every method may try the same number of options on validation, and keeps the best.

Trial 0 is the method as it is, so tuning never makes validation worse. Trials are kept in a file
as they are made: a tuning that was killed goes on from there and ends with the same choice. Test
subjects are not within reach of this module.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nocta.core.progress import progress_bar
from nocta.runs.files import write_atomically
from nocta.runs.option_search import OptionSearch, Proposal
from nocta.runs.results import plain

#: Fits with some options and judges on validation; higher is better.
Score = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class TrialResult:
    """One set of options and how it did.

    Args:
        proposal: What was tried.
        score: On validation, higher is better; `None` where the trial failed.
        seconds: Wall time.
        error: Why it failed.
    """

    proposal: Proposal
    score: float | None
    seconds: float
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of the job."""
        return {
            "options": self.proposal.options,
            "score": self.score,
            "seconds": self.seconds,
            "error": self.error,
        }


@dataclass(frozen=True)
class Tuning:
    """What came of the trials of one job.

    Args:
        n_trials: How many were asked for.
        names: Options that were tuned; none where the method has nothing to tune.
        trials: In order; fewer than asked for where there are no more different options.
    """

    n_trials: int
    names: tuple[str, ...]
    trials: tuple[TrialResult, ...]

    @property
    def best(self) -> int:
        """Number of the best trial; of equals the first, so that defaults win a tie."""
        scores = [-np.inf if t.score is None else t.score for t in self.trials]
        return int(np.argmax(scores)) if scores else 0

    @property
    def chosen(self) -> dict[str, Any]:
        """Options of the best trial."""
        return self.trials[self.best].proposal.options if self.trials else {}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of the job."""
        found: dict[str, Any] = plain(
            {
                "n_trials": self.n_trials,
                "tuned": self.names,
                "trials": [trial.to_dict() for trial in self.trials],
                "best": self.best,
                "chosen": self.chosen,
                "seconds": sum(trial.seconds for trial in self.trials),
            }
        )
        return found


class TrialFile:
    """The trials of one job while it is being tuned; the record of the job replaces it.

    Args:
        path: The file; `None` keeps nothing.
        signature: What the trials belong to; trials of something else are dropped.
    """

    def __init__(self, path: Path | None, signature: Mapping[str, Any]) -> None:
        self.path = path
        self.signature = plain(signature)

    def read(self) -> list[TrialResult]:
        """The trials of an earlier start."""
        found = _read(self.path)
        if found.get("signature") != self.signature:
            return []
        return [
            TrialResult(**{**trial, "proposal": Proposal(**trial["proposal"])})
            for trial in found["trials"]
        ]

    def write(self, trials: Sequence[TrialResult]) -> None:
        """Keep the trials made so far."""
        if self.path is not None:
            content = {"signature": self.signature, "trials": plain([asdict(t) for t in trials])}
            write_atomically(self.path, json.dumps(content, allow_nan=False))


def count_trials(path: Path) -> int:
    """How many trials a file holds, for whoever watches."""
    return len(_read(path).get("trials", []))


def _read(path: Path | None) -> dict[str, Any]:
    """What a trial file holds; nothing where there is none, or a damaged one."""
    try:
        found = json.loads(path.read_text("utf-8")) if path is not None else {}
    except (OSError, ValueError):
        found = {}
    return found if isinstance(found, dict) and "trials" in found else {}


def tune(
    search: OptionSearch,
    score: Score,
    n_trials: int,
    file: TrialFile | None = None,
    *,
    progress: bool = False,
) -> Tuning:
    """Try `n_trials` sets of options, the defaults first.

    Args:
        search: Says what to try next.
        score: Fits with some options and judges on validation; higher is better.
        n_trials: Of them, the defaults among them.
        file: Where trials are kept, so that a tuning can be continued.
        progress: Show a bar.
    """
    if not search.names:
        return Tuning(n_trials, (), ())
    file = file or TrialFile(None, {})
    trials = file.read()[:n_trials]
    title = f"{search.method.name}: trials"
    with progress_bar(total=n_trials, desc=title, show=progress, leave=False) as bar:
        bar.update(len(trials))
        while len(trials) < n_trials:
            proposal = search.propose([(trial.proposal, trial.score) for trial in trials])
            if proposal is None:
                break
            trials.append(_run(score, proposal, must_work=not trials))
            file.write(trials)
            bar.update()
    return Tuning(n_trials, search.names, tuple(trials))


def _run(score: Score, proposal: Proposal, *, must_work: bool) -> TrialResult:
    """Score a proposal. Some options cannot work; the defaults must."""
    started = clock.perf_counter()
    found, error = float("nan"), ""
    try:
        found = float(score(proposal.options))
    except Exception as problem:
        if must_work:
            raise
        error = " ".join(f"{type(problem).__name__}: {problem}".split())
    seconds = clock.perf_counter() - started
    return TrialResult(proposal, found if np.isfinite(found) else None, seconds, error)
