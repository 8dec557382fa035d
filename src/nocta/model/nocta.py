"""NOCTA, ready to use: fit once, then roll out, plan, trace the frontier, save and load."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability
from nocta.core.errors import ConfigError, DataError, NotFittedError
from nocta.core.history import History
from nocta.core.knob_search import n_roll_outs, search_knob
from nocta.core.operating_points import CurveEnds, cost_and_loss
from nocta.core.options import NonNegative, Options, Preset, check_value, read_options
from nocta.core.parameters import Parameters
from nocta.core.plugins import plugins
from nocta.core.predictor import Predictor
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.frontier import Frontier
from nocta.model.choice.choose import Choice, choose_point, make_goal
from nocta.model.choice.default import KEY, DefaultPoint, first_default, saved_default
from nocta.model.inputs import one_subject, require_cohort
from nocta.model.presets.base import Planner, Task
from nocta.model.presets.options import AutoOptions, DefaultOptions, DirectOptions, PaperOptions
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.explain import Recommendation, recommend
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.plan_values import PlanValues
from nocta.tables.schema import Schema
from nocta.tables.usual import usual_ranges
from nocta.tables.validate import check_classes, check_fits

#: Estimators that plan for many subjects at once without asking neighbors.
_QUICK_TO_PLAN = ("direct", "amortized")


class NOCTA(Parameters):
    """Plans whole sets of future acquisitions, executes the earliest part, replans.

    Args:
        estimator: `"auto"` (validation chooses; recommended), `"direct"` (a network names the
            plan), `"amortized"` (a network scores plans),
            `"contrastive"` (evidence from similar subjects), `"ensemble"` of the last two, mixed on
            validation, or the name of an installed estimator.
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
        require_cohort(train, "fit(train, val)", "train")
        require_cohort(val, "fit(train, val)", "val")
        check_parts(train, val)
        how = (self.estimator, self.seed, progress, predictor, options, self.preset)
        task = Task(train, val, *how)
        self.planner_ = planner.fit(task)
        self.catalog_, self.classes_ = train.catalog, train.classes
        self.schema_ = Schema.of(train).model_dump(mode="json", exclude_none=True)
        self.record_: dict[str, Any] = {}
        self.val_: Cohort | None = val  # to find the default operating point when it is needed
        self.ranges_ = usual_ranges(train)
        return self

    @property
    def _planner(self) -> Planner:
        if not hasattr(self, "planner_"):
            raise NotFittedError("This model is not fitted yet; call `fit(train, val)` first.")
        return self.planner_

    def check_fits(self, cohort: Cohort) -> None:
        """Raise if a cohort has other slots, features, context or classes than this model."""
        _ = self._planner  # fitted?
        require_cohort(cohort, "rollout(cohort)", "cohort")
        check_fits(self.catalog_, self.classes_, cohort)

    @property
    def default_point(self) -> DefaultPoint:
        """The operating point that acts if no cost weight is given, and why it is this one.

        `nocta fit` saves it, and `choose` replaces it. A model that was fitted in Python finds it
        on its validation subjects when it is first needed, or saved.
        """
        _ = self._planner  # fitted?
        record, val = getattr(self, "record_", {}), getattr(self, "val_", None)
        if KEY not in record and val is not None:
            weights = [float(w) for w in record.get("cost_weights", [])]
            weights = weights or self.suggest_cost_weights(val)
            rollouts = [self.rollout(val, weight) for weight in weights]
            found = first_default([{"cost_weight": weight} for weight in weights], rollouts)
            self.record_ = {**record, "cost_weights": weights, KEY: found.to_dict()}
        return saved_default(self.record_)

    def _weight(self, given: float | None) -> float:
        """The given cost weight, or that of the default operating point."""
        if given is not None:
            check_value("cost_weight", given, NonNegative)
            return float(given)
        point = self.default_point
        if point.note:
            warnings.warn(f"Using {point.reason}. {point.note}", stacklevel=3)
        return point.cost_weight

    def policy(self, cost_weight: float | None = None, *, replan: bool = True) -> PlanningPolicy:
        """The acting policy at one cost weight (`alpha`); by default, at `default_point`."""
        cost_weight = self._weight(cost_weight)
        return self._planner.policy(cost_weight, replan=replan)

    def rollout(
        self,
        cohort: Cohort,
        cost_weight: float | None = None,
        *,
        budget: float | NDArray[np.float64] | None = None,
        replan: bool = True,
        availability: Availability = "on-arrival",
        progress: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        constraints: Any = None,
    ) -> Rollout:
        """Act on a whole cohort (Algorithm 1).

        Args:
            cohort: The subjects; their values stay inside the environment.
            cost_weight: What one unit of cost is worth in loss (`alpha`); that of `default_point`
                by default, also under a budget.
            budget: Hard limit per subject. The cost weight still decides what is worth its cost;
                with `cost_weight=0` the limit is spent on whatever helps.
            replan: Plan again after each acquisition.
            availability: What is known of missing values beforehand.
            progress: Show a bar.
            limits: How many subjects are rolled out together; it changes no decision.
            constraints: What must and must not be acquired, beside the constraints of the cohort's
                catalog, such as `"never mri at 0"`; see `Cohort.constrained`.

        Prices and constraints are those of the cohort's catalog; they may differ from those of the
        fit. Everything acquired and predicted is returned, so memory grows with the cohort.
        """
        self.check_fits(cohort)
        cohort = cohort.constrained(constraints)
        cost_weight = self._weight(cost_weight)
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

    @property
    def _plans_quickly(self) -> bool:
        return getattr(self._planner, "chosen", self.estimator) in _QUICK_TO_PLAN

    def suggest_cost_weights(
        self,
        val: Cohort,
        n_points: int = 10,
        n_subjects: int | None = None,
        *,
        availability: Availability = "on-arrival",
    ) -> list[float]:
        """Cost weights that spread along the cost-quality curve on validation, cheapest first.

        Args:
            val: Subjects to try them on; never the ones to be judged on.
            n_points: How many to find.
            n_subjects: How many of `val` to try; by default fewer if neighbors vote.
            availability: The rule of the roll-outs they are meant for.
        """
        n_subjects = n_subjects or (300 if self._plans_quickly else 100)
        some = val.subset(np.random.default_rng(self.seed).permutation(len(val))[:n_subjects])
        scale = self._planner.cost_scale

        def point_at(weight: float) -> tuple[float, float]:
            return cost_and_loss(self.rollout(some, weight, availability=availability))

        most = 20 if self._plans_quickly else 14  # neighbors take longer
        return search_knob(
            point_at,
            (scale * 0.01, scale * 4),
            CurveEnds.of(self.policy(scale), some),
            n_points,
            n_evaluations=min(most, n_roll_outs(n_points)),
            stretch=0.25,
        )

    def decide(
        self,
        history: History | Any,
        cost_weight: float | None = None,
        *,
        subject: object | None = None,
        time: int | None = None,
        remaining: float | None = None,
        constraints: Any = None,
    ) -> Recommendation:
        """The next acquisition of one subject, what it is expected to bring, and the runner-up.

        Args:
            history: What is known of the subject: a `History`, or a table (a frame or a path)
                with a row per visit, where empty means not acquired.
            cost_weight: What one unit of cost is worth in loss (`alpha`); that of `default_point`
                by default.
            subject: The subject of the table to decide for, if it has several.
            time: The slot the subject is at; by default that of the last row of a table, or the
                last one with a request.
            remaining: What may still be spent (a budget), without limit by default.
            constraints: Beside those of the model; see `rollout`.
        """
        policy = self.policy(cost_weight)
        if not isinstance(history, History):
            history, last = one_subject(self, history, subject)
            time = last if time is None else time
        self.check_history(history, remaining)
        catalog = self.catalog_.constrained(constraints)
        return recommend(policy, history, catalog, time=time, remaining=remaining)

    def check_history(self, history: History, remaining: float | None = None) -> None:
        """Raise if a history has another shape than the model's, or a limit is not a number."""
        expected = (self.catalog_.n_times, len(self.catalog_.columns))
        if history.values.shape[1:] != expected:
            raise DataError(
                f"The history has {history.values.shape[1]} slots and {history.values.shape[2]} "
                f"columns; the model has {expected[0]} and {expected[1]}."
            )
        if remaining is not None and not remaining >= 0:
            raise ConfigError(f"remaining is {remaining}; use a number of at least 0.")

    def values(self, cost_weight: float | None = None) -> PlanValues | None:
        """What any plan is worth at one cost weight, for explanations; arguments as `policy`."""
        return self._planner.values(self._weight(cost_weight))

    def choose(
        self, cohort: Cohort, *, availability: Availability = "on-arrival", **asked: Any
    ) -> Choice:
        """Choose the default operating point in your own terms, on held-out subjects.

        Ask for one of these; intervals are 95 %, by bootstrap over subjects:

        - `sensitivity=0.9, specificity=0.8`: the cheapest point that has both.
        - `at_most_cost=60`: the best point that costs at most this much a subject, on average.
        - `cost_per_case=500`: the most expensive point up to which one more case found costs at
          most this much.
        - `within=0.01, metric="ap"`: the cheapest point within 1 % of the best.
        - `risk="miss-rate", at_most=0.1, confidence=0.9`: the cheapest point whose risk is at most
          this on new subjects, promised with this confidence (`"false-alarm-rate"` and `"error"`
          too; `control="bonferroni"` if the risk does not fall with the cost).

        `positive=["worse"]` names the positive classes if there are more than two; `threshold` is
        the probability from which risks call a visit positive.

        The chosen point becomes `default_point`; `save` keeps it. If no point does what was asked,
        the default stays and `Choice.reason` says why. Use subjects that neither the fit nor the
        final test needs: validation subjects were used to stop training, which a promise is not
        valid for.
        """
        _ = self.default_point  # the points to choose from
        goal = make_goal(self.classes_, currency=self.catalog_.currency, **asked)
        weights = [float(weight) for weight in self.record_.get("cost_weights", [])]
        settings = [{"cost_weight": weight} for weight in weights]
        rollouts = [self.rollout(cohort, weight, availability=availability) for weight in weights]
        found = choose_point(settings, rollouts, goal)
        if found.setting is not None:
            self.record_ = {**self.record_, KEY: found.point.to_dict()}
        return found

    def save(self, path: str | Path) -> None:
        """Write the model as a folder: `manifest.json` and `arrays.safetensors`.

        Its `default_point` is found first, if that was not done yet.
        """
        from nocta.model.persistence import save_model

        if getattr(self, "val_", None) is not None:
            _ = self.default_point
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
    if estimator == "auto":
        from nocta.model.presets.auto import AutoPlanner

        check_value("preset of estimator 'auto'", preset, Literal["default"])
        return AutoPlanner
    if estimator == "direct":
        from nocta.model.presets.direct import DirectPlanner

        return DirectPlanner
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
    if estimator == "auto":
        return AutoOptions
    if estimator == "direct":
        return DirectOptions
    return PaperOptions if preset == "paper" else DefaultOptions
