"""NOCT-Amortized as published: a plain network predicts the gain of a plan over stopping.

Paper: section 3.5, equations 7 to 10, with the gain target of appendix B.3. The network
`f_theta(x_o, v, t)` has the predictor's hidden size; both are trained together. The `default`
preset uses `nocta.planning.estimators.amortized` instead, which predicts time by time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nocta.core.cohort import Cohort
from nocta.core.estimator import NoctEstimator
from nocta.core.policy import Observation
from nocta.core.predictor import Network
from nocta.core.random_plans import random_requests
from nocta.planning.estimators.network import FittedNetwork
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.objective import LossReduction, loss_to_go, losses_at_times
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.mlp import MLPNet
from nocta.predictors.neural import Requests, cross_entropy
from nocta.predictors.training import TrainingConfig, train

AMORTIZED_TRAINING = TrainingConfig(
    epochs=400, batch_size=128, learning_rate=1e-3, schedule="one-cycle", patience=40, check_every=5
)


class GainNet(MLPNet):
    """A plain network over what is known, the plan and the time, with one output.

    Its first layer is the sum of a subject part and a plan part, so each part is computed once when
    many plans are scored for many subjects.
    """

    def __init__(
        self, slot_width: int, context_width: int, n_times: int, n_features: int, hidden: int
    ) -> None:
        super().__init__(slot_width, context_width, n_times, hidden, 1)
        self.plan = nn.Linear(n_times * n_features, hidden)

    def subject_part(self, inputs: Tensor, time: Tensor) -> Tensor:
        """The subject part of the first layer at slots `time`, `(n, hidden)`."""
        # Read at the next slot, where nothing is known yet, so that slot -1 is not a special case.
        return self.first(inputs)[torch.arange(len(inputs)), time + 1]

    def plan_part(self, plans: Tensor) -> Tensor:
        return self.plan(plans.flatten(-2).float())  # type: ignore[no-any-return]

    def gains(self, first: Tensor) -> Tensor:
        return self.head(self.after_first(first)).squeeze(-1)  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
class AmortizedMLPEstimator(FittedNetwork, NoctEstimator):
    """Predicts how much loss each plan saves compared with stopping."""

    predictor_: Any = field(init=False, repr=False)  # a network predictor
    net_: GainNet = field(init=False, repr=False)
    hidden: int = 10  # units of each of the two hidden layers; the paper uses the predictor's size
    #: Weight of the regression relative to the predictor's cross-entropy (`lambda`).
    joint_weight: float = 1.0
    fine_tune: bool = True  # also train the predictor (equation 10); otherwise it stays fixed
    n_plans: int = 2  # number of random plans per subject and training step
    reduction: LossReduction = "sum"  # sum or mean of the loss over later times
    #: Score the empty plan as exactly zero; otherwise the network scores it.
    pin_stopping: bool = False
    training: TrainingConfig = AMORTIZED_TRAINING
    seed: int = 0
    limits: Limits = DEFAULT_LIMITS  # how many plans are scored at once

    def fit(
        self,
        predictor: Network,
        train_cohort: Cohort,
        val_cohort: Cohort,
        *,
        requests: Requests | None = None,
        progress: bool = False,
    ) -> Self:
        """Regress the gain of random plans, and fine-tune a copy of the predictor.

        The predictor is not changed; predict with `predictor_` afterward. It learns from all of the
        `requests` of training subjects, random sets by default; plans start from the part up to a
        random time.
        """
        rng = np.random.default_rng(self.seed)
        self.predictor_ = copy.deepcopy(predictor)
        self.encoder_ = predictor.encoder_
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.net_ = self._build()
            draw = self._batches(train_cohort, requests)
            held_out = self._batches(val_cohort, None)
            val_index = np.arange(len(val_cohort))
            trained = [self.net_, self.predictor_.net_] if self.fine_tune else [self.net_]
            self.log_ = train(
                nn.ModuleList(trained),
                len(train_cohort),
                lambda index: self._loss(draw(index, rng)),
                # The same masks, times and plans at every check.
                lambda: float(
                    self._loss(held_out(val_index, np.random.default_rng(self.seed + 1)))
                ),
                self.training,
                rng,
                description="amortized estimator",
                progress=progress,
            )
        self.predictor_.net_.eval()
        return self

    def _build(self) -> GainNet:
        e = self.encoder_
        context = e.width - e.slot_width - e.n_times_
        return GainNet(e.slot_width, context, e.n_times_, e.n_features_, self.hidden)

    def _batches(
        self, cohort: Cohort, requests: Requests | None
    ) -> Callable[[NDArray[np.int64], np.random.Generator], _Batch]:
        data = EncodedCohort(self.encoder_, cohort)
        open_slots = cohort.catalog.open_slots
        ask = requests or (lambda index, r: random_requests(len(index), open_slots, r))

        def draw(index: NDArray[np.int64], rng: np.random.Generator) -> _Batch:
            time = rng.integers(-1, cohort.n_times - 1, size=len(index))
            later = np.arange(cohort.n_times)[None, :, None] > time[:, None, None]
            asked = ask(index, rng)
            repeated = np.repeat(np.arange(len(index)), self.n_plans)
            plans = _random_plans((open_slots & later)[repeated], rng)
            known = asked & ~later
            return _Batch(
                torch.from_numpy(time),
                torch.from_numpy(repeated),
                torch.from_numpy(plans),
                data.inputs(index, asked),
                data.inputs(index, known),
                data.inputs(index[repeated], known[repeated] | plans),
                data.labels[torch.from_numpy(index)],
            )

        return draw

    def _loss(self, batch: _Batch) -> Tensor:
        net = self.predictor_.net_
        everyone = torch.arange(len(batch.time))
        with torch.no_grad():
            stopping = self._loss_to_go(net(batch.inputs_known), batch, everyone)
            planned = self._loss_to_go(net(batch.inputs_planned), batch, batch.repeated)
        target = stopping[batch.repeated] - planned  # the gain of appendix B.3
        subject = self.net_.subject_part(batch.inputs_known, batch.time)[batch.repeated]
        found = self.net_.gains(subject + self.net_.plan_part(batch.plans))
        regression = (found - target).square().mean()
        if not self.fine_tune:
            return regression
        prediction = cross_entropy(net(batch.inputs_asked), batch.labels)
        return prediction + self.joint_weight * regression

    def _loss_to_go(self, logits: Tensor, batch: _Batch, rows: Tensor) -> Tensor:
        log_proba = torch.log_softmax(logits / self.predictor_.temperature_, dim=-1)
        labels = batch.labels[rows]
        later = torch.arange(labels.shape[1]) > batch.time[rows, None]
        losses = losses_at_times(log_proba, labels, "cross-entropy") * later
        return loss_to_go(losses, -1, (labels >= 0) & later, self.reduction)

    @torch.no_grad()
    def score_plans(self, observation: Observation, plans: NDArray[np.bool_]) -> Tensor:
        """Expected loss-to-go of every plan less that of stopping, `(n, p)`; lower is better."""
        self._check_fitted()
        steps = torch.from_numpy(np.ascontiguousarray(plans))
        inputs = self.encoder_.encode(observation.history)
        subject = self.net_.subject_part(inputs, torch.from_numpy(observation.time))
        parts = self.net_.plan_part(steps)
        parts = parts if steps.ndim == 4 else parts.expand(len(subject), *parts.shape)
        size = max(1, self.limits.gain_units // (parts.shape[1] * self.hidden))
        starts = range(0, len(subject), size)
        gains = torch.cat(
            [self.net_.gains(subject[i : i + size, None] + parts[i : i + size]) for i in starts]
        )
        if self.pin_stopping:
            gains = torch.where(steps.flatten(-2).any(dim=-1), gains, 0.0)
        return -gains

    @classmethod
    def from_state(  # type: ignore[override]
        cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]], predictor: Network
    ) -> Self:
        """Inverse of `state`, with the restored `predictor_`, which has its own state."""
        out = super().from_state(config, arrays)
        out.predictor_ = predictor
        return out


class _Batch(NamedTuple):
    """Subjects at different times, their requests, and plans for each."""

    time: Tensor
    repeated: Tensor  # the subject of each plan
    plans: Tensor
    inputs_asked: Tensor
    inputs_known: Tensor
    inputs_planned: Tensor
    labels: Tensor


def _random_plans(open_slots: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """One plan for each row of `(n, L, M)` open slots: a uniform size, then a uniform subset."""
    flat = open_slots.reshape(len(open_slots), -1)
    noise = np.where(flat, rng.uniform(size=flat.shape), np.inf)
    ranks = noise.argsort(axis=1).argsort(axis=1)
    size = rng.integers(0, flat.sum(axis=1) + 1)
    return np.asarray(ranks < size[:, None]).reshape(open_slots.shape)
