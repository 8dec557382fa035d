"""Adapt a predictor to the histories that a policy makes, and keep it if validation says so.

A predictor that was trained under random requests spends itself on histories that no policy
produces. Each member is trained further on what the policy requested of the subjects that the
member may learn from, mixed with random requests. What a policy requested by slot `k` depends on
earlier values only, so replaying it leaks no future.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.predictor import Network, Predictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.neural import cross_entropy
from nocta.predictors.replay import ReplayedRequests
from nocta.predictors.training import TrainingConfig, train

Requested = NDArray[np.bool_]
#: Share of the requests that are replayed; the others are random.
_REPLAYED = 0.8
_STEPS = 300


@dataclass(frozen=True)
class Adaptation:
    """An adapted predictor, and what it changes on validation."""

    predictor: CrossFittedPredictor  # the adapted one if it is better, otherwise the given one
    before: float  # cross-entropy on the policy's validation histories
    after: float  # the same once adapted

    @property
    def kept(self) -> bool:
        """Whether validation preferred the adapted predictor."""
        return self.after < self.before


def adapt(
    predictor: CrossFittedPredictor,
    train_part: tuple[Cohort, Sequence[Requested]],
    val_part: tuple[Cohort, Sequence[Requested]],
    seed: int,
    progress: bool = False,
) -> Adaptation:
    """Train every member on the requests of a policy; the predictor itself is left as it is.

    Each part is a cohort with what a policy requested of it, `(n, L, M)`, at several operating
    points.
    """
    cohort, requested = train_part
    val, val_requested = val_part
    adapted = copy.deepcopy(predictor)
    for which, member in enumerate(adapted.networks):
        rows = np.arange(len(cohort))
        if len(adapted.networks) > 1:
            rows = np.flatnonzero(adapted.fold != which)
        learned = cohort.subset(rows), [asked[rows] for asked in requested]
        _train_member(member, learned, val_part, seed + which, progress)
    before, after = (mean_loss(p, val, val_requested) for p in (predictor, adapted))
    return Adaptation(adapted if after < before else predictor, before, after)


def mean_loss(predictor: Predictor, cohort: Cohort, requested: Sequence[Requested]) -> float:
    """Mean cross-entropy of labeled visits after these requests."""
    histories = [History.of(cohort, asked) for asked in requested]
    losses = [pair_losses(cohort.labels, predictor.predict_proba(h)) for h in histories]
    return float(np.nanmean(losses))


def _train_member(
    member: Network,
    train_part: tuple[Cohort, Sequence[Requested]],
    val_part: tuple[Cohort, Sequence[Requested]],
    seed: int,
    progress: bool,
) -> None:
    cohort, requested = train_part
    val, val_requested = val_part
    rng = np.random.default_rng(seed)
    subjects = np.tile(np.arange(len(cohort)), len(requested))
    asked = np.concatenate(list(requested))
    draw = ReplayedRequests(subjects, asked, cohort.catalog.open_slots, _REPLAYED)
    data, held_out = (EncodedCohort(member.encoder_, c) for c in (cohort, val))
    everybody = np.arange(len(val))

    def loss(some: EncodedCohort, index: NDArray[np.int64], request: Requested) -> Tensor:
        logits = member.net_(some.inputs(index, request)) / member.temperature_
        return cross_entropy(logits, some.labels[torch.as_tensor(index)])

    def validation_loss() -> float:
        return float(np.mean([float(loss(held_out, everybody, a)) for a in val_requested]))

    epochs = int(np.clip(round(_STEPS * 256 / len(cohort)), 4, 60))
    config = TrainingConfig(
        epochs=epochs,
        batch_size=256,
        learning_rate=4e-3,
        check_every=max(1, epochs // 10),
        patience=4,
        average=0.98,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        train(
            member.net_,
            len(cohort),
            lambda index: loss(data, index, draw(index, rng)),
            validation_loss,
            config,
            rng,
            description="adapting the predictor",
            progress=progress,
        )
