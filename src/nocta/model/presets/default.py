"""The `default` preset: what we measured to be best.

The predictor suits the size of the cohort. `amortized_recipe` and `retrieval_recipe` fit the
estimators, and beam search finds plans. Nothing that is trained depends on the cost weight, so one
fit serves every cost weight and budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.losses import TrajectoryLoss
from nocta.core.policy import Observation
from nocta.core.predictor import require_network
from nocta.core.rollout import rollout
from nocta.model.presets.amortized_recipe import HINDSIGHT, Subjects, fit_committee, fit_network
from nocta.model.presets.base import Planner, Task, break_even_weight, slot_worth
from nocta.model.presets.options import DefaultOptions
from nocta.model.presets.retrieval_recipe import fit_retrieval
from nocta.planning.algorithm import PlanningPolicy, Search
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.committee import CommitteeEstimator, EnsembleEstimator
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.on_policy import PlanMemory
from nocta.planning.estimators.population_plug_in import PopulationPlugIn
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.estimators.slot_shares import can_be_counted
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.plan_values import PlanValues
from nocta.planning.search import (
    BRANCHES,
    VOTED_BRANCHES,
    FoundPlans,
    beam_search,
    draw_candidates,
    sample_search,
)
from nocta.planning.space import MAX_EXHAUSTIVE, ActionTable
from nocta.predictors.cross_fitted import CrossFittedPredictor

#: The share that is used unless validation clearly prefers another.
_MIDDLE = 0.5


@dataclass(eq=False)
class DefaultPlanner(Planner):
    """A fitted `default` preset; see the module."""

    name: str
    options: DefaultOptions
    predictor: CrossFittedPredictor
    actions: ActionTable
    cost_scale: float
    amortized: AmortizedEstimator | CommitteeEstimator | None = None
    contrastive: ContrastiveEstimator | None = None
    #: Weight of the network if both are used.
    amortized_share: float = 0.5
    #: `(L, M)` worth of each slot on its own, for guided samples.
    worth: NDArray[np.float64] | None = None
    seed: int = 0
    #: What plans do on average, if subjects are few: estimates are drawn to it.
    population: PopulationPlugIn | None = None
    #: Weight of a subject's own estimate against the population's.
    individual_share: float = 0.5

    @property
    def estimator(self) -> SequentialEstimator:
        """The estimator that plans."""
        members: list[SequentialEstimator] = [
            m for m in (self.amortized, self.contrastive) if m is not None
        ]
        own = members[0]
        if len(members) > 1:
            own = EnsembleEstimator(members, [self.amortized_share, 1 - self.amortized_share])
        if self.population is None:
            return own
        return EnsembleEstimator(
            [own, self.population], [self.individual_share, 1 - self.individual_share]
        )

    @property
    def chunk(self) -> int:  # type: ignore[override]
        """Subjects searched for at once; fewer if voters are asked."""
        return 256 if self.contrastive is None else self.contrastive.chunk

    @property
    def loss(self) -> TrajectoryLoss:
        return self.options.loss

    @property
    def width(self) -> int:
        return self.options.width if self.contrastive is None else self.options.voting_width

    @property
    def branches(self) -> int:
        """Fewer if neighbors vote and there are too many subsets to try them all."""
        proposed = max(len(s) for s in self.actions.subsets) > 2**MAX_EXHAUSTIVE
        return VOTED_BRANCHES if proposed and self.contrastive is not None else BRANCHES

    def search(self, cost_weight: float, n_best: int = 2) -> Search:
        estimator, options = self.estimator, self.options

        def grow(observation: Observation, weights: NDArray[np.float64], /) -> FoundPlans:
            actions = self.actions_for(observation.catalog)
            how = {"n_best": n_best, "branches": self.branches}
            return beam_search(estimator, observation, actions, weights, self.width, **how)

        def sample(observation: Observation, weights: NDArray[np.float64], /) -> FoundPlans:
            worth = self.worth if options.search == "guided" else None
            plans = draw_candidates(observation, options.n_candidates, self.seed, worth)
            actions = self.actions_for(observation.catalog)
            charges = actions.expected_charges(observation.catalog, plans)
            return sample_search(estimator, observation, plans, charges, weights, n_best)

        return grow if options.search == "beam" else sample

    def values(self, cost_weight: float) -> PlanValues:
        return PlanValues(self.estimator, self.actions)

    # -- fitting --------------------------------------------------------------------

    @classmethod
    def fit(cls, task: Task) -> Self:
        train, val, estimator, seed = task.train, task.val, task.estimator, task.seed
        knobs: DefaultOptions = task.options
        if task.predictor is not None and estimator != "amortized" and knobs.metric == "predictor":
            user, reason = "metric='predictor'", "reads the predictor's last layer"
            require_network(task.predictor, user, reason)
        predictor = task.cross_fitted("default")
        few = len(predictor.members) > 1
        expected, hindsight = predictor.expected and not few, HINDSIGHT if few else 0.0
        how: dict[str, Any] = {"expected": expected, "hindsight": hindsight}
        targets = LossTargets(train, predictor.members, predictor.fold, **how)
        val_targets = LossTargets(val, predictor.members[:1], **how)
        crowded = (train.catalog.open_slots.sum(axis=1) > MAX_EXHAUSTIVE).any()
        worth = slot_worth(targets, train) if crowded or knobs.search == "guided" else None
        actions = ActionTable.build(train.catalog, train, worth)
        scale = break_even_weight(targets, train)
        planner = cls(estimator, knobs, predictor, actions, scale, worth=worth, seed=seed)
        if few and can_be_counted(targets):
            planner.population = PopulationPlugIn(train, targets, knobs.loss)
        data = Subjects(train, targets, val, val_targets, seed, task.progress)
        if estimator in ("amortized", "ensemble"):
            planner._fit_amortized(data)
        if estimator in ("contrastive", "ensemble"):
            tables = planner.population.tables if planner.population is not None else None
            planner.contrastive = fit_retrieval(knobs, predictor, data, scale, tables)
        if estimator == "ensemble":
            planner._choose("amortized_share", val, seed)
        if planner.population is not None:
            planner._choose("individual_share", val, seed)
        return planner

    def _fit_amortized(self, data: Subjects) -> None:
        """One network if there are many subjects, a committee if there are few."""
        if len(self.predictor.members) == 1:

            def own_plans(network: AmortizedEstimator, rng: np.random.Generator) -> PlanMemory:
                self.amortized = network
                return self._own_plans(data.train, rng, data.progress)

            self.amortized = fit_network(self.options, data, own_plans)
            return
        counted = self.population is not None
        committee = fit_committee(self.options, data, with_population=not counted)
        share = 1.0 if counted else self.options.individual_share
        if share is None:

            def use(share: float) -> None:
                self.amortized = committee.with_share(share)

            share = self.least_regret(use, data.val, data.seed, _MIDDLE)
        self.amortized = committee.with_share(share)

    def _own_plans(self, train: Cohort, rng: np.random.Generator, progress: bool) -> PlanMemory:
        """Let the planner act on training subjects under many cost weights; keep its plans."""
        memory = PlanMemory()
        chosen = np.sort(rng.permutation(len(train))[: self.options.n_refreshed])
        # Few distinct weights, so that subjects about whom the same is known are planned once.
        grid = self.cost_scale * np.geomspace(0.15, 1.5, 8)
        policy = PlanningPolicy(
            self.predictor,
            self.search(0.0, n_best=3),
            rng.choice(grid, len(chosen)),
            on_plans=memory,
        )
        rollout(policy, train.subset(chosen), progress=progress)
        memory.subjects = [chosen[rows] for rows in memory.subjects]
        return memory

    def _choose(self, share: str, val: Cohort, seed: int) -> None:
        """Set a share: the one of the options, or the one with the least regret on validation."""
        given = getattr(self.options, share)
        if given is None:
            given = self.least_regret(partial(setattr, self, share), val, seed, _MIDDLE)
        setattr(self, share, given)

    def state(self) -> Any:
        from nocta.model.presets.default_state import planner_state

        return planner_state(self)

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        from nocta.model.presets.default_state import restore_planner

        return restore_planner(cls, config, arrays)
