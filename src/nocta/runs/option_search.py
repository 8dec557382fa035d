"""Which options of a method to try next, given those that were tried: optuna behind one class.

What is proposed depends on the seed, on how many were tried and on their scores alone, not on
the state of a running sampler. So a search that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nocta.core.errors import MissingExtraError
from nocta.methods.contract import Method, Trial

#: Proposals drawn at random before earlier scores are looked at.
N_STARTUP = 5
#: Proposals that were tried before, until the space counts as exhausted.
MAX_REPEATS = 50


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


@dataclass(frozen=True)
class Proposal:
    """Options to try.

    Args:
        options: By name; those not named have their default.
        params: What was suggested, as optuna knows it; empty where that is not known.
        distributions: From what, as optuna writes it.
    """

    options: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)
    distributions: dict[str, str] = field(default_factory=dict)


class OptionSearch:
    """Proposes options of one method: its defaults first, then by tree-structured Parzen windows.

    Args:
        method: Not fitted; its `search_space` says what there is.
        seed: Same seed and same scores, same proposals.
        fixed: Options that were chosen already and are not searched for.
        defaults: Values of options that are not given, for the search to learn from.
    """

    def __init__(
        self,
        method: Method,
        seed: int,
        fixed: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.seed = seed
        self.fixed = dict(fixed or {})
        self._probe = _Probe(defaults or {})
        #: Options that are searched for; none where the method has nothing to tune.
        self.names = tuple(self._options(self._probe))

    def _options(self, trial: Trial) -> dict[str, Any]:
        found = self.method.search_space(_Asking(trial, self.fixed))
        return {name: value for name, value in found.items() if name not in self.fixed}

    def propose(self, done: Sequence[tuple[Proposal, float | None]]) -> Proposal | None:
        """The next options; `None` when nothing new is found.

        Args:
            done: What was tried, in order, and its score: higher is better, `None` if it failed.
        """
        optuna = load_optuna()
        if not done:
            return Proposal({}, *self._probe.as_trial(optuna))
        study = _study(optuna, done)
        tried = [proposal.options for proposal, _ in done]
        if self._probe.inside:
            tried.append(self._probe.values)  # the defaults, spelled out
        for attempt in range(MAX_REPEATS):
            entropy = np.random.SeedSequence([self.seed, len(done), attempt])
            study.sampler = optuna.samplers.TPESampler(
                seed=int(entropy.generate_state(1)[0]), n_startup_trials=N_STARTUP
            )
            trial = study.ask()
            options = self._options(trial)
            if options not in tried:
                to_json = optuna.distributions.distribution_to_json
                written = {name: to_json(d) for name, d in trial.distributions.items()}
                return Proposal(options, trial.params, written)
        return None


def _study(optuna: Any, done: Sequence[tuple[Proposal, float | None]]) -> Any:
    """A study that knows the trials so far."""
    study = optuna.create_study(direction="maximize")
    read = optuna.distributions.json_to_distribution
    for proposal, score in done:
        if score is not None and proposal.params:
            trial = optuna.trial.create_trial(
                value=score,
                params=proposal.params,
                distributions={name: read(d) for name, d in proposal.distributions.items()},
            )
            study.add_trial(trial)
    return study


@dataclass(frozen=True)
class _Asking:
    """A trial that is not asked for what is fixed."""

    trial: Trial
    fixed: Mapping[str, Any]

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        if name in self.fixed:
            return self.fixed[name]
        return self.trial.suggest_categorical(name, choices)

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        if name in self.fixed:
            return int(self.fixed[name])
        return self.trial.suggest_int(name, low, high, log=log)

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        if name in self.fixed:
            return float(self.fixed[name])
        return self.trial.suggest_float(name, low, high, log=log)


class _Probe:
    """Walks through a search space with the default values, and notes what is asked for."""

    def __init__(self, defaults: Mapping[str, Any]) -> None:
        self.defaults = defaults
        self.values: dict[str, Any] = {}
        self.asked: dict[str, tuple[str, dict[str, Any]]] = {}
        #: Whether every default lies inside the space.
        self.inside = True

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        inside = name in self.defaults and self.defaults[name] in list(choices)
        self._note(name, inside, choices[0], "CategoricalDistribution", choices=tuple(choices))
        return self.values[name]

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        limits = {"low": low, "high": high, "log": log}
        self._note(name, self._between(name, low, high), low, "IntDistribution", **limits)
        return int(self.values[name])

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        limits = {"low": low, "high": high, "log": log}
        self._note(name, self._between(name, low, high), low, "FloatDistribution", **limits)
        return float(self.values[name])

    def _between(self, name: str, low: float, high: float) -> bool:
        value = self.defaults.get(name)
        return isinstance(value, int | float) and low <= value <= high

    def _note(self, name: str, inside: bool, other: Any, kind: str, **limits: Any) -> None:
        self.values[name] = self.defaults[name] if inside else other
        self.asked[name] = (kind, limits)
        self.inside = self.inside and inside

    def as_trial(self, optuna: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """The defaults as params and distributions; nothing where they lie outside the space."""
        if not self.inside:
            return {}, {}
        to_json = optuna.distributions.distribution_to_json
        made = {
            name: to_json(getattr(optuna.distributions, kind)(**limits))
            for name, (kind, limits) in self.asked.items()
        }
        return dict(self.values), made
