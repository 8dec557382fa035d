"""What NOCT-Direct promises: expected loss and charge from a state on, if its policy is followed.

Fitted after the gates, on roll-outs of the finished policy over training subjects at many cost
weights. Losses are judged by predictors that did not see the subject, and the level of the loss is
corrected on validation, because new subjects are predicted by the mean of all predictors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nocta.core.cohort import Cohort, even_rows
from nocta.planning.direct.network import GateNet
from nocta.planning.direct.unroll import all_seeing, draw
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.gates import GatedCohort, gate_costs
from nocta.predictors.training import TrainingConfig, train

#: Cost weights at which the policy is rolled out, and most subjects it is rolled out for.
_N_WEIGHTS, _MOST = 8, 6000
_HIDDEN = 64


class Promise(NamedTuple):
    """Expectations from a state on, `(n,)` each."""

    loss: Tensor  # of the remaining visits, if the policy is followed
    charge: Tensor  # of the remaining visits, if the policy is followed
    stopping: Tensor  # loss of the remaining visits, if nothing more is acquired


class PromiseNet(nn.Module):
    """From the state of a `GateNet` before a visit to what is expected from that visit on."""

    units: Tensor

    def __init__(self, hidden: int, n_times: int) -> None:
        super().__init__()
        self.enter = nn.Linear(hidden, _HIDDEN)
        self.out = nn.Linear(_HIDDEN, 3)
        self.register_buffer("units", torch.ones(3, n_times))

    def forward(self, states: Tensor, slots: Tensor) -> Promise:
        """From states `(n, hidden)` before the slots `(n,)`."""
        found = F.softplus(self.out(F.relu(self.enter(states)))) * self.units[:, slots].T
        return Promise(*found.unbind(-1))


@dataclass(frozen=True)
class _Examples:
    """Roll-outs as examples; axes `(r, L)`, or `(r, L, hidden)` for states."""

    states: Tensor
    losses: Tensor  # from a visit on
    charges: Tensor
    stopping: Tensor  # NaN where it was not tried


def fit_promise(
    net: GateNet,
    train_part: tuple[Cohort, LossTargets],
    val_part: tuple[Cohort, LossTargets],
    weights: tuple[float, float],
    seed: int,
    progress: bool = False,
) -> PromiseNet:
    """Learn what the policy of `net` leads to; `weights` is the range of cost weights."""
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        promise = PromiseNet(net.shape.hidden, train_part[0].n_times)
        seen, held_out = (_examples(net, *part, weights, rng) for part in (train_part, val_part))
        targets = torch.stack([seen.losses, seen.charges, seen.stopping])  # (3, r, L)
        promise.units.copy_(targets.nanmean(dim=1).nan_to_num(1.0).clamp(min=1e-6))
        config = TrainingConfig(
            epochs=30, batch_size=256, learning_rate=4e-3, patience=5, check_every=2
        )

        def loss(examples: _Examples, rows: Tensor) -> Tensor:
            slots = torch.arange(examples.states.shape[1]).repeat(len(rows))
            found = promise(examples.states[rows].flatten(0, 1), slots)
            wanted = (examples.losses, examples.charges, examples.stopping)
            units = promise.units[:, slots]
            errors = []
            for own, true, unit in zip(found, wanted, units, strict=True):
                goal = true[rows].flatten()
                known = ~goal.isnan()
                errors.append((((own - goal) / unit)[known] ** 2).sum() / known.sum().clamp(min=1))
            return torch.stack(errors).sum()

        everybody = torch.arange(len(held_out.states))
        train(
            promise,
            len(seen.states),
            lambda index: loss(seen, torch.from_numpy(index)),
            lambda: float(loss(held_out, everybody)),
            config,
            rng,
            description="promises",
            progress=progress,
        )
    return promise


@torch.no_grad()
def _examples(
    net: GateNet,
    cohort: Cohort,
    targets: LossTargets,
    weights: tuple[float, float],
    rng: np.random.Generator,
) -> _Examples:
    """Roll the policy out for subjects of a cohort, each at some of the cost weights."""
    if len(cohort) > _MOST:
        targets = targets.subset(cohort, even_rows(len(cohort), _MOST))
        cohort = targets.cohort
    factors = np.geomspace(*weights, _N_WEIGHTS)
    n = len(cohort)
    copies = int(np.clip(_MOST // n, 1, _N_WEIGHTS))
    parts: list[list[Tensor]] = []
    data = GatedCohort(targets.networks[0], cohort)
    recorded = torch.from_numpy(cohort.recorded)
    for _ in range(copies):
        factor = torch.from_numpy(rng.choice(factors, n))
        lines = all_seeing(net, cohort, factor * net.shape.cost_scale)
        drawn = draw(net, data, recorded, lines, cohort.catalog, explore=False)
        requested = drawn.gates.numpy() > 0.5
        index, cut = np.arange(n), rng.integers(0, cohort.n_times, n)
        before = requested & (np.arange(cohort.n_times) < cut[:, None])[:, :, None]
        losses = _to_go(targets(index, requested)[..., 0])
        charges = _to_go(gate_costs(cohort.catalog, drawn.gates * recorded))
        # What stopping leads to is known at the one slot where it was tried.
        stopping = _to_go(targets(index, before)[..., 0])
        tried = torch.arange(cohort.n_times) == torch.from_numpy(cut)[:, None]
        stopping = torch.where(tried, stopping, torch.nan)
        parts.append([drawn.states, losses, charges, stopping])
    return _Examples(*(torch.cat(list(column)) for column in zip(*parts, strict=True)))


def _to_go(values: Tensor) -> Tensor:
    """Sums from every visit on, `(n, L)`."""
    return values.flip(1).cumsum(dim=1).flip(1)
