"""Methods that are trained once for every value of their trade-off knob.

NOCTA keeps loss and cost apart until plans are ranked, so one fit serves every cost weight. Most
published methods put the weight into their training loss, so each operating point needs a fit.
`RetrainedMethod` places the same number of fits for every such method where costs spread best.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.knob_search import search_knob
from nocta.core.operating_points import CurveEnds, cost_and_loss, spread_points
from nocta.core.options import NonNegative
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.core.rollout import rollout
from nocta.methods.contract import Method, knob_value, require_fitted
from nocta.model.state import Arrays, State, nest, take_part

#: Fits per seed if no grid is given, and in a quick run.
N_FITS = 7
N_FITS_QUICK = 3


def _as_list(grid: Any) -> Any:
    return grid if grid is None else np.atleast_1d(np.asarray(grid)).tolist()


#: Knob values; a single number is a grid too.
Grid = Annotated[
    Annotated[Sequence[NonNegative], Field(min_length=1)] | None, BeforeValidator(_as_list)
]


class RetrainedMethod(Method):
    """One training run per knob value; subclasses write `_prepare` and `_train`.

    Args:
        grid: Knob values to train at. By default those of the paper for this data set, and others
            that fill the gaps of the cost-quality curve on validation.
        quick: A quick run: few and short fits.
    """

    #: Name of the knob in a setting.
    knob: ClassVar[str]
    #: Smallest and largest knob value worth trying, in the method's own scale.
    knob_range: ClassVar[tuple[float, float]]
    #: Whether a larger value acquires more.
    knob_buys: ClassVar[bool] = False
    #: The paper's values by `Cohort.published`.
    paper_grids: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    policies_: dict[float, Policy]
    costs_: dict[float, float]
    losses_: dict[float, float]

    def __init__(self, grid: Grid = None, quick: bool = False) -> None:
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
        self.policies_, self.costs_, self.losses_ = {}, {}, {}
        self._prepare(train, val, seed, predictor, progress)

        def point_at(value: float) -> tuple[float, float]:
            if value not in self.costs_:
                policy = self._train(value, train, val, seed, progress)
                self.policies_[value] = policy
                self.costs_[value], self.losses_[value] = self._try(policy, val, seed)
            return self.costs_[value], self.losses_[value]

        if self.grid is not None:
            for value in _as_list(self.grid):
                point_at(float(value))
            return self
        n_fits = N_FITS_QUICK if self.quick else N_FITS
        knob_range = self._knob_range(train)
        first = () if self.quick else self._first_values(train)
        for value in first or (float(np.sqrt(knob_range[0] * knob_range[1])),):
            point_at(value)
        search_knob(
            point_at,
            knob_range,
            self._ends(val),
            n_fits,
            n_evaluations=n_fits,
            n_coarse=3,
            known={value: point_at(value) for value in self.costs_},
            stretch=4.0 if self.knob_buys else 0.25,
        )
        return self

    def _try(self, policy: Policy, val: Cohort, seed: int) -> tuple[float, float]:
        """Cost and loss of a policy on validation, under the rules of the comparison."""
        rules: dict[str, Any] = {"availability": self.availability, "results": self.results}
        return cost_and_loss(rollout(policy, val, seed=seed, **rules))

    def _ends(self, val: Cohort) -> CurveEnds:
        """Acquiring nothing and everything, as the first policy predicts."""
        return CurveEnds.of(next(iter(self.policies_.values())), val)

    def settings(self, val: Cohort, n_points: int) -> list[dict[str, Any]]:
        require_fitted(self, "policies_")
        values = sorted(self.costs_, key=self.costs_.__getitem__)
        # All fits are shown unless fewer points are requested.
        if len(values) > n_points:
            for value in values:  # a folder of an earlier version holds no losses
                if value not in self.losses_:
                    self.losses_[value] = self._try(self.policies_[value], val, seed=0)[1]
            costs, losses = ([found[v] for v in values] for found in (self.costs_, self.losses_))
            values = [values[i] for i in spread_points(costs, losses, self._ends(val), n_points)]
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
        """Knob values to begin with; override if the paper's are not always wanted."""
        return self.paper_grids.get(train.published, ())

    def _knob_range(self, train: Cohort) -> tuple[float, float]:
        """Where to look for knob values; override if it follows the prices."""
        return self.knob_range

    def _prepare(
        self, train: Cohort, val: Cohort, seed: int, predictor: Predictor | None, progress: bool
    ) -> None:
        """Fit what does not depend on the knob; nothing by default."""

    @abstractmethod
    def _train(self, value: float, train: Cohort, val: Cohort, seed: int, progress: bool) -> Policy:
        """The policy trained at one knob value."""

    # -- saving ---------------------------------------------------------------------------

    def state(self) -> State:
        values, costs = list(self.costs_), list(self.costs_.values())
        config = {"arguments": self.arguments(), "values": values, "costs": costs}
        config["losses"] = list(self.losses_.values())
        own = {f"policy{i}": self._policy_state(self.policies_[v]) for i, v in enumerate(values)}
        return nest(config, {}, shared=self._shared_state(), **own)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        out = cls(**config["arguments"])
        out.costs_ = dict(zip(config["values"], config["costs"], strict=True))
        out.losses_ = dict(zip(config["values"], config.get("losses", []), strict=False))
        out._recall_shared(*take_part(config, arrays, "shared"))
        out.policies_ = {
            value: out._recall_policy(*take_part(config, arrays, f"policy{i}"))
            for i, value in enumerate(out.costs_)
        }
        return out

    def _shared_state(self) -> State:
        """What the policies have in common; nothing by default."""
        return {}, {}

    def _recall_shared(self, config: dict[str, Any], arrays: Arrays) -> None:
        """Inverse of `_shared_state`."""

    def _policy_state(self, policy: Any) -> State:
        """What is particular to one policy."""
        raise NotImplementedError(f"Method '{self.name}' cannot be saved.")

    def _recall_policy(self, config: dict[str, Any], arrays: Arrays) -> Policy:
        """Inverse of `_policy_state`."""
        raise NotImplementedError(f"Method '{self.name}' cannot be loaded.")
