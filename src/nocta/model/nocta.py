"""NOCTA, ready to use: fit once, then roll out, plan, trace the frontier, save and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability
from nocta.core.errors import ConfigError, DataError, NotFittedError
from nocta.core.history import History
from nocta.core.operating_points import cost_targets, spread_knob
from nocta.core.options import NonNegative, Options, Preset, check_value, read_options
from nocta.core.parameters import Parameters
from nocta.core.plugins import plugins
from nocta.core.predictor import Predictor
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.frontier import Frontier
from nocta.model.presets.base import Planner, Task
from nocta.model.presets.options import DefaultOptions, PaperOptions
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.explain import Recommendation, recommend
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.tables.schema import Schema
from nocta.tables.validate import check_classes, check_fits


class NOCTA(Parameters):
    """Plans whole sets of future acquisitions, executes the earliest part, replans.

    Args:
        estimator: `"amortized"` (fast), `"contrastive"` (evidence from similar subjects),
            `"ensemble"` of both, mixed on validation, or the name of an installed estimator.
        preset: `"default"` is what we recommend; `"paper"` is as published.
        seed: Same seed, same model.
        options: `nocta.DefaultOptions` or `nocta.PaperOptions`, or some of their fields by name.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> train, val, test = tiny_cohort(n_subjects=60, seed=0).split(seed=0)
        >>> model = NOCTA(seed=0, options={"n_rounds": 0}).fit(train, val)
        >>> bool(model.rollout(test, budget=2.0).costs.max() <= 2.0)
        True
    """

    #: How it was fitted, if `nocta fit` did it.
    record_: dict[str, Any]

    def __init__(
        self,
        estimator: str = "amortized",
        preset: Preset = "default",
        seed: int = 0,
        options: Options | Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.preset = preset
        self.seed = seed
        self.options = options

    def fit(
        self,
        train: Cohort,
        val: Cohort,
        *,
        predictor: Predictor | None = None,
        progress: bool = False,
    ) -> Self:
        """Learn from `train`; stop early and choose on `val`.

        Args:
            train: Subjects to learn from.
            val: Subjects to choose on; never the ones to be judged on.
            predictor: What to acquire for; the preset's own, fitted here, by default. One that
                `fit_predictor` fitted on the same `train` and `val` is taken as it is. Any other
                `Predictor` that can `fit` is fitted again, once per fold; one that cannot is used
                as it is. The `paper` preset needs one with a network.
            progress: Show bars.
        """
        planner = planner_class(self.preset, self.estimator)
        options = read_options(model_options(self.preset, self.estimator), self.options)
        check_parts(train, val)
        task = Task(train, val, self.estimator, self.seed, progress, predictor, options)
        self.planner_ = planner.fit(task)
        self.catalog_, self.classes_ = train.catalog, train.classes
        self.schema_ = Schema.of(train).model_dump(mode="json", exclude_none=True)
        return self

    @property
    def _planner(self) -> Planner:
        if not hasattr(self, "planner_"):
            raise NotFittedError("This model is not fitted yet; call `fit(train, val)` first.")
        return self.planner_

    def check_fits(self, cohort: Cohort) -> None:
        """Raise if a cohort has other slots, features, context or classes than this model."""
        _ = self._planner  # fitted?
        check_fits(self.catalog_, self.classes_, cohort)

    def policy(self, cost_weight: float = 0.0, *, replan: bool = True) -> PlanningPolicy:
        """The acting policy at one cost weight (`alpha`)."""
        check_value("cost_weight", cost_weight, NonNegative)
        return self._planner.policy(cost_weight, replan=replan)

    def rollout(
        self,
        cohort: Cohort,
        cost_weight: float = 0.0,
        *,
        budget: float | NDArray[np.float64] | None = None,
        replan: bool = True,
        availability: Availability = "on-arrival",
        progress: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Rollout:
        """Act on a whole cohort (Algorithm 1).

        Args:
            cohort: The subjects; their values stay inside the environment.
            cost_weight: What one unit of cost is worth in loss (`alpha`).
            budget: Hard limit per subject.
            replan: Plan again after each acquisition.
            availability: What is known of missing values beforehand.
            progress: Show a bar.
            limits: How many subjects are rolled out together; it changes no decision.

        Prices are those of the cohort's catalog; they may differ from those of the fit.
        Everything acquired and predicted is returned, so memory grows with the cohort.
        """
        self.check_fits(cohort)
        budgets = None if budget is None else np.broadcast_to(budget, len(cohort))
        parts = piece_rows(len(cohort), limits)
        pieces = [
            rollout(
                self.policy(cost_weight, replan=replan),
                cohort if len(parts) == 1 else cohort.subset(rows),
                budget=None if budgets is None else budgets[rows],
                availability=availability,
                seed=self.seed,
                progress=progress,
            )
            for rows in parts
        ]
        return pieces[0] if len(pieces) == 1 else Rollout.concatenate(pieces)

    def frontier(
        self,
        cohort: Cohort,
        cost_weights: Sequence[float] | None = None,
        metric: str = "accuracy",
        **options: Any,
    ) -> Frontier:
        """Cost against quality over several cost weights.

        Args:
            cohort: The subjects to act on.
            cost_weights: By default six around the one at which acquiring everything breaks even.
            metric: A metric of `nocta.core.metrics`.
            options: Options of `rollout`.
        """
        if cost_weights is None:
            cost_weights = (self._planner.cost_scale * np.geomspace(0.2, 1.2, 6)).tolist()
        done = [self.rollout(cohort, weight, **options) for weight in cost_weights]
        return Frontier.of(done, metric)

    def suggest_cost_weights(
        self,
        val: Cohort,
        n_points: int = 10,
        n_subjects: int | None = None,
        *,
        availability: Availability = "on-arrival",
    ) -> list[float]:
        """Cost weights whose costs on validation spread evenly, cheapest first.

        Args:
            val: Subjects to try them on; never the ones to be judged on.
            n_points: How many to find.
            n_subjects: How many of `val` to try; by default fewer if neighbors vote.
            availability: The rule of the roll-outs they are meant for.
        """
        n_subjects = n_subjects or (300 if self.estimator == "amortized" else 100)
        some = val.subset(np.random.default_rng(self.seed).permutation(len(val))[:n_subjects])
        scale = self._planner.cost_scale

        def cost_at(weight: float) -> float:
            return self.rollout(some, weight, availability=availability).cost

        evaluations = 20 if self.estimator == "amortized" else 14
        return spread_knob(
            cost_at,
            (scale * 0.01, scale * 4),
            cost_targets(some, n_points),
            n_evaluations=evaluations,
        )

    def decide(
        self,
        history: History,
        cost_weight: float = 0.0,
        *,
        time: int | None = None,
        remaining: float | None = None,
    ) -> Recommendation:
        """The next acquisition of one subject, what it is expected to bring, and the runner-up.

        Args:
            history: What is known of the subject.
            cost_weight: What one unit of cost is worth in loss (`alpha`).
            time: The slot the subject is at; by default the last one with a request.
            remaining: What may still be spent, without limit by default.
        """
        policy = self.policy(cost_weight)
        expected = (self.catalog_.n_times, len(self.catalog_.columns))
        if history.values.shape[1:] != expected:
            raise DataError(
                f"The history has {history.values.shape[1]} slots and {history.values.shape[2]} "
                f"columns; the model has {expected[0]} and {expected[1]}."
            )
        if remaining is not None and not remaining >= 0:
            raise ConfigError(f"remaining is {remaining}; use a number of at least 0.")
        return recommend(policy, history, self.catalog_, time=time, remaining=remaining)

    def save(self, path: str | Path) -> None:
        """Write the model as a folder: `manifest.json` and `arrays.safetensors`."""
        from nocta.model.persistence import save_model

        save_model(self, path)


def check_parts(train: Cohort, val: Cohort) -> None:
    """Raise if a model could not be fitted to these subjects; nothing is trained."""
    check_fits(train.catalog, train.classes, val)
    check_classes(train, val, "validation", tolerance=0.01)


def piece_rows(n_subjects: int, limits: Limits = DEFAULT_LIMITS) -> list[NDArray[np.int64]]:
    """Rows of the subjects that are rolled out together, piece by piece."""
    n_pieces = max(1, -(-n_subjects // limits.rollout_subjects))
    return np.array_split(np.arange(n_subjects), n_pieces)


def planner_class(preset: str, estimator: str = "amortized") -> type[Planner]:
    """The class that fits an estimator in a preset."""
    from nocta.model.presets import plugin

    check_value("preset", preset, Preset)
    if estimator not in plugin.BUILT_IN:
        plugin.estimator_class(estimator)
        return plugin.PaperPluginPlanner if preset == "paper" else plugin.PluginPlanner
    if estimator in plugins("nocta.estimators"):
        raise ConfigError(
            f"An installed package provides the estimator '{estimator}', but that name is built "
            f"in. Rename it there, or uninstall the package."
        )
    if preset == "default":
        from nocta.model.presets.default import DefaultPlanner

        return DefaultPlanner
    from nocta.model.presets.paper import PaperPlanner

    return PaperPlanner


def model_options(preset: str, estimator: str) -> type[Options]:
    """The options of an estimator in a preset."""
    from nocta.model.presets import plugin

    if estimator not in plugin.BUILT_IN:
        return plugin.PluginOptions
    return PaperOptions if preset == "paper" else DefaultOptions
