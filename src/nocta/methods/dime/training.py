"""Training of DIME: episodes run side by side, and two networks learn from them (see `method`)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Results
from nocta.core.history import History
from nocta.core.losses import pair_losses
from nocta.core.progress import progress_bar
from nocta.methods.one_at_a_time import slot_prices
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.neural import cross_entropy
from nocta.predictors.training import finite_loss

Order = Literal["time", "value"]
FREE = 1e-6  # what a free slot counts as in a ratio


@dataclass(frozen=True)
class Rules:
    """Those of the environment, as in `nocta.core.environment`."""

    availability: Availability = "on-arrival"
    results: Results = "after-visit"


class ValueNet(nn.Module):
    """Two hidden layers from everything acquired, the clock and pending orders to all slots."""

    def __init__(
        self,
        slot_width: int,
        context_width: int,
        shape: tuple[int, int],
        hidden: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.slot_width, self.shape = slot_width, shape
        length, width = shape
        self.layers = nn.Sequential(
            nn.Linear(length * (slot_width + 1) + width + context_width, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, length * width),
        )

    def forward(
        self, inputs: Tensor, clock: NDArray[np.int64], pending: NDArray[np.bool_]
    ) -> Tensor:
        """Expected drop of the loss for every slot, `(n, L, M)`; `clock` is `(n,)`."""
        length = self.shape[0]
        now = F.one_hot(torch.from_numpy(np.maximum(clock, 0)), length).to(inputs.dtype)
        slots = inputs[..., : self.slot_width].flatten(1)
        free = inputs[:, 0, self.slot_width + length :]
        ordered = torch.from_numpy(pending.any(axis=1)).to(inputs.dtype)
        out: Tensor = self.layers(torch.cat([slots, now, ordered, free], dim=1))
        return out.view(-1, *self.shape)


def earliest(ratios: NDArray[np.float64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The best slot of the earliest visit with an eligible one, `(n,)`, as a flat position."""
    visit = eligible.any(axis=2).argmax(axis=1)
    rows = np.arange(len(visit))
    there = np.where(eligible[rows, visit], ratios[rows, visit], -np.inf)
    return np.asarray(visit * ratios.shape[2] + there.argmax(axis=1))


class Episodes:
    """Running episodes of some subjects: what each has asked for, and where it stands.

    `share` stands for a threshold: what is acquired must be among this share of the open slots; 0
    is the best only.
    """

    def __init__(
        self,
        data: EncodedCohort,
        catalog: Catalog,
        subjects: NDArray[np.int64],
        share: NDArray[np.float64],
        rules: Rules,
    ) -> None:
        self.data, self.catalog = data, catalog
        self.subjects = subjects.copy()
        self.requested = np.zeros((len(subjects), *catalog.open_slots.shape), dtype=bool)
        self.clock = np.full(len(subjects), -1, dtype=np.int64)
        self.visiting = np.zeros(len(subjects), dtype=bool)
        self.share, self.rules = share, rules

    @property
    def open_slots(self) -> NDArray[np.bool_]:
        """What can be acquired at a visit under way or later, `(n, L, M)`."""
        closed = (self.clock - self.visiting)[:, None, None]
        later = np.arange(self.catalog.n_times)[None, :, None] > closed
        offered = self.catalog.open_slots
        if self.rules.availability == "known":
            offered = offered & self.data.recorded[self.subjects]
        return np.asarray(later & offered & ~self.requested)

    @property
    def pending(self) -> NDArray[np.bool_]:
        """What was ordered at a visit that is not over, `(n, L, M)`."""
        now = np.arange(self.catalog.n_times) == self.clock[:, None]
        now = now & (self.visiting & (self.rules.results == "after-visit"))[:, None]
        return np.asarray(self.requested & now[:, :, None])

    def values(self, value: ValueNet) -> Tensor:
        """What the network says of every slot, `(n, L, M)`."""
        pending = self.pending
        shown = self.data.inputs(self.subjects, self.requested & ~pending)
        found: Tensor = value(shown, self.clock, pending)
        return found

    def best(self, drop: NDArray[np.float32], open_slots: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The best slot of the earliest visit among the top share of open slots, `(n,)`."""
        pending = self.pending
        acquired = self.requested & (self.data.recorded[self.subjects] | pending)
        ratios = drop / np.maximum(slot_prices(self.catalog, acquired), FREE)
        ratios = np.where(open_slots, ratios, -np.inf)
        ranked = -np.sort(-ratios.reshape(len(ratios), -1), axis=1)
        cut = (self.share * open_slots.sum(axis=(1, 2))).astype(np.int64)
        least = ranked[np.arange(len(cut)), cut]
        return earliest(ratios, (ratios >= least[:, None, None]) & open_slots)

    def leaves(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Who first ends a visit and waits for its results before asking for `slots`, `(n,)`."""
        return np.asarray(
            self.pending.any(axis=(1, 2)) & (slots // self.catalog.n_features != self.clock)
        )

    def with_slots(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """What would have been asked for with these slots too, `(n, L, M)`."""
        more = self.requested.reshape(len(slots), -1).copy()
        more[np.arange(len(slots)), slots] = True
        return more.reshape(self.requested.shape)

    def act(self, slots: NDArray[np.int64], going: NDArray[np.bool_]) -> None:
        """End the visits that are to be left; acquire for all others who are `going`."""
        leaves = self.leaves(slots)
        self.visiting[leaves] = False
        rows = np.flatnonzero(going & ~leaves)
        self.requested[rows] = self.with_slots(slots)[rows]
        self.clock[rows] = slots[rows] // self.catalog.n_features
        self.visiting[rows] = True

    def restart(self, rows: NDArray[np.int64], subjects: NDArray[np.int64]) -> None:
        self.subjects[rows] = subjects
        self.requested[rows] = False
        self.clock[rows] = -1
        self.visiting[rows] = False


@dataclass(eq=False)
class JointTraining:
    """Trains predictor and value network on the episodes they make themselves."""

    predictor: CrossFittedPredictor
    value: ValueNet
    train: Cohort
    order: Order
    expected: bool
    seed: int
    rules: Rules

    def __post_init__(self) -> None:
        train, predictor, rules = self.train, self.predictor, self.rules
        self.rng = np.random.default_rng(self.seed)
        self.targets = LossTargets(
            train, predictor.members, predictor.fold, ("cross-entropy",), self.expected
        )
        n_pool = 256 if len(train) > 1000 else 128
        self.pool = Episodes(
            self.targets.data[0],
            train.catalog,
            self.rng.integers(len(train), size=n_pool),
            self._shares(n_pool),
            rules,
        )
        self.before = self._losses(np.arange(n_pool), self.pool.requested)

    def run(self, val: Cohort, n_updates: int, epsilon: float, progress: bool) -> list[float]:
        """Train; end with the weights best on validation; its loss at every check."""
        nets = nn.ModuleList([self.value, *(m.net_ for m in self.predictor.networks)])
        groups = [
            {"params": list(self.value.parameters()), "lr": 2e-3},
            {
                "params": [p for m in self.predictor.networks for p in m.net_.parameters()],
                "lr": 1e-3,
            },
        ]
        optimizer = torch.optim.AdamW(groups, weight_decay=1e-3)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_updates)
        best, losses = np.inf, []
        kept = copy.deepcopy(nets.state_dict())
        check_every = max(1, n_updates // 8)
        for update in progress_bar(range(1, n_updates + 1), desc="dime", show=progress):
            optimizer.zero_grad(set_to_none=True)
            loss = finite_loss(self._step(epsilon * (1 - update / n_updates)), "dime")
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(nets.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            if update % check_every == 0:
                losses.append(self._validation_loss(val))
                if losses[-1] < best:
                    best, kept = losses[-1], copy.deepcopy(nets.state_dict())
        nets.load_state_dict(kept)
        nets.eval()
        return losses

    def _step(self, epsilon: float) -> Tensor:
        """One step of every running episode: the losses of both networks.

        A drop is that of a slot on top of everything ordered, pending or not, since both will be
        back when it counts. A subject who would go to another visit while results are pending also
        learns from the slot, but waits for the results and then chooses again.
        """
        pool = self.pool
        self.value.train()
        values = pool.values(self.value)
        open_slots = pool.open_slots
        slots = pool.best(values.detach().numpy(), open_slots)
        draws = (self.rng.random(open_slots.shape) * open_slots).reshape(len(slots), -1)
        slots = np.where(self.rng.random(len(slots)) < epsilon, draws.argmax(axis=1), slots)
        after = self._losses(np.arange(len(slots)), pool.with_slots(slots))
        chosen = values.flatten(1).gather(1, torch.from_numpy(slots)[:, None])[:, 0]
        loss = F.mse_loss(chosen, self.before - after)
        self.before = torch.where(torch.from_numpy(pool.leaves(slots)), self.before, after)
        pool.act(slots, np.ones(len(slots), dtype=bool))
        loss = loss + self._predictor_loss()
        done = np.flatnonzero(~pool.open_slots.any(axis=(1, 2)))
        if done.size:
            pool.restart(done, self.rng.integers(len(self.train), size=len(done)))
            self.before[torch.from_numpy(done)] = self._losses(done, pool.requested[done])
        return loss

    def _shares(self, n: int) -> NDArray[np.float64]:
        """Evenly spread from the best slot only to any slot, few of them wide, `(n,)`."""
        return np.linspace(0, 1, n, endpoint=False) ** 2 * (self.order == "time")

    def _losses(self, rows: NDArray[np.int64], requested: NDArray[np.bool_]) -> Tensor:
        """Summed over the labeled times, of some of the running episodes."""
        return self.targets(self.pool.subjects[rows], requested)[..., 0].sum(dim=1)

    def _predictor_loss(self) -> Tensor:
        """Of one network, on half of the episodes, of subjects it may learn from."""
        which = int(self.rng.integers(len(self.predictor.members)))
        rows = self.rng.permutation(len(self.pool.subjects))[: len(self.pool.subjects) // 2]
        if len(self.predictor.members) > 1:
            rows = rows[self.predictor.fold[self.pool.subjects[rows]] != which]
        member, data = self.predictor.networks[which], self.targets.data[which]
        subjects = self.pool.subjects[rows]
        member.net_.train()
        logits = member.net_(data.inputs(subjects, self.pool.requested[rows]))
        member.net_.eval()
        labels = data.labels[torch.from_numpy(subjects)]
        return cross_entropy(logits / member.temperature_, labels)

    @torch.no_grad()
    def _validation_loss(self, val: Cohort, n_looks: int = 8, max_subjects: int = 512) -> float:
        """Mean loss along greedy episodes until everything is acquired, at some depths."""
        self.value.eval()
        some = val.sample(max_subjects)
        episodes = Episodes(
            EncodedCohort(self.predictor.networks[0].encoder_, some),
            some.catalog,
            np.arange(len(some)),
            self._shares(len(some)),
            self.rules,
        )
        n_steps = int(some.catalog.open_slots.sum())
        if self.rules.results == "after-visit":
            n_steps += some.n_times  # each visit has to be ended
        looks = set(np.linspace(0, n_steps, n_looks + 1).round().astype(int)[1:].tolist())
        losses = []
        for step in range(1, n_steps + 1):
            open_slots = episodes.open_slots
            drop = episodes.values(self.value).numpy()
            going = np.asarray(open_slots.any(axis=(1, 2)))
            episodes.act(episodes.best(drop, open_slots), going)
            if step in looks:
                predicted = self.predictor.predict_proba(History.of(some, episodes.requested))
                losses.append(float(np.nanmean(pair_losses(some.labels, predicted))))
        return float(np.mean(losses))
