"""Methods that must be trained anew for every value of their trade-off knob.

NOCTA keeps loss and cost apart until plans are ranked, so one fit serves every cost weight. Most
published methods put the weight into their training loss: each operating point is a fit of its
own. `RetrainedMethod` spends a fixed number of fits where they spread the costs best, the same
number for every such method.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.operating_points import cost_targets, nearest_to_targets, spread_knob
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.core.rollout import rollout
from nocta.methods.contract import Method, knob_value, require_fitted

#: Fits per seed where no grid is given, and in a rehearsal.
N_FITS = 7
N_FITS_QUICK = 3


class RetrainedMethod(Method):
    """One training run per knob value; subclasses write `_prepare` and `_train`.

    Args:
        grid: Knob values to train at; otherwise those of the paper where it used this data set,
            and further ones wherever the costs reached on validation leave a gap.
        quick: A rehearsal: few and short fits.
    """

    #: Name of the knob in a setting.
    knob: ClassVar[str]
    #: Smallest and largest knob value worth trying, in the method's own scale.
    knob_range: ClassVar[tuple[float, float]]
    #: Whether a larger value acquires more.
    knob_buys: ClassVar[bool] = False
    #: The paper's values by data set.
    paper_grids: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    policies_: dict[float, Policy]
    costs_: dict[float, float]

    def __init__(self, grid: Sequence[float] | None = None, quick: bool = False) -> None:
        self.grid = grid
        self.quick = quick

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        seed: int,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        self.check_options()
        self.policies_, self.costs_ = {}, {}
        self._prepare(train, val, seed, predictor, progress)

        def cost_at(value: float) -> float:
            if value not in self.costs_:
                policy = self._train(value, train, val, seed, progress)
                self.policies_[value] = policy
                found = rollout(
                    policy, val, availability=self.availability, results=self.results, seed=seed
                )
                self.costs_[value] = found.cost
            return self.costs_[value]

        if self.grid is not None:
            for value in _checked(self.grid):
                cost_at(value)
            return self
        n_fits = N_FITS_QUICK if self.quick else N_FITS
        for value in () if self.quick else self._first_values(train):
            cost_at(value)
        spread_knob(
            cost_at,
            self._knob_range(train),
            cost_targets(val, n_fits),
            n_evaluations=n_fits,
            n_coarse=3,
            known=self.costs_,
            stretch=4.0 if self.knob_buys else 0.25,
        )
        return self

    def check_options(self) -> None:
        if self.grid is not None:
            _checked(self.grid)

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "policies_")
        values = np.array(list(self.costs_))
        costs = np.array(list(self.costs_.values()))
        # Every fit was paid for: all are shown unless fewer points are asked for.
        if len(values) > n_points:
            values = values[nearest_to_targets(costs, cost_targets(val, n_points))]
        else:
            values = values[np.argsort(costs, kind="stable")]
        return [{self.knob: float(value)} for value in values]

    def policy(self, setting: dict[str, Any]) -> Policy:
        require_fitted(self, "policies_")
        value = knob_value(self, setting, self.knob)
        if value not in self.policies_:
            trained = ", ".join(f"{v:g}" for v in sorted(self.policies_))
            raise ConfigError(
                f"Method '{self.name}' was not trained at {self.knob} = {value:g}; it was at "
                f"{trained}. Pass grid=[...] with the values you need before fit."
            )
        return self.policies_[value]

    def _first_values(self, train: Cohort) -> Sequence[float]:
        """Knob values to begin with; override where the paper's are not always wanted."""
        return self.paper_grids.get(train.name, ())

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        """Where to look for knob values; override where it follows the prices."""
        return self.knob_range

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        """Fit whatever does not depend on the knob; nothing by default."""

    @abstractmethod
    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        """The policy trained at one knob value."""


def _checked(grid: Sequence[float]) -> list[float]:
    try:
        values = [float(value) for value in np.atleast_1d(np.asarray(grid, dtype=float))]
    except (TypeError, ValueError):
        values = []
    if not values or not all(np.isfinite(v) and v >= 0 for v in values):
        raise ConfigError(f"grid is {grid}; give at least one number, none of them negative.")
    return values
