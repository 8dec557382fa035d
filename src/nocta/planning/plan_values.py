"""What plans are worth, and how certain that is: the numbers behind an explanation.

A policy says what to do; `PlanValues` says what any plan, also one the policy did not propose, is
expected to lose and to be charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.estimator import NoctEstimator
from nocta.core.policy import Observation
from nocta.planning.estimators.committee import CommitteeEstimator, EnsembleEstimator
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.population_plug_in import PopulationPlugIn
from nocta.planning.estimators.retrieval import Neighbors
from nocta.planning.estimators.targets import plan_losses
from nocta.planning.space import ActionTable


class Voters(NamedTuple):
    """The similar training subjects a value rests on."""

    neighbors: Neighbors
    train: Cohort


@dataclass(frozen=True)
class PlanValues:
    """Values any plan for one subject.

    Args:
        estimator: What plans are expected to lose. Only differences between plans count.
        actions: Expected charges; without it, plans are charged their list price.
    """

    estimator: NoctEstimator
    actions: ActionTable | None = None

    @torch.no_grad()
    def losses(self, observation: Observation, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Expected loss-to-go of plans, `(p, L, M)` to `(p,)`."""
        return self.estimator.score_plans(observation, plans)[0].double().numpy()

    def charges(self, observation: Observation, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Expected charges of plans, `(p, L, M)` to `(p,)`."""
        if self.actions is None or observation.available is not None:
            return observation.catalog.cost_of(plans)
        actions = self.actions.at_prices(observation.catalog)
        return actions.expected_charges(observation.catalog, plans)

    @torch.no_grad()
    def standard_error(self, observation: Observation, pair: NDArray[np.bool_]) -> float | None:
        """Standard error of the difference in expected loss of two plans, `(2, L, M)`.

        From the networks of a committee, the neighbors that vote, or the training subjects that
        are counted; `None` if the estimator is a single network.
        """
        variance = difference_variance(self.estimator, observation, pair)
        return None if variance is None else float(np.sqrt(variance))

    def voters(self, observation: Observation) -> Voters | None:
        """The similar training subjects the values rest on, if the estimator asks any."""
        found = _contrastive_part(self.estimator)
        return None if found is None else Voters(found.bank.nearest(observation), found.bank.train)


@singledispatch
def difference_variance(
    estimator: NoctEstimator, observation: Observation, pair: NDArray[np.bool_]
) -> float | None:
    """Squared standard error of the difference between two plans; `None` if it is unknown."""
    return None


@difference_variance.register
def _(
    estimator: EnsembleEstimator, observation: Observation, pair: NDArray[np.bool_]
) -> float | None:
    found = [
        (weight, difference_variance(member, observation, pair))
        for member, weight in zip(estimator.members, estimator.weights, strict=True)
    ]
    known = [weight**2 * variance for weight, variance in found if variance is not None]
    return float(sum(known)) if known else None


@difference_variance.register
def _(
    estimator: CommitteeEstimator, observation: Observation, pair: NDArray[np.bool_]
) -> float | None:
    own = estimator.individual_share
    groups = ((estimator.individuals, own), (estimator.populations, 1 - own))
    known = [
        share**2
        * _variance_of_mean(torch.cat([m.score_plans(observation, pair) for m in networks]))
        for networks, share in groups
        if len(networks) > 1 and share
    ]
    return float(sum(known)) if known else None


@difference_variance.register
def _(
    estimator: ContrastiveEstimator, observation: Observation, pair: NDArray[np.bool_]
) -> float | None:
    neighbors = estimator.bank.nearest(observation)
    asked, time = observation.history.requested[0], int(observation.time[0])
    how = (neighbors.subjects[0].numpy(), asked, pair, time, estimator.reduction)
    which = estimator.targets.kinds.index(estimator.loss)
    losses = plan_losses(estimator.targets, *how)[..., which]
    return _variance_of_mean(losses, neighbors.weight[0]) if len(losses) > 1 else None


@difference_variance.register
def _(
    estimator: PopulationPlugIn, observation: Observation, pair: NDArray[np.bool_]
) -> float | None:
    everyone = np.arange(len(estimator.targets.fold))
    asked, time = observation.history.requested[0], int(observation.time[0])
    which = estimator.targets.kinds.index(estimator.loss)
    return _variance_of_mean(
        plan_losses(estimator.targets, everyone, asked, pair, time)[..., which]
    )


def _variance_of_mean(scores: Tensor, weight: Tensor | None = None) -> float:
    """Variance of the weighted mean of `scores[:, 0] - scores[:, 1]` over opinions, `(k, 2)`."""
    gap = (scores[:, 0] - scores[:, 1]).double()
    k = len(gap)
    weight = torch.full((k,), 1 / k).double() if weight is None else weight.double()
    around = gap - (weight * gap).sum()
    return float((weight**2 * around**2).sum()) * k / (k - 1)


def _contrastive_part(estimator: NoctEstimator) -> ContrastiveEstimator | None:
    if isinstance(estimator, ContrastiveEstimator):
        return estimator
    members = estimator.members if isinstance(estimator, EnsembleEstimator) else []
    return next((part for m in members if (part := _contrastive_part(m)) is not None), None)
