"""How the `default` preset fits its amortized estimator.

Many subjects: one network, trained on random plans and then refreshed on own plans, round by round.
Few: a committee that is drawn toward the population's mean, which is learned too, or counted
(`nocta.planning.estimators.population_plug_in`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from nocta.core.cohort import Cohort
from nocta.model.presets.options import DefaultOptions
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.committee import CommitteeEstimator, PopulationEstimator
from nocta.planning.estimators.on_policy import PlanMemory, RememberedPlans
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.training import TrainingConfig

E = TypeVar("E", AmortizedEstimator, PopulationEstimator)
#: Share of a label that is replaced by the best informed prediction, if labels are few.
HINDSIGHT = 0.9
#: Networks of each kind in a committee.
N_NETWORKS = 2


def amortized_training(n_train: int, overfits: bool) -> TrainingConfig:
    """Length and pace of one round of training, by the number of subjects."""
    batch_size = 128 if n_train >= 2000 else 64
    epochs = int(np.clip(1500 * batch_size / n_train, 10, 120))
    return TrainingConfig(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=4e-3,
        weight_decay=1e-2 if overfits else 0.0,
        check_every=max(1, epochs // 12),
        patience=6,
    )


@dataclass(frozen=True)
class Subjects:
    """Whom to learn from and whom to stop and choose on, with their losses."""

    train: Cohort
    targets: LossTargets
    val: Cohort
    val_targets: LossTargets
    seed: int
    progress: bool

    def fit(self, estimator: E, **options: Any) -> E:
        """Fit an estimator to them."""
        data = (self.train, self.targets, self.val, self.val_targets)
        estimator.fit(*data, progress=self.progress, **options)
        return estimator


def fit_network(
    options: DefaultOptions,
    data: Subjects,
    own_plans: Callable[[AmortizedEstimator, np.random.Generator], PlanMemory],
) -> AmortizedEstimator:
    """Random plans first, then refreshes on `own_plans` that the network makes itself."""
    train, seed = data.train, data.seed
    network = AmortizedEstimator(
        hidden=options.hidden,
        training=amortized_training(len(train), overfits=False),
        loss=options.loss,
        seed=seed,
    )
    data.fit(network)
    rng = np.random.default_rng(seed + 17)
    for _ in range(options.n_rounds):
        memory = own_plans(network, rng)
        requests = RememberedPlans(memory, len(train), train.catalog.open_slots)
        data.fit(network, requests=requests, warm_start=True)
    return network


def fit_committee(
    options: DefaultOptions, data: Subjects, *, with_population: bool = True
) -> CommitteeEstimator:
    """Networks of several seeds, with and without values.

    Networks of the population are left out if its mean is counted instead.
    """
    n_train = len(data.train)
    hidden = options.hidden if n_train >= 2000 else min(options.hidden, 32)
    shared: dict[str, Any] = {
        "hidden": hidden,
        "training": amortized_training(n_train, overfits=True),
        "loss": options.loss,
    }
    individuals, populations = [], []
    for seed in (data.seed + 1000 * i for i in range(N_NETWORKS)):
        individuals.append(data.fit(AmortizedEstimator(dropout=0.2, seed=seed, **shared)))
        if with_population:
            populations.append(data.fit(PopulationEstimator(seed=seed, **shared)))
    return CommitteeEstimator(individuals, populations)
