"""NOCTA with an estimator of another package, found through the entry point `nocta.estimators`.

Such a class derives from `nocta.NoctEstimator` and can be built without arguments. It has
`fit(train, val, predictor, *, seed, progress=False)`, and `score_plans(observation, plans)`. With
`state()` and `from_state(config, arrays)` it can be saved as well. The search, the cost weights and
the explanations are those of every other estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, ModelError, did_you_mean
from nocta.core.estimator import NoctEstimator
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.options import Count, Options, Preset
from nocta.core.plugins import load_plugin, plugins
from nocta.core.policy import Observation
from nocta.core.predictor import Predictor
from nocta.model.presets.base import EstimatorName, Planner, Task, break_even_weight, slot_worth
from nocta.model.presets.default_state import actions_arrays, restore_actions
from nocta.model.state import Arrays, State, nest, take_part
from nocta.planning.algorithm import Search
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.plan_values import PlanValues
from nocta.planning.search import FoundPlans, beam_search, draw_candidates, sample_search
from nocta.planning.space import ActionTable
from nocta.predictors.neural import ClassWeight
from nocta.predictors.registry import predictor_state, restore_predictor

BUILT_IN: tuple[str, ...] = get_args(EstimatorName)


def estimator_class(name: str) -> type[Any]:
    """The class of an installed estimator; raises `ConfigError` if there is none that fits."""
    known = list(dict.fromkeys([*BUILT_IN, *plugins("nocta.estimators")]))
    if name not in known:
        raise ConfigError(
            f"There is no estimator '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}."
        )
    found: type[Any] = load_plugin("nocta.estimators", name, NoctEstimator)
    if not isinstance(found, type) or not hasattr(found, "fit"):
        raise ConfigError(
            f"The estimator '{name}' is {found!r}; expected a class with "
            f"fit(train, val, predictor, *, seed, progress=False)."
        )
    return found


class PluginOptions(Options):
    """How plans are searched for an installed estimator."""

    class_weight: ClassWeight = None
    """`"balanced"` counters rare classes when the predictor is fitted."""
    search: Literal["uniform", "guided"] = "guided"
    """Draw candidate plans uniformly, or by slot value. An estimator that scores slot by slot
    (`SequentialEstimator`) is searched with a beam instead."""
    n_candidates: Count = 1000
    """Candidate plans per decision (`|O|`)."""
    width: Count = 16
    """Beam width of an estimator that scores slot by slot."""


@dataclass(eq=False)
class PluginPlanner(Planner):
    """A fitted estimator of another package, and how its plans are searched."""

    chunk = 64
    preset: ClassVar[Preset] = "default"

    name: str
    options: PluginOptions
    predictor: Predictor
    estimator: Any
    actions: ActionTable
    cost_scale: float
    worth: NDArray[np.float64]
    seed: int

    def search(self, cost_weight: float) -> Search:
        options, estimator = self.options, _Verified(self.name, self.estimator)
        worth = self.worth if options.search == "guided" else None

        def grow(observation: Observation, weights: NDArray[np.float64], /) -> FoundPlans:
            actions = self.actions_for(observation.catalog)
            return beam_search(self.estimator, observation, actions, weights, options.width)

        def sample(observation: Observation, weights: NDArray[np.float64], /) -> FoundPlans:
            plans = draw_candidates(observation, options.n_candidates, self.seed, worth)
            actions = self.actions_for(observation.catalog)
            charges = actions.expected_charges(observation.catalog, plans)
            return sample_search(estimator, observation, plans, charges, weights)

        return grow if isinstance(self.estimator, SequentialEstimator) else sample

    def values(self, cost_weight: float) -> PlanValues:
        return PlanValues(_Verified(self.name, self.estimator), self.actions)

    @classmethod
    def fit(cls, task: Task) -> Self:
        train, estimator = task.train, task.estimator
        built = estimator_class(estimator)()
        predictor = task.cross_fitted(cls.preset)
        built = built.fit(train, task.val, predictor, seed=task.seed, progress=task.progress)
        losses = partial(_predicted_losses, predictor, train)
        worth = slot_worth(losses, train)
        actions = ActionTable.build(train.catalog, train, worth)
        scale = break_even_weight(losses, train)
        return cls(estimator, task.options, predictor, built, actions, scale, worth, task.seed)

    def state(self) -> State:
        if not can_save(type(self.estimator)):
            raise ModelError(cannot_save(self.name))
        config = {
            "estimator": self.name,
            "options": self.options.model_dump(),
            "cost_scale": self.cost_scale,
            "n_times": self.actions.n_times,
            "seed": self.seed,
        }
        arrays = {"worth": self.worth, **actions_arrays(self.actions)}
        own = self.estimator.state()
        return nest(config, arrays, predictor=predictor_state(self.predictor), own=own)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        return cls(
            config["estimator"],
            PluginOptions(**config["options"]),
            restore_predictor(*take_part(config, arrays, "predictor")),
            estimator_class(config["estimator"]).from_state(*take_part(config, arrays, "own")),
            restore_actions(arrays, config["n_times"]),
            config["cost_scale"],
            arrays["worth"],
            config["seed"],
        )


class PaperPluginPlanner(PluginPlanner):
    """The same with the published predictor."""

    preset = "paper"


def can_save(cls: type[Any]) -> bool:
    """Whether an estimator has what saving needs."""
    return hasattr(cls, "state") and hasattr(cls, "from_state")


def cannot_save(name: str) -> str:
    """Why a model with this estimator is not saved."""
    return (
        f"A model with the estimator '{name}' cannot be saved: the estimator has no `state()` and "
        f"`from_state(config, arrays)`. `nocta compare` runs it without saving."
    )


class _Verified(NoctEstimator):
    """Scores of an estimator of another package; scores that cannot be ranked are refused."""

    def __init__(self, name: str, estimator: NoctEstimator) -> None:
        self.name, self.estimator = name, estimator

    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        given = self.estimator.score_plans(observation, plans)
        scores = given if isinstance(given, Tensor) else torch.from_numpy(np.array(given))
        expected = (len(observation), plans.shape[-3])
        if tuple(scores.shape) != expected or bool(scores.isnan().any()):
            found = "NaN" if tuple(scores.shape) == expected else f"shape {tuple(scores.shape)}"
            raise ConfigError(
                f"score_plans of the estimator '{self.name}' gave {found}; expected one finite "
                f"score per subject and plan, of shape {expected}."
            )
        return scores


def _predicted_losses(
    predictor: Predictor, cohort: Cohort, index: NDArray[np.int64], requested: NDArray[np.bool_]
) -> Tensor:
    """Cross-entropy of a predictor's own predictions, for `break_even_weight` and `slot_worth`."""
    some = cohort.subset(index)
    predicted = predictor.predict_proba(History.of(some, requested))
    losses = np.nan_to_num(pair_losses(some.labels, predicted))
    return torch.from_numpy(losses[..., None])
