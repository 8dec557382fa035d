"""The method contract: what a comparison needs from every method, ours and the baselines.

A `Method` is fitted once per seed, proposes its own trade-off knob values on validation, and
turns each of them into a `Policy`. The comparison never asks what kind of method it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nocta.cohort.cohort import Cohort
from nocta.exceptions import ConfigError, NotFittedError
from nocta.policies.base import Policy
from nocta.predictors.base import Predictor

if TYPE_CHECKING:  # the environment imports this package
    from nocta.evaluation.rollout import Availability, Results

#: Operating points are spread over this share of the cost of acquiring everything.
COST_SHARE = (0.05, 0.90)
#: How often a range of knob values may be stretched on either side.
_MOST_STRETCHES = 3


class Trial(Protocol):
    """Whom a search space asks for values: an optuna trial, or anything like it."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of some values."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """A whole number from `low` to `high`."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number from `low` to `high`."""


class Method(ABC):
    """One way to acquire, with one knob that trades quality for cost.

    To add a method: write `fit` (store what is learned, return `self`), `settings` (the knob
    values worth trying, as plain data that can be written to `results.csv`) and `policy`.
    Then add a line to `nocta.policies.registry.METHODS`.

    A setting may contain the key `"budget"`: whoever runs the policy passes that number to
    `nocta.evaluation.rollout` as well, where it becomes a hard limit.
    """

    #: How the method is called on the command line and in results.
    name: ClassVar[str]
    #: Whether `fit` uses the predictor it is given; the others train their own.
    shares_predictor: ClassVar[bool] = False
    #: Whether the knob is a cost weight, so that given ones can replace those of `settings`.
    has_cost_weight: ClassVar[bool] = False
    #: Whether its policies add to a visit one feature after the other (`Policy.acts_within_visit`).
    acts_within_visit: ClassVar[bool] = False
    #: The rule it will be judged under, set before `fit` by whoever judges; roll-outs on
    #: validation follow it.
    availability: Availability = "on-arrival"
    #: Likewise, when a visit's results are shown; it matters to methods that act within visits.
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
        """Learn from `train`; choose whatever is to be chosen on `val`.

        Args:
            train: Subjects to learn from.
            val: Subjects to stop early and to choose on.
            seed: Same seed, same method.
            predictor: A predictor fitted on `train`, shared by the reference policies.
            progress: Show a bar.
        """

    @abstractmethod
    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        """At most `n_points` knob values whose costs on `val` spread evenly, cheapest first.

        They aim at 5 % to 90 % of what acquiring everything costs (`cost_targets`). A method
        without a knob returns one empty setting.
        """

    @abstractmethod
    def policy(self, setting: dict[str, Any]) -> Policy:
        """The policy at one operating point."""

    def search_space(self, trial: Trial) -> dict[str, Any]:
        """Options worth trying when the method is tuned, each asked of `trial` by its own name.

        Called before `fit`, so it may depend on the preset. Keep it small: a handful of options
        that matter, with the defaults among their values. By default there is nothing to tune.

        Args:
            trial: Suggests a value for each name.
        """
        return {}

    def check_options(self) -> None:
        """Raise `ConfigError` where an option cannot work; called before anything is run."""
        return None

    @classmethod
    def option_bundle(cls, preset: str) -> type[Any] | None:
        """A dataclass whose fields are options too, handed to the constructor as `options`.

        A method with nothing but plain arguments has none.

        Args:
            preset: Different presets may have different options.
        """
        return None


def require_predictor(method: Method, predictor: Predictor | None) -> Predictor:
    """The given predictor, or an error that says how to get one."""
    if predictor is None:
        raise ConfigError(
            f"Method '{method.name}' acquires for a predictor and got none; fit one on the "
            f"training subjects and pass it as predictor=..."
        )
    return predictor


def require_fitted(method: Method, attribute: str) -> None:
    """Raise `NotFittedError` where `fit` has not been called."""
    if not hasattr(method, attribute):
        raise NotFittedError(
            f"Method '{method.name}' is not fitted yet; call fit(train, val, seed=0)."
        )


def cost_of_everything(cohort: Cohort) -> float:
    """Mean charge per subject when everything is asked for (what is missing is not charged)."""
    return float(cohort.catalog.cost_of(cohort.recorded).mean())


def cost_targets(cohort: Cohort, n_points: int) -> NDArray[np.float64]:
    """Evenly spread mean costs, from 5 % to 90 % of acquiring everything, `(n_points,)`."""
    if n_points < 1:
        raise ConfigError(f"n_points is {n_points}; ask for at least one operating point.")
    low, high = COST_SHARE
    return np.linspace(low, high, n_points) * cost_of_everything(cohort)


def nearest_to_targets(
    costs: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.int64]:
    """For each target the position of the closest cost, each position once, cheapest first.

    Example:
        >>> nearest_to_targets(np.array([0.0, 1.0, 9.0]), np.array([0.9, 1.2, 8.0]))
        array([1, 2])
    """
    nearest = np.abs(np.asarray(costs)[None, :] - np.asarray(targets)[:, None]).argmin(axis=1)
    unique = np.unique(nearest)
    return np.asarray(unique[np.argsort(np.asarray(costs)[unique], kind="stable")])


def knob_value(method: Method, setting: Mapping[str, Any], knob: str) -> float:
    """The value of the knob in a setting, which may hold a hard budget beside it.

    Raises:
        ConfigError: The setting is not one of this method.
    """
    if knob not in setting or set(setting) - {knob, "budget"}:
        raise ConfigError(
            f"A setting of method '{method.name}' is {{'{knob}': number}}; got {dict(setting)}."
        )
    return float(setting[knob])


def spread_knob(
    cost_at: Callable[[float], float],
    knob_range: tuple[float, float],
    targets: NDArray[np.float64],
    *,
    n_evaluations: int = 24,
    tolerance: float = 0.02,
    n_coarse: int = 7,
    known: Mapping[float, float] | None = None,
    stretch: float | None = None,
) -> list[float]:
    """Values of a positive knob whose costs lie closest to `targets`, cheapest first.

    The knob is searched on a logarithmic scale: a coarse grid first, then always the target
    that is served worst, by interpolation between its two neighbours. Cost should rise or
    fall with the knob; where it does not quite, the nearest value seen is taken.

    Args:
        cost_at: Mean cost on validation at a knob value (often a whole roll-out).
        knob_range: Smallest and largest value to try, both positive.
        targets: Costs to aim at.
        n_evaluations: How often `cost_at` may be called.
        tolerance: Good enough, as a share of the largest target.
        n_coarse: Size of the coarse grid.
        known: Costs of knob values that were evaluated before; they count as evaluations.
        stretch: Where targets lie beyond all costs seen, look beyond the range too, by this factor
            at a time: above 1 where a larger knob costs more, below 1 where it costs less. By
            default the range is never left.

    Example:
        >>> knobs = spread_knob(lambda w: 10 / (1 + w), (0.01, 100.0), np.array([2.0, 5.0, 8.0]))
        >>> [round(10 / (1 + w), 1) for w in knobs]
        [2.0, 5.0, 8.0]
    """
    low, high = knob_range
    if not 0 < low < high:
        raise ConfigError(f"knob_range is {knob_range}; give two positive numbers, low first.")
    seen = dict(known or {})
    for x in np.linspace(np.log(low), np.log(high), max(3, min(n_coarse, n_evaluations))):
        seen[float(np.exp(x))] = float(cost_at(float(np.exp(x))))
    logs, costs = [float(np.log(value)) for value in seen], list(seen.values())
    close_enough = tolerance * float(np.max(targets))
    room = _MOST_STRETCHES * abs(float(np.log(stretch or 1.0))) + 1e-9
    low_end, high_end = float(np.log(low)) - room, float(np.log(high)) + room
    while len(logs) < n_evaluations:
        proposal = _next_knob(np.array(logs), np.array(costs), targets, close_enough)
        if proposal is None and stretch is not None:
            proposal = _beyond(logs, costs, targets, close_enough, float(np.log(stretch)))
            if proposal is not None and not low_end <= proposal <= high_end:
                proposal = None
        if proposal is None:
            break
        logs.append(proposal)
        costs.append(float(cost_at(float(np.exp(proposal)))))
    return [float(np.exp(logs[i])) for i in nearest_to_targets(np.array(costs), targets)]


def _beyond(
    logs: list[float],
    costs: list[float],
    targets: NDArray[np.float64],
    close_enough: float,
    step: float,
) -> float | None:
    """One step beyond the knobs seen, towards the target farthest outside the costs seen."""
    dearer, cheaper = float(np.max(targets)) - max(costs), min(costs) - float(np.min(targets))
    if max(dearer, cheaper) <= close_enough:
        return None
    towards = step if dearer >= cheaper else -step
    return (max(logs) if towards > 0 else min(logs)) + towards


def _next_knob(
    logs: NDArray[np.float64],
    costs: NDArray[np.float64],
    targets: NDArray[np.float64],
    close_enough: float,
) -> float | None:
    """Where to look next: inside the narrowest bracket of the worst served target."""
    order = np.argsort(logs)
    logs, costs = logs[order], costs[order]
    misses = np.abs(costs[None, :] - targets[:, None]).min(axis=1)
    for i in np.argsort(-misses):
        if misses[i] <= close_enough:
            return None
        above = costs >= targets[i]
        crossings = np.flatnonzero(above[1:] != above[:-1])
        for j in crossings:
            if logs[j + 1] - logs[j] < 1e-4:
                continue  # a jump: no knob value gives this cost
            share = (targets[i] - costs[j]) / (costs[j + 1] - costs[j])
            # Between a fifth and four fifths, so that a bracket always shrinks.
            return float(logs[j] + np.clip(share, 0.2, 0.8) * (logs[j + 1] - logs[j]))
    return None
