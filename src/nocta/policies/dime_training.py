"""Training of DIME: episodes that run side by side, and two networks that learn from them.

See `nocta.policies.dime` for the method and where it departs from the original.
"""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from nocta.cohort.catalog import Catalog
from nocta.cohort.cohort import Cohort
from nocta.cohort.history import History
from nocta.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.losses import pair_losses
from nocta.predictors.neural import cross_entropy

Order = Literal["time", "value"]
FREE = 1e-6  # what a free slot counts as in a ratio


class ValueNet(nn.Module):
    """Two hidden layers from the clock and everything acquired to one number per slot.

    Args:
        slot_width: Length of what one slot contributes.
        context_width: Length of the free context.
        shape: `(L, M)`, the slots.
        hidden: Units of each hidden layer.
        dropout: After each hidden layer.
    """

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
            nn.Linear(length * (slot_width + 1) + context_width, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, length * width),
        )

    def forward(self, inputs: Tensor, clock: NDArray[np.int64]) -> Tensor:
        """Expected drop of the loss, `(n, L, M)`, from `(n, L, width)` inputs and `(n,)` slots."""
        length = self.shape[0]
        now = F.one_hot(torch.from_numpy(np.maximum(clock, 0)), length).to(inputs.dtype)
        slots = inputs[..., : self.slot_width].flatten(1)
        free = inputs[:, 0, self.slot_width + length :]
        out: Tensor = self.layers(torch.cat([slots, now, free], dim=1))
        return out.view(-1, *self.shape)


def earliest(ratios: NDArray[np.float64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The best slot of the earliest visit with an eligible one, `(n,)`, as a flat position."""
    visit = eligible.any(axis=2).argmax(axis=1)
    rows = np.arange(len(visit))
    there = np.where(eligible[rows, visit], ratios[rows, visit], -np.inf)
    return np.asarray(visit * ratios.shape[2] + there.argmax(axis=1))


def prices_due(catalog: Catalog, acquired: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What each slot would add to the bill, fees not yet paid at its visit included, `(n, L, M)`.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> catalog = tiny_cohort(1).catalog
        >>> prices_due(catalog, np.zeros((1, 4, 2), bool))[0, 0].tolist()
        [1.5, 3.0]
    """
    due = np.broadcast_to(catalog.costs, acquired.shape).copy()
    for members, fee in zip(catalog.group_members, catalog.group_fee_values, strict=True):
        due += fee * members * ~acquired[..., members].any(axis=-1, keepdims=True)
    return np.asarray(due + catalog.visit_fee * ~acquired.any(axis=-1, keepdims=True))


class Episodes:
    """Running episodes of some subjects: what each has asked for, and where it stands."""

    def __init__(
        self,
        data: EncodedCohort,
        catalog: Catalog,
        subjects: NDArray[np.int64],
        share: NDArray[np.float64],
    ) -> None:
        self.data, self.catalog = data, catalog
        self.subjects = subjects.copy()
        self.requested = np.zeros((len(subjects), *catalog.open_slots.shape), dtype=bool)
        self.clock = np.zeros(len(subjects), dtype=np.int64)
        #: Stands for a threshold: what is acquired must be among this share; 0 is the best only.
        self.share = share

    @property
    def open_slots(self) -> NDArray[np.bool_]:
        """What can be acquired at the current visit or later, `(n, L, M)`."""
        later = np.arange(self.catalog.n_times)[None, :, None] >= self.clock[:, None, None]
        return np.asarray(later & self.catalog.open_slots & ~self.requested)

    def inputs(self) -> Tensor:
        return self.data.inputs(self.subjects, self.requested)

    def best(self, drop: NDArray[np.float32], open_slots: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The best slot of the earliest visit among the top share of open slots, `(n,)`."""
        acquired = self.requested & self.data.recorded[self.subjects]
        ratios = drop / np.maximum(prices_due(self.catalog, acquired), FREE)
        ratios = np.where(open_slots, ratios, -np.inf)
        ranked = -np.sort(-ratios.reshape(len(ratios), -1), axis=1)
        cut = (self.share * open_slots.sum(axis=(1, 2))).astype(np.int64)
        least = ranked[np.arange(len(cut)), cut]
        return earliest(ratios, (ratios >= least[:, None, None]) & open_slots)

    def acquire(self, slots: NDArray[np.int64], going: NDArray[np.bool_]) -> None:
        rows, chosen = np.flatnonzero(going), slots[going]
        width = self.catalog.n_features
        self.requested[rows, chosen // width, chosen % width] = True
        self.clock[rows] = chosen // width

    def restart(self, rows: NDArray[np.int64], subjects: NDArray[np.int64]) -> None:
        self.subjects[rows] = subjects
        self.requested[rows] = False
        self.clock[rows] = 0


class JointTraining:
    """Trains predictor and value network on the episodes they make themselves."""

    def __init__(
        self,
        predictor: CrossFittedPredictor,
        value: ValueNet,
        train: Cohort,
        order: Order,
        expected: bool,
        seed: int,
    ) -> None:
        self.predictor, self.value, self.order = predictor, value, order
        self.train, self.rng = train, np.random.default_rng(seed)
        self.targets = LossTargets(
            train, predictor.members, predictor.fold, ("cross-entropy",), expected
        )
        n_pool = 256 if len(train) > 1000 else 128
        self.pool = Episodes(
            self.targets.data[0],
            train.catalog,
            self.rng.integers(len(train), size=n_pool),
            self._shares(n_pool),
        )
        self.before = self._losses(np.arange(n_pool))

    def run(self, val: Cohort, n_updates: int, epsilon: float, progress: bool) -> list[float]:
        """Train; end with the weights best on validation; its loss at every check."""
        nets = nn.ModuleList([self.value, *(m.net_ for m in self.predictor.members)])
        groups = [
            {"params": list(self.value.parameters()), "lr": 2e-3},
            {
                "params": [p for m in self.predictor.members for p in m.net_.parameters()],
                "lr": 1e-3,
            },
        ]
        optimizer = torch.optim.AdamW(groups, weight_decay=1e-3)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_updates)
        best, losses = np.inf, []
        kept = copy.deepcopy(nets.state_dict())
        check_every = max(1, n_updates // 8)
        for update in tqdm(range(1, n_updates + 1), desc="dime", disable=not progress):
            optimizer.zero_grad(set_to_none=True)
            loss = self._step(epsilon * (1 - update / n_updates))
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
        """One acquisition of every running episode: the losses of both networks."""
        pool = self.pool
        self.value.train()
        values = self.value(pool.inputs(), pool.clock)
        open_slots = pool.open_slots
        slots = pool.best(values.detach().numpy(), open_slots)
        draws = (self.rng.random(open_slots.shape) * open_slots).reshape(len(slots), -1)
        slots = np.where(self.rng.random(len(slots)) < epsilon, draws.argmax(axis=1), slots)
        pool.acquire(slots, np.ones(len(slots), dtype=bool))
        after = self._losses(np.arange(len(slots)))
        chosen = values.flatten(1).gather(1, torch.from_numpy(slots)[:, None])[:, 0]
        loss = F.mse_loss(chosen, self.before - after) + self._predictor_loss()
        self.before = after
        done = np.flatnonzero(~pool.open_slots.any(axis=(1, 2)))
        if done.size:
            pool.restart(done, self.rng.integers(len(self.train), size=len(done)))
            self.before[torch.from_numpy(done)] = self._losses(done)
        return loss

    def _shares(self, n: int) -> NDArray[np.float64]:
        """Evenly spread from the best slot only to any slot, few of them wide, `(n,)`."""
        return np.linspace(0, 1, n, endpoint=False) ** 2 * (self.order == "time")

    def _losses(self, rows: NDArray[np.int64]) -> Tensor:
        """Summed over the labelled times, of some of the running episodes."""
        return self.targets(self.pool.subjects[rows], self.pool.requested[rows])[..., 0].sum(dim=1)

    def _predictor_loss(self) -> Tensor:
        """Of one network, on half of the episodes, of subjects it may learn from."""
        which = int(self.rng.integers(len(self.predictor.members)))
        rows = self.rng.permutation(len(self.pool.subjects))[: len(self.pool.subjects) // 2]
        if len(self.predictor.members) > 1:
            rows = rows[self.predictor.fold[self.pool.subjects[rows]] != which]
        member, data = self.predictor.members[which], self.targets.data[which]
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
        some = val.subset(slice(0, max_subjects))
        episodes = Episodes(
            EncodedCohort(self.predictor.members[0].encoder_, some),
            some.catalog,
            np.arange(len(some)),
            self._shares(len(some)),
        )
        n_slots = int(some.catalog.open_slots.sum())
        looks = set(np.linspace(0, n_slots, n_looks + 1).round().astype(int)[1:].tolist())
        losses = []
        for depth in range(1, n_slots + 1):
            open_slots = episodes.open_slots
            drop = self.value(episodes.inputs(), episodes.clock).numpy()
            going = np.asarray(open_slots.any(axis=(1, 2)))
            episodes.acquire(episodes.best(drop, open_slots), going)
            if depth in looks:
                predicted = self.predictor.predict_proba(History.of(some, episodes.requested))
                losses.append(float(np.nanmean(pair_losses(some.labels, predicted))))
        return float(np.mean(losses))
