"""Search for the best plan: by a beam over time, or from a sample of plans.

Every plan returned is feasible: its slots are open, it fits the remaining budget, and no part of it
closes another by a constraint. The empty plan is always a candidate; if something is always
acquired, the plan of nothing else takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nocta.core.estimator import NoctEstimator
from nocta.core.policy import Observation
from nocta.core.random_plans import guided_plans, uniform_plans
from nocta.core.rules import Ledger, Rules
from nocta.planning.estimators.sequential import SequentialEstimator
from nocta.planning.space import ActionTable

_INFEASIBLE = 1e9
#: Approximate number of continuations per subject and slot, for a network and for neighbor votes.
BRANCHES, VOTED_BRANCHES = 512, 128
#: Minimum number of prefixes kept.
_NARROWEST = 4


@dataclass(frozen=True)
class FoundPlans:
    """The best plans of `n` subjects, best first."""

    plans: NDArray[np.bool_]  # (n, r, L, M)
    losses: NDArray[np.float64]  # (n, r) expected loss-to-go
    #: (n, r) List price less what is expected to be unavailable; the `paper` preset expects that
    #: everything is available.
    charges: NDArray[np.float64]
    cost_weight: NDArray[np.float64]  # (n,) what one unit of cost is worth in loss (alpha)
    stopping: NDArray[np.float64]  # (n,) expected loss-to-go of acquiring nothing more

    @property
    def scores(self) -> NDArray[np.float64]:
        """Estimated NOCT, `(n, r)`: expected loss-to-go plus weighted expected charge."""
        return np.asarray(self.losses + self.cost_weight[:, None] * self.charges)

    def shifted(self, by: NDArray[np.float64]) -> FoundPlans:
        """The same plans with `by`, `(n,)`, added to every loss of a subject."""
        return replace(self, losses=self.losses + by[:, None], stopping=self.stopping + by)

    def take(self, index: NDArray[np.int64]) -> FoundPlans:
        """The plans of the subjects at these positions."""
        return FoundPlans(*(getattr(self, field.name)[index] for field in fields(self)))

    def ranked(self, order: NDArray[np.int64]) -> FoundPlans:
        """The same plans of every subject in another order, `(r,)`."""
        parts = (self.plans[:, order], self.losses[:, order], self.charges[:, order])
        return FoundPlans(*parts, self.cost_weight, self.stopping)

    @classmethod
    def nothing(cls, cost_weight: NDArray[np.float64], shape: tuple[int, int]) -> FoundPlans:
        """The empty plan, at no loss, for subjects who have no visit left."""
        none = np.zeros((len(cost_weight), 1))
        plans = np.zeros((len(cost_weight), 1, *shape), dtype=bool)
        return cls(plans, none, none, cost_weight, none[:, 0])

    @classmethod
    def concatenate(cls, parts: Sequence[FoundPlans]) -> FoundPlans:
        """Plans of several batches; if one found fewer, its worst plan is repeated."""
        most = max(p.losses.shape[1] for p in parts)

        def joined(name: str) -> NDArray[Any]:
            arrays = [getattr(p, name) for p in parts]
            if arrays[0].ndim > 1:
                arrays = [a[:, np.minimum(np.arange(most), a.shape[1] - 1)] for a in arrays]
            return np.concatenate(arrays)

        return cls(*(joined(field.name) for field in fields(cls)))


def beam_search(
    estimator: SequentialEstimator,
    observation: Observation,
    actions: ActionTable,
    cost_weight: NDArray[np.float64],
    width: int = 16,
    first_width: int = 64,
    n_best: int = 2,
    branches: int = BRANCHES,
) -> FoundPlans:
    """Grow plans slot by slot and keep the `width` best prefixes, the empty one always among them.

    All subjects are at the same slot. Before the first visit, when the horizon is longest,
    `first_width` prefixes are kept. `branches` is the approximate number of continuations per slot;
    it limits both widths if many subsets are offered.
    """
    n, first = len(observation), int(observation.time[0]) + 1
    open_slots = torch.from_numpy(observation.offered_slots)
    remaining = torch.from_numpy(unreserved(observation))
    rules = observation.catalog.rules
    prefixes = None if rules is None else _Prefixes(rules, observation)
    # With many subsets, more prefixes are not worth the time, and a wide first beam would not fit
    # in memory.
    most = max(len(s) for s in actions.subsets[first:])
    affordable = max(_NARROWEST, branches // most)
    width = min(width if first else max(width, first_width), affordable)
    weight = torch.from_numpy(cost_weight).float()[:, None, None]
    state = estimator.start(observation)
    parents = torch.zeros(n, 1, dtype=torch.long)
    total, spent = torch.zeros(n, 1), torch.zeros(n, 1, dtype=torch.float64)
    losses = torch.zeros(n, 1)
    chosen = torch.zeros(n, 1, actions.n_times, dtype=torch.long)
    # What is known to be available is charged in full.
    charges = actions.charges if observation.available is None else actions.prices
    for k in range(first, actions.n_times):
        subsets = torch.from_numpy(actions.subsets[k])  # (s, M)
        price = torch.from_numpy(actions.prices[k])
        charge = torch.from_numpy(charges[k]).float()
        q, s = parents.shape[1], len(subsets)
        closed = (subsets & ~open_slots[:, k, None]).any(-1)[:, None]  # (n, 1, s)
        if prefixes is not None:
            closed = prefixes.closed(k, actions.subsets[k])  # (n, q, s)
        bill = spent[:, :, None] + price  # (n, q, s)
        wrong = closed | (bill > remaining[:, None, None] + 1e-9)
        state, loss = estimator.branch(state, k, parents, subsets)
        score = total[:, :, None] + loss + weight * charge
        score = torch.where(wrong, _INFEASIBLE, score).view(n, q * s)
        rank = score.clone()
        rank[:, 0] = -_INFEASIBLE  # prefix 0 is the empty one; it stays, and stays first
        keep = rank.topk(min(width, q * s), largest=False, sorted=True).indices  # (n, w)
        total, spent = score.gather(1, keep), bill.view(n, q * s).gather(1, keep)
        losses = (losses[:, :, None] + loss).view(n, q * s).gather(1, keep)
        chosen = chosen.gather(1, (keep // s)[..., None].expand(-1, -1, actions.n_times)).clone()
        chosen[:, :, k] = keep % s
        if prefixes is not None:
            prefixes.extend(k, (keep // s).numpy(), actions.subsets[k][(keep % s).numpy()])
        parents = keep
    best = total.topk(min(n_best, total.shape[1]), largest=False, sorted=True).indices
    # If fewer are feasible, stopping stands in for the rest.
    best = torch.where(total.gather(1, best) < _INFEASIBLE / 2, best, 0)
    picked = chosen.gather(1, best[..., None].expand(-1, -1, actions.n_times)).numpy()
    times = range(first, actions.n_times)
    plans = np.zeros((*picked.shape, actions.subsets[0].shape[1]), dtype=bool)
    for k in times:
        plans[:, :, k] = actions.subsets[k][picked[:, :, k]]
    if prefixes is not None:
        plans &= prefixes.possible[:, None]
    charged = np.sum([charges[k][picked[:, :, k]] for k in times], axis=0)
    expected = losses.double()
    found = expected.gather(1, best).numpy()
    return FoundPlans(plans, found, charged, cost_weight, expected[:, 0].numpy())


class _Prefixes:
    """What the constraints close to each prefix of a beam."""

    def __init__(self, rules: Rules, observation: Observation) -> None:
        self.rules, self.offered = rules, observation.offered_slots
        self.due = observation.due
        #: What is always acquired stays in a plan only if it can be, `(n, L, M)`.
        self.possible = self.offered & (~rules.required | self.due)
        acquired = observation.committed
        self.ledger = Ledger.empty(len(observation), 1, acquired.shape[2])
        for k in range(acquired.shape[1]):
            self.ledger = self.ledger.with_visit(k, acquired[:, None, k])

    def closed(self, slot: int, subsets: NDArray[np.bool_]) -> torch.Tensor:
        """Which subsets, `(s, M)`, may not continue each prefix, `(n, q, s)`."""
        later = self.due.copy()
        later[:, :slot] = False
        closed = self.rules.closed_at(slot, self.ledger, later[:, None])
        closed |= ~self.offered[:, None, slot]
        # What is always acquired is in every subset; it cannot decide between them.
        optional = (subsets & ~self.rules.required[slot]).astype(np.float32)
        return torch.from_numpy(closed.astype(np.float32) @ optional.T > 0)

    def extend(self, slot: int, parents: NDArray[np.int64], chosen: NDArray[np.bool_]) -> None:
        """Continue prefixes, `(n, w)` positions, by what they acquire, `(n, w, M)`."""
        rows = np.arange(len(parents))[:, None]
        before = Ledger(*(array[rows, parents] for array in self.ledger))
        self.ledger = before.with_visit(slot, chosen & self.possible[:, None, slot])


def unreserved(observation: Observation) -> NDArray[np.float64]:
    """What plans may cost, `(n,)`: they contain what the budget was set aside for."""
    if not observation.catalog.price_of_required:
        return observation.remaining
    return observation.remaining + observation.catalog.cost_of(observation.due)


def draw_candidates(
    observation: Observation, n_candidates: int, seed: int, worth: NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    """Random plans `(p, L, M)`, the same for all subjects at a slot, so decisions are independent.

    Draws favor slots of high `worth`, `(L, M)`, if it is given. All plans are returned if there are
    at most `n_candidates`.
    """
    time = int(observation.time[0])
    later = np.arange(observation.catalog.n_times)[:, None] > time
    open_slots = observation.catalog.open_slots & later
    rng = np.random.default_rng([seed, time + 1])
    if worth is None:
        return uniform_plans(n_candidates, open_slots, rng)
    return guided_plans(n_candidates, open_slots, worth, rng)


def sample_search(
    estimator: NoctEstimator,
    observation: Observation,
    plans: NDArray[np.bool_],
    charges: NDArray[np.float64],
    cost_weight: NDArray[np.float64],
    n_best: int = 2,
) -> FoundPlans:
    """The best of a given set of plans, as the paper searches.

    `plans`, `(p, L, M)`, are the candidates of all subjects; the first is the empty plan.
    `charges`, `(p,)`, are their expected charges.
    """
    catalog = observation.catalog
    own = np.broadcast_to(plans, (len(observation), *plans.shape))
    prices = np.broadcast_to(catalog.cost_of(plans), own.shape[:2])
    charged = np.broadcast_to(charges, own.shape[:2])
    if catalog.rules is not None:
        own = repaired_plans(observation, own)
        prices = charged = catalog.cost_of(own)
        losses = estimator.score_plans(observation, own)
    elif observation.available is not None:
        # Slots known to be missing are not requested, so they are neither scored nor charged.
        own = own & observation.open_slots[:, None]
        prices = charged = catalog.cost_of(own)
        losses = estimator.score_plans(observation, own)
    else:
        losses = estimator.score_plans(observation, plans)
    expected = losses.double().numpy()
    scores = expected + cost_weight[:, None] * charged
    scores = np.where(prices > unreserved(observation)[:, None] + 1e-9, _INFEASIBLE, scores)
    order = np.argsort(scores, axis=1, kind="stable")[:, :n_best]
    rows = np.arange(len(own))[:, None]
    order = np.where(scores[rows, order] < _INFEASIBLE / 2, order, 0)
    return FoundPlans(
        own[rows, order], expected[rows, order], charged[rows, order], cost_weight, expected[:, 0]
    )


def repaired_plans(observation: Observation, plans: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Each subject's plans, `(n, p, L, M)`, as the constraints require and allow them."""
    rules = observation.catalog.rules
    assert rules is not None
    offered, acquired = observation.offered_slots[:, None], observation.committed[:, None]
    return rules.repaired(plans, offered, acquired)
