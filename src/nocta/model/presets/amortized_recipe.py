"""How the `default` preset fits its amortized estimator.

Many subjects: one network, trained on random plans and then refreshed on own plans, round by round.
Few: a committee that is drawn towards the population's mean, which is learned too, or counted
(`nocta.planning.estimators.population_plug_in`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nocta.core.cohort import Cohort
from nocta.model.presets.options import DefaultOptions
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.committee import CommitteeEstimator
from nocta.planning.estimators.on_policy import PlanMemory, RememberedPlans
from nocta.planning.estimators.population import PopulationEstimator
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.training import TrainingConfig

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


def fit_network(
    options: DefaultOptions,
    train: Cohort,
    targets: LossTargets,
    val: Cohort,
    val_targets: LossTargets,
    seed: int,
    own_plans: Callable[[AmortizedEstimator, np.random.Generator], PlanMemory],
    progress: bool,
) -> AmortizedEstimator:
    """Random plans first, then refreshes on `own_plans` that the network makes itself."""
    network = AmortizedEstimator(
        hidden=options.hidden,
        training=amortized_training(len(train), overfits=False),
        loss=options.loss,
        seed=seed,
    )
    network.fit(train, targets, val, val_targets, progress=progress)
    rng = np.random.default_rng(seed + 17)
    for _ in range(options.n_rounds):
        memory = own_plans(network, rng)
        network.fit(
            train,
            targets,
            val,
            val_targets,
            requests=RememberedPlans(memory, len(train), train.catalog.open_slots),
            warm_start=True,
            progress=progress,
        )
    return network


def fit_committee(
    options: DefaultOptions,
    train: Cohort,
    targets: LossTargets,
    val: Cohort,
    val_targets: LossTargets,
    seed: int,
    progress: bool,
    *,
    with_population: bool = True,
) -> CommitteeEstimator:
    """Networks of several seeds, with and without values.

    Networks of the population are left out if its mean is counted instead.
    """
    training = amortized_training(len(train), overfits=True)
    hidden = options.hidden if len(train) >= 2000 else min(options.hidden, 32)
    individuals, populations = [], []
    for i in range(N_NETWORKS):
        own = AmortizedEstimator(
            hidden=hidden, dropout=0.2, training=training, loss=options.loss, seed=seed + 1000 * i
        )
        individuals.append(own.fit(train, targets, val, val_targets, progress=progress))
        if not with_population:
            continue
        common = PopulationEstimator(
            hidden=hidden, training=training, loss=options.loss, seed=seed + 1000 * i
        )
        populations.append(common.fit(train, targets, val, val_targets, progress=progress))
    return CommitteeEstimator(individuals, populations)
