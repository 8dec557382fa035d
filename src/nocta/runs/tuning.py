"""Tuning: every method may try the same number of options on validation, and keeps the best.

Trial 0 is the method with its defaults, so tuning never makes validation worse. A proposal depends
on the seed, the number of trials so far and their scores alone, so a tuning that was stopped
continues as if it had not been. Test subjects are not within reach of this module.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import MissingExtraError
from nocta.core.metrics import LOWER_IS_BETTER, evaluate_pairs
from nocta.core.operating_points import cost_of_everything
from nocta.core.rollout import Rollout
from nocta.evaluation.frontier import Frontier
from nocta.methods.contract import Method
from nocta.runs.record import TrialRecord
from nocta.runs.results import plain

#: Trials drawn at random before earlier scores are used.
N_STARTUP = 5
#: Trials are scored up to this share of the cost of acquiring everything.
COST_SHARE = 0.90
#: Repeated proposals after which the search space counts as exhausted.
MAX_REPEATS = 50
_NAME = "tuning"


def load_optuna() -> Any:
    """The optional dependency, quiet, or an error that names the extra."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError(
            "Tuning needs optuna, which is not installed. Install it with: pip install "
            "'nocta[tune]', or leave out --tune."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class Tuning:
    """The search for the options of one job: `ask` for options, `tell` how they did.

    The method's `search_space` says what there is to tune. Options in `fixed`, chosen by the user,
    are not searched. The search learns from `defaults`, the values of the others.
    """

    def __init__(
        self,
        method: Method,
        seed: int,
        n_trials: int,
        fixed: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.seed = seed
        self.n_trials = n_trials
        self.fixed = dict(fixed or {})
        self._default = _Space(self.fixed, defaults or {})
        #: Options that are searched; none if the method has nothing to tune.
        self.names = tuple(self._options(self._default))
        self._asked: dict[str, Any] = {}
        self._study: Any = None
        self.trials: list[TrialRecord] = []

    def open(self, journal: Path | None = None) -> None:
        """Continue with the trials in Optuna's journal; without one, keep trials in memory."""
        optuna = load_optuna()
        try:
            self._study = self._read(optuna, journal)
        except (ValueError, KeyError):
            assert journal is not None
            journal.unlink()  # damaged by a kill: begin again
            self._study = self._read(optuna, journal)
        found = self._study.trials[: self.n_trials]
        self.trials = [TrialRecord(**trial.user_attrs["result"]) for trial in found]

    def _read(self, optuna: Any, journal: Path | None) -> Any:
        storage = None
        if journal is not None:
            from optuna.storages.journal import JournalFileBackend

            storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal)))
        return optuna.create_study(
            storage=storage, study_name=_NAME, direction="maximize", load_if_exists=True
        )

    def _options(self, space: _Space) -> dict[str, Any]:
        found = self.method.search_space(space)
        return {name: value for name, value in found.items() if name not in self.fixed}

    def ask(self) -> dict[str, Any] | None:
        """The next options to try; `None` if enough were tried or nothing new is found."""
        if not self.names or len(self.trials) >= self.n_trials:
            return None
        if not self.trials:
            self._asked = {"options": {}, **self._default.as_trial(load_optuna())}
            return {}
        optuna = load_optuna()
        draft = optuna.create_study(direction="maximize")
        draft.add_trials(self._study.get_trials(states=[optuna.trial.TrialState.COMPLETE]))
        tried = [trial.options for trial in self.trials]
        if self._default.inside:
            tried.append(self._default.values)
        for attempt in range(MAX_REPEATS):
            entropy = np.random.SeedSequence([self.seed, len(self.trials), attempt])
            draft.sampler = optuna.samplers.TPESampler(
                seed=int(entropy.generate_state(1)[0]), n_startup_trials=N_STARTUP
            )
            trial = draft.ask()
            options = self._options(_Space(self.fixed, trial=trial))
            if options not in tried:
                known = {"params": trial.params, "distributions": trial.distributions}
                self._asked = {"options": options, **known}
                return options
        return None

    def tell(self, score: float | None, seconds: float, error: str = "") -> None:
        """Keep the score of the options that were asked for last; `None` if the trial failed."""
        optuna = load_optuna()
        score = score if score is not None and np.isfinite(score) else None
        asked = dict(self._asked)
        result = TrialRecord(plain(asked.pop("options")), score, seconds, error)
        # Defaults outside of the search space are kept, but the search cannot learn from them.
        good = score is not None and bool(asked["params"])
        state = optuna.trial.TrialState.COMPLETE if good else optuna.trial.TrialState.FAIL
        value, attributes = score if good else None, {"result": plain(result)}
        self._study.add_trial(
            optuna.trial.create_trial(state=state, value=value, user_attrs=attributes, **asked)
        )
        self.trials.append(result)

    @property
    def best(self) -> int:
        """Number of the best trial; the first of equals, so that defaults win a tie."""
        scores = [-np.inf if t.score is None else t.score for t in self.trials]
        return int(np.argmax(scores)) if scores else 0

    @property
    def chosen(self) -> dict[str, Any]:
        return self.trials[self.best].options if self.trials else {}

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_trials": self.n_trials,
            "tuned": list(self.names),
            "trials": plain(self.trials),
            "best": self.best,
            "chosen": self.chosen,
            "seconds": sum(trial.seconds for trial in self.trials),
        }


def tune(tuning: Tuning, score: Callable[[dict[str, Any]], float]) -> Tuning:
    """Try options until there are enough, in this process; the defaults must not raise errors."""
    while (options := tuning.ask()) is not None:
        started = clock.perf_counter()
        found, error = None, ""
        try:
            found = float(score(options))
        except Exception as problem:
            if not tuning.trials:
                raise
            error = one_line(problem)
        tuning.tell(found, clock.perf_counter() - started, error)
    return tuning


def one_line(error: BaseException) -> str:
    """Kind and message of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@dataclass
class _Space:
    """A trial that is asked only for options that are not fixed; without one, the defaults."""

    fixed: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    trial: Any = None
    #: Suggested defaults, and from what.
    values: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    #: Whether every default is inside the search space.
    inside: bool = True

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return self._suggest(name, "categorical", choices=list(choices))

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        return int(self._suggest(name, "int", low=low, high=high, log=log))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return float(self._suggest(name, "float", low=low, high=high, log=log))

    def _suggest(self, name: str, kind: str, **limits: Any) -> Any:
        if name in self.fixed:
            return self.fixed[name]
        if self.trial is not None:
            return getattr(self.trial, f"suggest_{kind}")(name, **limits)
        value, choices = self.defaults.get(name), limits.get("choices")
        if choices is not None:
            inside = name in self.defaults and value in choices
        else:
            inside = isinstance(value, int | float) and limits["low"] <= value <= limits["high"]
        self.values[name] = value if inside else choices[0] if choices else limits["low"]
        self.asked[name] = (kind, limits)
        self.inside = self.inside and inside
        return self.values[name]

    def as_trial(self, optuna: Any) -> dict[str, Any]:
        """Params and distributions of the defaults; empty if they are outside of the space."""
        if not self.inside:
            return {"params": {}, "distributions": {}}
        made = {
            name: getattr(optuna.distributions, f"{kind.capitalize()}Distribution")(**limits)
            for name, (kind, limits) in self.asked.items()
        }
        return {"params": dict(self.values), "distributions": made}


@dataclass(frozen=True)
class ValidationArea:
    """The scale on which the trials of all methods of a seed are scored.

    The score is the mean quality over all costs from 0 to `high`, 90 % of the cost of acquiring
    everything: the area under the curve through all operating points, divided by that range.
    Every curve starts at cost 0 with the quality `start` of predicting the training frequency of
    each class at each slot. It is linear between points and flat after the most expensive one, so
    covering fewer costs gains nothing.
    """

    metric: str
    high: float
    start: float

    @classmethod
    def of(cls, train: Cohort, val: Cohort, metric: str) -> Self:
        shape = (len(val), val.n_times, val.n_classes)
        guess = np.broadcast_to(class_frequencies(train), shape)
        start = evaluate_pairs(val.labels, guess, [metric])[metric]
        return cls(metric, COST_SHARE * cost_of_everything(val), start)

    def score(self, rollouts: Sequence[Rollout]) -> float:
        """Score of the operating points together, higher is better; NaN if undefined."""
        area = Frontier.of(rollouts, self.metric).area(0.0, self.high, (0.0, self.start))
        return -area if self.metric in LOWER_IS_BETTER else area


def class_frequencies(cohort: Cohort) -> NDArray[np.float64]:
    """Smoothed frequency of each class at each slot, `(L, C)`."""
    classes = np.arange(cohort.n_classes)
    counts = (cohort.labels[:, :, None] == classes).sum(axis=0).astype(float)
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + cohort.n_classes)
    return np.asarray((counts + overall) / (counts.sum(axis=1, keepdims=True) + 1))
