"""Part `bank`: what a smaller, stratified or indexed bank of retrieval does to quality and time.

The clinic of `make_large.py`: eight tests, ten visits, the last stage is rare at first. One fit
of the `default` preset with retrieval; only the bank is exchanged. The yardstick is the whole
bank: what a smaller one adds to loss plus weighted cost, subject by subject.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from make_large import draw_cohort
from measure import timed
from nocta.core.cohort import Cohort
from nocta.core.losses import pair_losses
from nocta.core.metrics import average_precision
from nocta.core.rollout import Rollout, rollout
from nocta.model.presets.default import DefaultPlanner
from nocta.planning.estimators.bank import Index, Sampling, choose_bank
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.targets import LossTargets
from scenes import Sizes, shared_predictor, training_of

#: One in this many training subjects is kept, how, and how the nearest are found; first all.
BANKS: tuple[tuple[int, Sampling, Index], ...] = (
    (1, "even", "torch"),
    (2, "even", "torch"),
    (2, "even", "faiss"),
    (2, "stratified", "torch"),
    (6, "even", "torch"),
    (6, "stratified", "torch"),
    (20, "even", "torch"),
    (20, "stratified", "torch"),
)
_RESAMPLES = 2000


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Cost, quality and time of one roll-out per bank, same subjects, same cost weight."""
    del models
    n_train, n_test = {"full": (6000, 300), "quick": (3000, 60)}.get(sizes.name, (120, 4))
    train, val, test = clinic(n_train, n_test)
    predictor = shared_predictor("default", train, val, sizes)
    with training_of(sizes):
        planner = DefaultPlanner.fit(train, val, "contrastive", predictor=predictor)
    weight = 0.5 * planner.cost_scale
    rows: list[dict[str, Any]] = []
    whole: NDArray[np.float64] | None = None
    for one_in, sampling, index in BANKS:
        size = n_train // one_in
        planner.contrastive = with_bank(planner, train, size, sampling, index)
        done, took = timed(lambda: rollout(planner.policy(weight), test))
        own = objectives(done, weight)
        whole = own if whole is None else whole
        labels, proba = test.labels[test.labeled], done.probabilities[test.labeled]
        rows.append(
            {
                "bank": size,
                "sampling": sampling,
                "index": index,
                "cost": done.cost,
                "ap": average_precision(labels, proba),
                "objective": float(own.mean()),
                "added": float((own - whole).mean()),
                "added_error": bootstrap_error(own - whole),
                "ms_per_subject": 1e3 * took.cpu_seconds / len(test),
            }
        )
    return {"train": len(train), "test": len(test), "cost_weight": weight, "rows": rows}


def objectives(done: Rollout, cost_weight: float) -> NDArray[np.float64]:
    """Loss plus weighted cost of every subject, `(n,)`."""
    losses = np.nansum(pair_losses(done.labels, done.probabilities), axis=1)
    return np.asarray(losses + cost_weight * done.costs)


def bootstrap_error(amounts: NDArray[np.float64], seed: int = 0) -> float:
    """How far the mean over subjects could have come out otherwise: its standard error."""
    n = len(amounts)
    draws = np.random.default_rng(seed).integers(n, size=(_RESAMPLES, n))
    return float(amounts[draws].mean(axis=1).std())


def clinic(n_train: int, n_test: int) -> tuple[Cohort, Cohort, Cohort]:
    """Train, validation and test subjects of the large clinic's process."""
    n_val = max(60, n_train // 6)
    cohort = draw_cohort(n_train + n_val + n_test)
    parts = np.split(np.arange(len(cohort)), (n_train, n_train + n_val))
    train, val, test = (cohort.subset(rows) for rows in parts)
    return train, val, test


def with_bank(
    planner: DefaultPlanner, train: Cohort, size: int, sampling: Sampling, index: Index
) -> ContrastiveEstimator:
    """Retrieval with the same embedding from another bank."""
    before = planner.contrastive
    assert before is not None
    rows, stands_for = choose_bank(train.labels, size, sampling)
    predictor = planner.predictor
    kept = train.subset(rows)
    bank = NeighborBank(
        kept,
        "embedding",
        encoder=before.bank.encoder,
        embedding=before.bank.embedding,
        predictor=predictor.members[0],
        n_neighbors=before.bank.n_neighbors,
        kernel=before.bank.kernel,
        stands_for=stands_for if sampling == "stratified" else None,
        index=index,
    )
    targets = LossTargets(
        kept, predictor.members, predictor.fold[rows], expected=before.targets.expected
    )
    return ContrastiveEstimator(bank, targets, before.loss)
