"""Part `bank`: what a smaller, stratified or indexed bank of retrieval does to quality and time.

The clinic of `make_large.py`: eight tests, ten visits, the last stage is rare at first. One fit
of the `default` preset with retrieval; only the bank is exchanged.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from make_large import write_large
from measure import timed
from nocta.cohort.cohort import Cohort
from nocta.estimators.bank import Index, Sampling, choose_bank
from nocta.estimators.contrastive import ContrastiveEstimator
from nocta.estimators.retrieval import NeighborBank
from nocta.estimators.targets import LossTargets
from nocta.evaluation.metrics import average_precision, cross_entropy
from nocta.evaluation.rollout import rollout
from nocta.presets.default import DefaultPlanner
from scenes import Sizes, shared_predictor, training_of

BANKS: tuple[tuple[int, Sampling, Index], ...] = (
    (300, "even", "torch"),
    (300, "stratified", "torch"),
    (1000, "even", "torch"),
    (1000, "stratified", "torch"),
    (3000, "even", "torch"),
    (3000, "even", "faiss"),
)


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Cost, quality and time of one roll-out per bank, same subjects, same cost weight."""
    del models
    n_train, n_test = {"full": (6000, 300), "quick": (3000, 60)}.get(sizes.name, (120, 4))
    train, val, test = clinic(n_train, n_test)
    predictor = shared_predictor("default", train, val, sizes)
    with training_of(sizes):
        planner = DefaultPlanner.fit(train, val, "contrastive", predictor=predictor)
    weight = 0.5 * planner.cost_scale
    banks = BANKS if sizes.name != "tiny" else BANKS[:2]
    rows = []
    for size, sampling, index in banks:
        planner.contrastive = with_bank(planner, train, min(size, n_train), sampling, index)
        done, took = timed(lambda: rollout(planner.policy(weight), test))
        labels, proba = test.labels[test.labelled], done.probabilities[test.labelled]
        rows.append(
            {
                "bank": min(size, n_train),
                "sampling": sampling,
                "index": index,
                "cost": done.cost,
                "ap": average_precision(labels, proba),
                "cross_entropy": cross_entropy(labels, proba),
                "objective": float(
                    cross_entropy(labels, proba) * test.labelled.sum(1).mean() + weight * done.cost
                ),
                "ms_per_subject": 1e3 * took.cpu_seconds / len(test),
            }
        )
    return {"train": len(train), "test": len(test), "cost_weight": weight, "rows": rows}


def clinic(n_train: int, n_test: int) -> tuple[Cohort, Cohort, Cohort]:
    """Train, validation and test subjects of the large clinic's process."""
    n_val = max(60, n_train // 6)
    with tempfile.TemporaryDirectory() as folder:
        list(write_large(Path(folder), n_train + n_val + n_test))
        path = Path(folder) / "cohort"
        cohort = Cohort.from_table(path, path / "schema.toml")
        order = np.arange(len(cohort))
        parts = np.split(order, (n_train, n_train + n_val))
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
