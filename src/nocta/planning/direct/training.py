"""Training of NOCT-Direct: gates are drawn, predictors judge them, and both learn.

One fit serves every cost weight: each subject of a batch gets a random one, and some subjects get
other prices or a hard budget. The predictor that judges a subject was not trained on it, and is
frozen while it judges; another step adapts it to the histories that the gates make. What is kept
is the running mean of the weights that is best on validation.

Noise is the enemy: gates that follow the label of one subject learn luck. A label is therefore
mostly replaced by what the predictor says with everything known (`hindsight`), so that the gates
learn how much a request brings the prediction closer to the informed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.random_plans import random_requests
from nocta.planning.direct.network import GateNet, Terms
from nocta.planning.direct.unroll import Drawn, Lines, all_seeing, draw
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.gates import GatedCohort, gate_costs
from nocta.planning.objective import soft_label_losses
from nocta.predictors.cross_fitted import SMALL, CrossFittedPredictor
from nocta.predictors.neural import cross_entropy
from nocta.predictors.training import TrainingConfig, TrainingLog, train

#: Steps of a fit, of one with smaller batches, and of a quick one, about; and limits of its passes
#: over the subjects.
_STEPS, _SMALL_STEPS, _QUICK_STEPS, _EPOCHS = 700, 1400, 120, (4, 200)
_MOST_JUDGED = 1500
#: With fewer training subjects, networks are smaller and learn more slowly.
FEW = 500
_CHECKS = 10


@dataclass(frozen=True)
class DirectConfig:
    """How the gates learn."""

    closed_loop: bool = True  # later gates see the results of earlier ones
    weights: tuple[float, float] = (0.05, 6.0)  # range, in units of the break-even weight
    hindsight: float = 0.9  # share of a label that the informed prediction replaces
    predictor_rate: float = 4e-3  # learning rate of the predictor; 0 leaves it unchanged
    predictor_hindsight: float = 0.7  # the same in what the predictor itself learns
    random_share: float = 0.2  # share of random requests that the predictor still learns from
    ramp: float = 0.3  # share of training over which the cost rises to its full weight
    blind_share: float = 0.1  # subjects planned for as a schedule for everybody
    open_share: float = 0.15  # subjects planned for in open loop, if the loop is closed
    budget_share: float = 0.15  # subjects with a hard budget
    price_share: float = 0.2  # subjects with other prices
    price_spread: float = 0.7  # standard deviation of the logarithm of those
    quick: bool = False  # a short fit

    def training(self, n_train: int) -> TrainingConfig:
        """Length and pace, by the number of subjects."""
        few, small = n_train < FEW, n_train < SMALL
        batch_size = 64 if small else 256
        steps = _QUICK_STEPS if self.quick else _SMALL_STEPS if small else _STEPS
        epochs = int(np.clip(round(steps * batch_size / n_train), *_EPOCHS))
        return TrainingConfig(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=3e-3 if few else 6e-3,
            weight_decay=1e-2 if few else 0.0,
            patience=epochs,
            check_every=max(1, epochs // _CHECKS),
            average=0.995,
        )


@dataclass(eq=False)
class DirectTraining:
    """One fit of the gates together with the predictor."""

    net: GateNet
    predictor: CrossFittedPredictor
    cohort: Cohort
    config: DirectConfig
    gain: float  # mean loss that acquiring everything saves: the unit of losses
    seed: int
    log_: TrainingLog = field(init=False)

    def __post_init__(self) -> None:
        cohort, members = self.cohort, self.predictor.networks
        self.rng = np.random.default_rng(self.seed)
        self.data = [GatedCohort(member, cohort) for member in members]
        self.fold = torch.from_numpy(self.predictor.fold)
        self.recorded = torch.from_numpy(cohort.recorded)
        judges, share = (self.predictor.members, self.predictor.fold), self.config.hindsight
        targets = LossTargets(cohort, *judges, ("cross-entropy",), hindsight=max(share, 1e-9))
        assert targets.soft_labels is not None
        self.soft_labels, self.labeled = targets.soft_labels, targets.labeled
        self.prices = torch.from_numpy(cohort.catalog.costs)
        self.done = 0.0

    def run(self, val: Cohort, training: TrainingConfig, progress: bool = False) -> None:
        """Train; end with the weights best on validation."""
        parts: list[tuple[nn.Module, float]] = [(self.net, training.learning_rate)]
        nets = nn.ModuleList(member.net_ for member in self.predictor.networks)
        if self.config.predictor_rate:
            parts.append((nets, self.config.predictor_rate))
        module = nn.ModuleList([part for part, _ in parts])
        judged = val.sample(_MOST_JUDGED)
        seen = GatedCohort(self.predictor.networks[0], judged)
        n_steps = training.n_steps(len(self.cohort))

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            self.done += 1 / n_steps
            return self._loss(torch.from_numpy(index))

        self.log_ = train(
            module,
            len(self.cohort),
            batch_loss,
            lambda: self._regret(judged, seen),
            training,
            self.rng,
            description="direct plans",
            progress=progress,
            rates=parts,
        )

    def _loss(self, index: Tensor) -> Tensor:
        lines = self._lines(index)
        drawn = self._draw(lines)
        weight = lines.terms.log_weight.exp() * self.net.shape.cost_scale
        prices = self._prices_of(lines.terms)
        charged = drawn.gates * self.recorded[index]
        cost = gate_costs(self.cohort.catalog, charged, prices).sum(dim=1)
        ramp = min(1.0, self.done / self.config.ramp) if self.config.ramp else 1.0
        loss = (self._losses(lines, drawn.gates).sum(dim=1) + ramp * weight * cost).mean()
        loss = loss / self.gain
        if self.config.predictor_rate:
            loss = loss + self._predictor_loss(index, drawn.gates.detach() > 0.5)
        return loss

    def _lines(self, index: Tensor) -> Lines:
        """Random terms for every subject of a batch."""
        config, n = self.config, len(index)
        low, high = np.log(config.weights)
        log_weight = torch.from_numpy(self.rng.uniform(low, high, n))
        prices = self.prices.expand(n, *self.prices.shape)
        changed = self.rng.uniform(size=(n, 1, 1)) < config.price_share
        spread = self.rng.normal(scale=config.price_spread, size=(n, 1, self.prices.shape[1]))
        prices = prices * torch.from_numpy(np.exp(np.where(changed, spread, 0.0)))
        budget = self.net.shape.everything * np.exp(self.rng.uniform(np.log(0.02), 0.0, n))
        limited = ~changed[:, 0, 0] & (self.rng.uniform(size=n) < config.budget_share)
        remaining = torch.from_numpy(np.where(limited, budget, np.inf))
        terms = self.net.terms(log_weight.exp() * self.net.shape.cost_scale, prices, remaining)
        return Lines(index, terms, *map(torch.from_numpy, self._sights(n)))

    def _sights(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """What is seen until when, what is decided before, and who is blind; see `Lines`."""
        config, last = self.config, self.cohort.n_times - 1
        kind, start = self.rng.uniform(size=n), self.rng.integers(-1, last, n)
        blind = kind < config.blind_share
        is_open = kind < config.blind_share + config.open_share
        is_open |= not config.closed_loop
        seen_until = np.where(blind, -1, np.where(is_open, start, last))
        return seen_until, np.where(is_open & ~blind, start, -1), blind

    def _prices_of(self, terms: Terms) -> Tensor:
        return self.prices.float() * terms.price_change.exp()

    def _draw(self, lines: Lines) -> Drawn:
        catalog, recorded = self.cohort.catalog, self.recorded
        return draw(self.net, self.data[0], recorded, lines, catalog, explore=True)

    def _losses(self, lines: Lines, gates: Tensor) -> Tensor:
        """Loss at every visit as judged by predictors that did not see the subject, `(b, L)`."""
        index = lines.rows
        losses = torch.zeros(gates.shape[:2])
        fold = self.fold[index]
        for which, data in enumerate(self.data):
            rows = torch.nonzero(fold == which)[:, 0]
            if not len(rows):
                continue
            with _frozen(self.predictor.networks[which].net_):
                log_proba = F.log_softmax(data.logits(index[rows], gates[rows]), dim=-1)
            soft = self.soft_labels[index[rows]]
            now = soft_label_losses(log_proba, soft, "cross-entropy") * self.labeled[index[rows]]
            losses = losses.index_add(0, rows, now)
        return losses

    def _predictor_loss(self, index: Tensor, requested: Tensor) -> Tensor:
        """Of one predictor, on the subjects it may learn from."""
        which = int(self.rng.integers(len(self.data)))
        if len(self.data) > 1:
            learn = self.fold[index] != which
            index, requested = index[learn], requested[learn]
        asked = random_requests(len(index), self.cohort.catalog.open_slots, self.rng)
        random = self.rng.uniform(size=(len(index), 1, 1)) < self.config.random_share
        asked = np.where(random, asked, requested.numpy())
        data, member = self.data[which], self.predictor.networks[which]
        logits = member.net_(data.inputs(index, asked)) / member.temperature_
        soft, share = self.soft_labels[index], self.config.predictor_hindsight
        if not share:
            return cross_entropy(logits, data.labels[index])
        truth = F.one_hot(data.labels[index].clamp(min=0), soft.shape[-1])
        mixed = truth + share / self.config.hindsight * (soft - truth)
        losses = soft_label_losses(F.log_softmax(logits, dim=-1), mixed, "cross-entropy")
        labeled = self.labeled[index]
        return (losses * labeled).sum() / labeled.sum().clamp(min=1)

    def _regret(self, cohort: Cohort, seen: GatedCohort) -> float:
        """Mean loss plus weighted cost of the policy, over a grid of cost weights."""
        low, high = self.config.weights
        found = [
            policy_regret(self.net, self.predictor, cohort, seen, factor)
            for factor in np.geomspace(1.3 * low, high / 1.3, 8)
        ]
        return float(np.mean(found)) / self.gain


@contextmanager
def _frozen(net: nn.Module) -> Iterator[None]:
    """A network judges: no dropout and no gradient for its weights; then it is as it was."""
    training = net.training
    net.eval().requires_grad_(False)
    try:
        yield
    finally:
        net.train(training).requires_grad_(True)


def policy_regret(
    net: GateNet, predictor: CrossFittedPredictor, cohort: Cohort, seen: GatedCohort, factor: float
) -> float:
    """Mean loss plus weighted cost of a subject at `factor` times the break-even weight."""
    n, weight = len(cohort), factor * net.shape.cost_scale
    lines = all_seeing(net, cohort, torch.full((n,), weight))
    recorded = torch.from_numpy(cohort.recorded)
    gates = draw(net, seen, recorded, lines, cohort.catalog, explore=False).gates
    requested = gates.numpy() > 0.5
    probabilities = predictor.predict_proba(History.of(cohort, requested))
    losses = np.nan_to_num(pair_losses(cohort.labels, probabilities)).sum(axis=1)
    costs = cohort.catalog.cost_of(requested & cohort.recorded)
    return float((losses + weight * costs).mean())
