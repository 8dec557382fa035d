"""The method contract: what a comparison needs from every method, ours and the baselines.

A `Method` is fitted once per seed, proposes values of its own trade-off knob on validation, and
turns each of them into a `Policy`. The comparison never asks what kind of method it is.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Results
from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.options import Options, check_arguments, given_values, read_options
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.model.state import Arrays, State


class Trial(Protocol):
    """Suggests values for a search space: an optuna trial, or anything like it."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of some values."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """A whole number from `low` to `high`."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number from `low` to `high`."""


class Method(ABC):
    """One way to acquire, with one knob that trades quality for cost.

    To add a method: write `fit` (store what is learned, return `self`), `settings` (the knob
    values worth trying, as plain data that can be written to `results.csv`) and `policy`. Then
    declare the class as an entry point of `nocta.methods` in your package, or pass it to
    `nocta.methods.registry.register_method`. `__init__` only stores its arguments; their
    annotations say which values are allowed. With `state` and `from_state`, `nocta fit` saves it.

    A setting may contain the key `"budget"`: the comparison passes that number to
    `nocta.core.rollout` as well, where it becomes a hard limit.
    """

    #: The name of the method on the command line and in results.
    name: ClassVar[str]
    #: Whether `fit` uses the predictor it is given; the others train their own.
    shares_predictor: bool = False
    #: Whether `fit` adapts the predictor it is given to the method's own histories.
    adapts_predictor: ClassVar[bool] = False
    #: Whether the knob is a cost weight, so that given ones can replace those of `settings`.
    has_cost_weight: ClassVar[bool] = False
    #: Whether its policies add to a visit one feature after the other (`Policy.acts_within_visit`).
    acts_within_visit: ClassVar[bool] = False
    #: Further options, passed to the constructor as `options`.
    bundle: ClassVar[type[Options] | None] = None
    #: The rule of the comparison, set before `fit`; roll-outs on validation follow it.
    availability: Availability = "on-arrival"
    #: When a visit's results are shown, set before `fit`; for methods that act within visits.
    results: Results = "after-visit"

    @abstractmethod
    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        """Learn from `train`; choose on `val`.

        Args:
            train: Subjects to learn from.
            val: Subjects to stop early and to choose on.
            seed: Same seed, same method.
            predictor: A predictor fitted on `train`, shared by the reference policies.
            progress: Show a bar.
        """

    @abstractmethod
    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        """At most `n_points` knob values that spread along the curve on `val`, cheapest first.

        `nocta.core.knob_search` finds them for any method, with the same number of roll-outs.
        Comparisons add acquiring nothing and everything as the ends. A method without a knob
        returns one empty setting.
        """

    @abstractmethod
    def policy(self, setting: dict[str, Any]) -> Policy:
        """The policy at one operating point."""

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Options worth trying when the method is tuned, each suggested by `trial` by its name.

        Called before `fit`, so it may depend on the preset. Keep it small: a handful of options
        that matter, with the defaults among their values. By default there is nothing to tune.
        """
        return {}

    def check_options(self) -> None:
        """Raise `ConfigError` if an option cannot work; called before anything is run."""
        check_arguments(self)
        bundle = self.option_bundle(getattr(self, "preset", "default"))
        if bundle is not None:
            read_options(bundle, getattr(self, "options", None))

    def check_predictor(self, predictor: Predictor) -> None:
        """Raise `ConfigError` if the method cannot use a predictor, fitted or not."""
        if not self.shares_predictor:
            raise ConfigError(
                f"Method '{self.name}' trains its own predictor, so it cannot use "
                f"{type(predictor).__name__}. Leave out --predictor, or choose another method."
            )

    @classmethod
    def option_bundle(cls, preset: str) -> type[Options] | None:
        """The class of `options` in a preset; `bundle` unless presets differ."""
        return cls.bundle

    def arguments(self) -> dict[str, Any]:
        """The arguments of the constructor as plain data."""
        names = inspect.signature(type(self)).parameters
        found = {name: getattr(self, name) for name in names}
        return {k: given_values(v) if isinstance(v, Options) else v for k, v in found.items()}

    def state(self) -> State:
        """Plain configuration and arrays that restore the fitted method; optional."""
        raise NotImplementedError(f"Method '{self.name}' cannot be saved: it has no `state`.")

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Inverse of `state`; optional."""
        raise NotImplementedError(f"Method '{cls.name}' cannot be loaded: it has no `from_state`.")


def suggest(trial: Trial, space: Mapping[str, list[Any] | tuple[Any, Any]]) -> dict[str, Any]:
    """A value for every option: one of a list, or from a range on a logarithmic scale."""
    out: dict[str, Any] = {}
    for name, values in space.items():
        if isinstance(values, list):
            out[name] = trial.suggest_categorical(name, values)
        elif isinstance(values[0], int):
            out[name] = trial.suggest_int(name, *values, log=True)
        else:
            out[name] = trial.suggest_float(name, *values, log=True)
    return out


def require_predictor(method: Method, predictor: Predictor | None) -> Predictor:
    """The given predictor, or an error that says how to get one."""
    if predictor is None:
        raise ConfigError(
            f"Method '{method.name}' acquires for a predictor and got none; fit one on the "
            f"training subjects and pass it as predictor=..."
        )
    return predictor


def require_fitted(method: Method, attribute: str) -> None:
    """Raise `NotFittedError` if `fit` has not been called."""
    if not hasattr(method, attribute):
        raise NotFittedError(
            f"Method '{method.name}' is not fitted yet; call fit(train, val, seed=0)."
        )


def knob_value(method: Method, setting: Mapping[str, Any], knob: str) -> float:
    """The value of the knob in a setting, which may hold a hard budget beside it."""
    if knob not in setting or set(setting) - {knob, "budget"}:
        raise ConfigError(
            f"A setting of method '{method.name}' is {{'{knob}': number}}; got {dict(setting)}."
        )
    return float(setting[knob])
