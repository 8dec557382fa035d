"""Training of ASAC: gates are drawn, a predictor judges them, and both learn (see `method`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.predictor import Predictor
from nocta.planning.gates import GatedCohort, gate_costs
from nocta.planning.objective import losses_at_times
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.neural import cross_entropy
from nocta.predictors.training import TrainingConfig, train

if TYPE_CHECKING:
    from nocta.methods.asac.method import Asac

Gradient = Literal["policy", "straight-through"]
#: With fewer training subjects, networks are smaller and have dropout.
SMALL = 1000
#: Share of training over which the weight of the cost rises to its value.
RAMP = 0.4


class Selector(nn.Module):
    """From what was acquired at earlier visits, `slot_width` long each, to the next one's gates."""

    def __init__(
        self, width: int, slot_width: int, n_features: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.slot_width = slot_width
        self.embed = nn.Linear(width, hidden)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.gates = nn.Linear(hidden, n_features)
        self.worth = nn.Linear(hidden, 1)
        nn.init.constant_(self.gates.bias, 1.0)  # most gates are open in the beginning

    def step(self, before: Tensor, frame: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits of one visit's gates `(n, M)` from the previous visit; the next state."""
        entered = self.drop(F.relu(self.embed(torch.cat([before, frame], dim=1))))
        out, state = self.cell(entered[:, None], state)
        return self.gates(self.drop(out[:, 0])), state

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits `(n, L, M)` and state values `(n, L)` from `(n, L, width)` acquired inputs."""
        acquired, frame = inputs[..., : self.slot_width], inputs[..., self.slot_width :]
        before = F.pad(acquired, (0, 0, 1, 0))[:, :-1]  # a visit's gates do not see the visit
        out, _ = self.cell(self.drop(F.relu(self.embed(torch.cat([before, frame], dim=2)))))
        out = self.drop(out)
        return self.gates(out), self.worth(out)[..., 0]


@dataclass(eq=False)
class JointTraining:
    """One run at one `mu`: selector and predictor learn from the gates that are drawn."""

    options: Asac
    predictor: CrossFittedPredictor
    cohort: Cohort
    mu: float
    seed: int
    availability: Availability = "on-arrival"

    def __post_init__(self) -> None:
        cohort, options = self.cohort, self.options
        self.small = len(cohort) < SMALL
        self.rng = np.random.default_rng(self.seed)
        self.data = [GatedCohort(m, cohort, self.availability) for m in self.predictor.networks]
        encoder = self.data[0].encoder
        self.selector = Selector(
            encoder.width,
            encoder.slot_width,
            cohort.catalog.n_features,
            options.hidden or (32 if self.small else 64),
            0.3 if self.small else 0.0,
        )
        self.labels_per_subject = max(float(cohort.labeled.sum(axis=1).mean()), 1e-9)
        self.recorded = torch.from_numpy(cohort.recorded)
        self.done = 0.0

    def run(self, val: Cohort, progress: bool) -> None:
        """Train; end with the weights best on validation."""
        options = self.options
        # About as many steps for a handful of subjects as for some hundreds.
        own = int(np.clip(12_000 / len(self.cohort), 24, 200))
        epochs = options.epochs if options.epochs is not None else 4 if options.quick else own
        n_lines = 2 if options.gradient == "policy" else 1  # of gates per subject
        nets = nn.ModuleList([self.selector, *(m.net_ for m in self.predictor.networks)])
        config = TrainingConfig(
            epochs=epochs,
            batch_size=(64 if self.small else 256) // n_lines,
            learning_rate=3e-3 if self.small else 6e-3,
            weight_decay=1e-2 if self.small else 0.0,
            patience=epochs,
            check_every=max(1, epochs // 12),
        )
        n_steps = config.n_steps(len(self.cohort))
        seen = GatedCohort(self.predictor.networks[0], val, self.availability)

        def batch_loss(index: NDArray[np.int64]) -> Tensor:
            self.done += 1 / n_steps
            return self._loss(torch.from_numpy(index))

        def validation_loss() -> float:
            gates = self._draw(seen, torch.arange(len(val)), explore=False).numpy() > 0.5
            loss, cost = judge(self.predictor, val, gates)
            return loss + self.mu * cost

        name, losses = f"asac, mu = {self.mu:.3g}", (batch_loss, validation_loss)
        n_train = len(self.cohort)
        train(nets, n_train, *losses, config, self.rng, description=name, progress=progress)

    def _loss(self, index: Tensor) -> Tensor:
        """The loss of selector plus predictor, for the subjects at `index`."""
        if self.options.gradient == "straight-through":
            gates = self._draw(self.data[0], index, explore=True)
            selector_loss = self._objective(index, gates).sum(dim=1).mean()
        else:
            index = index.repeat(2)
            self.selector.eval()  # gates are drawn as they would be without dropout
            with torch.no_grad():
                gates = self._draw(self.data[0], index, explore=True)
                stage = self._objective(index, gates)
            self.selector.train()
            selector_loss = self._policy_gradient(index, gates, stage)
        return selector_loss + self._predictor_loss(index, gates.detach())

    def _draw(self, data: GatedCohort, index: Tensor, *, explore: bool) -> Tensor:
        """Gates `(b, L, M)`, visit by visit; drawn at random, or those more likely open."""
        slots, frame, closed = data.slots[index], data.frame[index], data.closed[index]
        before, state, drawn = torch.zeros_like(slots[:, 0]), None, []
        for k in range(slots.shape[1]):
            logits, state = self.selector.step(before, frame[:, k], state)
            open_ = torch.sigmoid(logits)
            hard = (open_ > torch.rand_like(open_)) if explore else open_ > 0.5
            gate = (hard.float() + open_ - open_.detach()).masked_fill(closed[:, k], 0.0)
            drawn.append(gate)
            before = slots[:, k] * gate[:, data.owner]
        return torch.stack(drawn, dim=1)

    def _objective(self, index: Tensor, gates: Tensor) -> Tensor:
        """Loss and weighted cost of every visit, `(b, L)`, as judged for unseen subjects."""
        losses = torch.zeros(gates.shape[:2])
        fold = torch.from_numpy(self.predictor.fold)[index]
        for which, (member, data) in enumerate(
            zip(self.predictor.networks, self.data, strict=True)
        ):
            rows = torch.nonzero(fold == which)[:, 0]
            if len(rows):
                member.net_.eval().requires_grad_(False)
                logits = data.logits(index[rows], gates[rows])
                member.net_.train().requires_grad_(True)
                now = losses_at_times(
                    F.log_softmax(logits, dim=-1), data.labels[index[rows]], "cross-entropy"
                )
                losses = losses.index_add(0, rows, now)
        cost = gate_costs(self.cohort.catalog, gates * self.recorded[index])
        out: Tensor = losses / self.labels_per_subject + self._weight * cost
        return out

    @property
    def _weight(self) -> float:
        """Full cost from the start would close all gates before anything has been learned."""
        return self.mu * min(1.0, self.done / RAMP)

    def _policy_gradient(self, index: Tensor, gates: Tensor, stage: Tensor) -> Tensor:
        """Actor and state value, from what a visit and all later ones cost in the end.

        Two lines of gates are drawn for each subject and each is held against the other, so that
        how hard a subject is to predict cancels out. What a visit itself costs depends on its
        gates alone: its gradient needs no draws.
        """
        closed = self.data[0].closed[index]
        logits, worth = self.selector(self.data[0].gated(index, gates))
        own_cost = self._weight * gate_costs(self.cohort.catalog, gates * self.recorded[index])
        to_go = -stage.flip(1).cumsum(dim=1).flip(1)
        surprise = (to_go + own_cost - worth).detach()
        first, second = surprise.chunk(2)
        advantage = torch.cat([first - second, second - first]) / 2
        open_ = torch.sigmoid(logits).masked_fill(closed, 0.0)
        chance = -F.binary_cross_entropy_with_logits(logits, gates, reduction="none")
        entropy = -(open_ * F.logsigmoid(logits) + (1 - open_) * F.logsigmoid(-logits))
        chance = chance.masked_fill(closed, 0.0).sum(dim=2)
        entropy = entropy.masked_fill(closed, 0.0).sum(dim=2)
        expected = self._weight * gate_costs(self.cohort.catalog, open_ * self.recorded[index])
        spread = advantage.std().clamp(min=1e-6)
        actor_loss: Tensor = ((expected - chance * advantage) / spread).mean()
        fading = self.options.entropy * max(0.0, 1 - self.done)
        scale = to_go.std().clamp(min=1e-6)
        value_loss = F.mse_loss(worth / scale, (to_go + own_cost) / scale)
        return actor_loss - fading * entropy.mean() + 0.5 * value_loss

    def _predictor_loss(self, index: Tensor, gates: Tensor) -> Tensor:
        """Of one network, on the subjects it may learn from."""
        which = int(self.rng.integers(len(self.data)))
        if len(self.data) > 1:
            learn = torch.from_numpy(self.predictor.fold)[index] != which
            index, gates = index[learn], gates[learn]
        data = self.data[which]
        return cross_entropy(data.logits(index, gates), data.labels[index])


def judge(
    predictor: Predictor, cohort: Cohort, requested: NDArray[np.bool_]
) -> tuple[float, float]:
    """Mean loss of a labeled time, and mean cost of a subject."""
    losses = pair_losses(cohort.labels, predictor.predict_proba(History.of(cohort, requested)))
    cost = cohort.catalog.cost_of(requested & cohort.recorded).mean()
    return float(np.nanmean(losses)), float(cost)
