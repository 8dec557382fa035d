"""The embedding of NOCT-Contrastive: subjects are near if the same acquisitions pay for them.

Paper: section 3.4, equations 4 and 5; four hidden layers (appendix B.3). The network `g_phi` is
trained on pairs of subjects under the same mask at the same time, by how alike their
future-candidate distributions are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.random_plans import random_requests, uniform_plans
from nocta.planning.estimators.future_distribution import (
    Weighting,
    contrastive_loss,
    future_distribution,
    similarity,
)
from nocta.planning.estimators.network import FittedNetwork
from nocta.planning.estimators.targets import LossTargets, plan_losses
from nocta.planning.objective import LossReduction
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.mlp import MLPNet
from nocta.predictors.recurrent import RecurrentNet
from nocta.predictors.training import TrainingConfig, train

EMBEDDING_TRAINING = TrainingConfig(
    epochs=40, batch_size=64, learning_rate=1e-3, schedule="constant", patience=10, check_every=1
)


@dataclass(eq=False, repr=False)
class Embedding(FittedNetwork):
    """Maps what is known about a subject to a point (`g_phi`).

    The similarity of two subjects is averaged over the cost weights given to `fit`: one as in the
    paper, or several for an embedding that serves a whole range.
    """

    network: Literal["mlp", "recurrent"] = "mlp"  # `"mlp"` as in the paper, or `"recurrent"`
    hidden: int = 32  # units of each hidden layer: 32 in the paper, 64 for OAI
    n_layers: int = 4  # number of hidden layers of `"mlp"`
    n_dimensions: int = 32  # length of the embedding (`E`)
    n_candidates: int = 200  # number of random plans from which each subject's best ones are taken
    n_top_plans: int = 5  # number of best plans that count (`kappa`)
    similarity_scale: float = 1.0  # how sharply divergence lowers similarity (`beta`)
    margin: float = 1.0  # squared distance beyond which dissimilar pairs no longer repel (`gamma`)
    weighting: Weighting = "softmax"  # how the top plans are combined; see `future_distribution`
    reduction: LossReduction = "sum"  # sum or mean of the loss over later times
    n_validation_masks: int = 32  # number of masks under which validation pairs are compared
    #: Epochs and so on; `batch_size` subjects share a mask, and all their pairs count.
    training: TrainingConfig = EMBEDDING_TRAINING
    seed: int = 0

    def fit(
        self,
        train_cohort: Cohort,
        train_targets: LossTargets,
        val_cohort: Cohort,
        val_targets: LossTargets,
        cost_weights: Sequence[float],
        *,
        progress: bool = False,
    ) -> Self:
        """Learn from pairs of training subjects; the weights best on validation pairs are kept.

        Similarity is averaged over `cost_weights` (`alpha`), under the first kind of loss of the
        targets.
        """
        if len(cost_weights) == 0 or min(cost_weights) < 0:
            raise ConfigError(
                f"cost_weights is {list(cost_weights)}; give one or more numbers of at least 0."
            )
        rng = np.random.default_rng(self.seed)
        self.encoder_ = InputEncoder().fit(train_cohort)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.net_ = self._build()
            pairs = _Pairs(self, train_cohort, train_targets, cost_weights)
            val_rng = np.random.default_rng(self.seed + 1)
            val_pairs = _Pairs(self, val_cohort, val_targets, cost_weights)
            size = min(self.training.batch_size, len(val_cohort))
            held_out = [
                val_pairs.draw(val_rng.choice(len(val_cohort), size, replace=False), val_rng)
                for _ in range(self.n_validation_masks)
            ]

            self.log_ = train(
                self.net_,
                len(train_cohort),
                lambda index: self._pair_loss(*pairs.draw(index, rng)),
                lambda: float(np.mean([float(self._pair_loss(*group)) for group in held_out])),
                self.training,
                rng,
                description="embedding",
                progress=progress,
            )
        return self

    def _build(self) -> nn.Module:
        e = self.encoder_
        if self.network == "recurrent":
            return RecurrentNet(e.width, self.hidden, self.n_dimensions)
        context = e.width - e.slot_width - e.n_times_
        return MLPNet(
            e.slot_width, context, e.n_times_, self.hidden, self.n_dimensions, self.n_layers
        )

    def _pair_loss(self, inputs: Tensor, time: int, alike: Tensor) -> Tensor:
        points = self._points(inputs, time)
        first, second = torch.triu_indices(len(points), len(points), offset=1)
        distance = (points[first] - points[second]).square().sum(dim=1)
        return contrastive_loss(distance, alike[first, second], self.margin).mean()

    def _points(self, inputs: Tensor, time: int) -> Tensor:
        # Read at the next slot, where nothing is known yet, so that slot -1 is not a special case.
        return self.net_(inputs)[:, time + 1]  # type: ignore[no-any-return]

    @torch.no_grad()
    def embed(self, inputs: Tensor, time: int) -> Tensor:
        """Points of subjects at slot `time`, `(n, n_dimensions)`, from inputs of `encoder_`.

        Nothing may be known after `time`, which runs from -1 to `L - 2`.
        """
        self._check_fitted()
        if isinstance(self.net_, MLPNet):
            return self.net_.at(inputs, time + 1)
        return self._points(inputs, time)


class _Pairs:
    """Subjects of one cohort under a shared random mask, and the similarity of their futures."""

    def __init__(
        self,
        embedding: Embedding,
        cohort: Cohort,
        targets: LossTargets,
        cost_weights: Sequence[float],
    ) -> None:
        self.settings = embedding
        self.data = EncodedCohort(embedding.encoder_, cohort)
        self.targets, self.cost_weights = targets, cost_weights
        self.catalog = cohort.catalog
        # Without context, all subjects are the same before the first visit.
        self.earliest = -1 if cohort.context.shape[1] or cohort.n_times < 2 else 0

    def draw(
        self, index: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[Tensor, int, Tensor]:
        """Inputs `(b, L, width)`, the time, and similarities `(b, b)`."""
        s, length = self.settings, self.catalog.n_times
        time = int(rng.integers(self.earliest, length - 1))
        later = np.arange(length)[:, None] > time
        known = random_requests(1, self.catalog.open_slots, rng)[0] & ~later
        plans = uniform_plans(s.n_candidates, self.catalog.open_slots & later, rng)
        inputs = self.data.inputs(index, np.repeat(known[None], len(index), axis=0))
        losses = plan_losses(self.targets, index, known, plans, time, s.reduction)[..., 0]
        # Unavailable values are not charged.
        recorded = self.data.recorded[index][:, None]
        cost = torch.from_numpy(self.catalog.cost_of(plans & recorded)).float()
        total = torch.zeros(len(index), len(index))
        for weight in self.cost_weights:
            scores = losses + weight * cost  # the plug-in NOCT of equation 3
            zeta = future_distribution(torch.from_numpy(plans), scores, s.n_top_plans, s.weighting)
            total += similarity(zeta[:, None], zeta[None], s.similarity_scale)
        return inputs, time, total / len(self.cost_weights)
