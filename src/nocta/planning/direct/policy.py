"""Acting with NOCT-Direct: the network names a plan, and its earliest part is carried out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.policy import Decision, Observation
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.direct.network import GateNet, Terms
from nocta.planning.direct.promise import PromiseNet
from nocta.planning.direct.unroll import over_budget, visit_price
from nocta.planning.search import FoundPlans, repaired_plans, unreserved
from nocta.predictors.encoding import InputEncoder

#: The runner-up is what the policy would do at this many times the cost weight, or less.
_THRIFTIER = 1.5


@dataclass(eq=False)
class DirectPlans:
    """A fitted network as a search for plans (`nocta.planning.algorithm.Search`).

    Args:
        net: From what is known to the gates.
        encoder: Makes the inputs of the network.
        promise: What to expect of the plans.
        individual_share: How much the logits follow the subject; the rest follows the schedule for
            everybody that the network makes without seeing any value. With 0 it is that schedule.
        loss_level: Losses of new subjects, per promised loss; found on validation.
        charge_level: The same for charges.
    """

    net: GateNet
    encoder: InputEncoder
    promise: PromiseNet
    _: KW_ONLY
    individual_share: float = 1.0
    loss_level: float = 1.0
    charge_level: float = 1.0

    @torch.no_grad()
    def gates(
        self, observation: Observation, weights: NDArray[np.float64], *, whole: bool
    ) -> tuple[Tensor, Tensor]:
        """Plans `(n, L, M)`, and the states `(n, hidden)` from which they begin.

        All subjects are at the same slot. Unless the `whole` plan is wanted, it may end after the
        first visit at which something is acquired.
        """
        now, catalog = int(observation.time[0]), observation.catalog
        walks = [_Walk(self, observation, weights, blind=False)]
        if self.individual_share < 1:
            walks.append(_Walk(self, observation, weights, blind=True))
        shares = (self.individual_share, 1 - self.individual_share)
        open_slots = torch.from_numpy(observation.open_slots)
        plans = torch.zeros(open_slots.shape, dtype=torch.bool)
        remaining = torch.from_numpy(observation.remaining)
        first = None
        for k in range(now + 1, catalog.n_times):
            logits = sum(
                (share * walk.step(k, plans) for walk, share in zip(walks, shares, strict=False)),
                torch.zeros(()),
            )
            first = walks[0].state if first is None else first
            wanted = (logits > 0) & open_slots[:, k]
            plans[:, k] = wanted & ~over_budget(catalog, wanted, logits, remaining, k)
            remaining = remaining - visit_price(catalog, plans[:, k], k)
            for walk in walks:
                walk.remaining = remaining
            if not whole and bool(plans.any(dim=2).any(dim=1).all()):
                break
        assert first is not None
        return plans, first[0]

    def __call__(self, observation: Observation, weights: NDArray[np.float64]) -> FoundPlans:
        """The plan of every subject, and what it would be at another cost weight."""
        if int(observation.time[0]) >= observation.catalog.n_times - 1:
            return FoundPlans.nothing(weights, observation.catalog.open_slots.shape)
        best = self._found(observation, weights)
        others = [self._found(observation, weights * f) for f in (_THRIFTIER, 1 / _THRIFTIER)]
        scores = np.stack([plan.losses[:, 0] + weights * plan.charges[:, 0] for plan in others])
        same = np.stack([(p.plans == best.plans).all(axis=(1, 2, 3)) for p in others])
        second = np.where(same, np.inf, scores).argmin(axis=0)
        rows = np.arange(len(weights))

        def both(name: str) -> NDArray[Any]:
            other = np.stack([getattr(plan, name)[:, 0] for plan in others])[second, rows]
            return np.stack([getattr(best, name)[:, 0], other], axis=1)

        return FoundPlans(both("plans"), both("losses"), both("charges"), weights, best.stopping)

    @torch.no_grad()
    def _found(self, observation: Observation, weights: NDArray[np.float64]) -> FoundPlans:
        plans, state = self.gates(observation, weights, whole=True)
        slots = torch.full((len(plans),), int(observation.time[0]) + 1)
        loss, charge, stopping = (part.double().numpy() for part in self.promise(state, slots))
        allowed, due = _allowed(observation, plans.numpy()), observation.due
        empty = (allowed == due).all(axis=(1, 2))
        loss = np.where(empty, stopping, loss) * self.loss_level
        charge = np.where(empty, observation.catalog.cost_of(due), charge * self.charge_level)
        return FoundPlans(
            allowed[:, None],
            loss[:, None],
            charge[:, None],
            weights,
            stopping * self.loss_level,
        )


def _allowed(observation: Observation, plans: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Plans as the constraints require and allow them; without late visits if short of budget."""
    if observation.catalog.rules is None:
        return plans
    limit, plans = unreserved(observation) + 1e-9, plans.copy()
    out = repaired_plans(observation, plans[:, None])[:, 0]
    for k in reversed(range(plans.shape[1])):
        short = np.flatnonzero(observation.catalog.cost_of(out) > limit)
        if not short.size:
            break
        plans[short, k] = False
        out[short] = repaired_plans(observation.subset(short), plans[short, None])[:, 0]
    return out


class _Walk:
    """The network on its way over the visits of some subjects, with or without their values."""

    def __init__(
        self,
        plans: DirectPlans,
        observation: Observation,
        weights: NDArray[np.float64],
        blind: bool,
    ) -> None:
        net, history = plans.net, observation.history
        self.net, self.blind = net, blind
        inputs = plans.encoder.encode(history)
        self.slots, self.frame = torch.split(
            inputs, [net.shape.slot_width, inputs.shape[2] - net.shape.slot_width], dim=2
        )
        self.asked = torch.from_numpy(history.requested).float()
        if blind:
            self.frame = net.without_context(self.frame)
        self.now = int(observation.time[0])
        catalog = observation.catalog
        self.remaining = torch.from_numpy(observation.remaining)
        prices = torch.from_numpy(catalog.costs)
        self.terms = net.terms(torch.from_numpy(weights), prices, self.remaining)
        self.state = net.start(len(weights))
        # What was left before each past visit, as it was then.
        spent = torch.from_numpy(catalog.cost_per_visit(history.acquired))
        later = spent.flip(1).cumsum(dim=1).flip(1)
        for k in range(self.now + 1):
            self._enter(k, self.remaining + later[:, k], self.asked)

    def step(self, slot: int, plans: Tensor) -> Tensor:
        """Logits of the next visit; `plans` holds what is planned before it."""
        return self._enter(slot, self.remaining, self.asked + plans.float())

    def _enter(self, slot: int, remaining: Tensor, asked: Tensor) -> Tensor:
        before, planned = torch.zeros_like(self.slots[:, 0]), torch.zeros_like(asked[:, 0])
        if slot > 0 and slot - 1 <= self.now and not self.blind:
            before = self.slots[:, slot - 1]
        elif slot > 0:
            planned = asked[:, slot - 1]
        terms: Terms = self.terms._replace(remaining=remaining)
        logits, self.state = self.net.step(
            before, planned, self.frame[:, slot], terms, slot, self.state
        )
        return logits


@dataclass(eq=False, repr=False)
class DirectPolicy(PlanningPolicy):
    """Carries out the earliest part of the network's plan, without scoring plans on the way."""

    search: DirectPlans

    def decide(self, observation: Observation) -> Decision:
        if not self.replan:
            return super().decide(observation)
        weight = np.asarray(self.cost_weight, dtype=float)
        weights = weight[observation.rows] if weight.ndim else np.full(len(observation), weight)
        plans = np.zeros((len(observation), *observation.catalog.open_slots.shape), dtype=bool)
        for time in np.unique(observation.time):
            rows = np.flatnonzero(observation.time == time)
            if time < observation.catalog.n_times - 1:
                some = observation.subset(rows)
                plans[rows] = self.search.gates(some, weights[rows], whole=False)[0].numpy()
        return Decision.from_plans(plans)
