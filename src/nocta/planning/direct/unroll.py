"""Unrolling the network of NOCT-Direct over the visits of training subjects."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.planning.direct.network import GateNet, Terms
from nocta.planning.gates import GatedCohort, gate_costs

_TOLERANCE = 1e-9


class Lines(NamedTuple):
    """Subjects for whom gates are drawn, and what they may see; axis `n`."""

    rows: Tensor  # positions in the cohort
    terms: Terms
    #: Results are seen up to this slot: the last one for the closed loop, -1 for none.
    seen_until: Tensor
    #: Gates up to this slot were decided before and carry no gradient: -1 for none.
    learned_after: Tensor
    blind: Tensor  # who is planned for without context, too: a schedule for everybody


class Drawn(NamedTuple):
    """Gates, and the states from which they were drawn."""

    gates: Tensor  # (n, L, M), with gradient
    states: Tensor  # (n, L, hidden), before each visit


def draw(
    net: GateNet,
    data: GatedCohort,
    recorded: Tensor,
    lines: Lines,
    catalog: Catalog,
    *,
    explore: bool,
) -> Drawn:
    """Gates visit by visit: drawn at random, or those more likely open; within the budget."""
    index, terms = lines.rows, lines.terms
    slots, frame, closed = data.slots[index], data.frame[index], data.closed[index]
    frame = torch.where(lines.blind[:, None, None], net.without_context(frame), frame)
    before, planned = torch.zeros_like(slots[:, 0]), torch.zeros_like(closed[:, 0]).float()
    state, gates, states = net.start(len(index)), [], []
    limited = bool(torch.isfinite(terms.remaining).any())
    for k in range(slots.shape[1]):
        logits, state = net.step(before, planned, frame[:, k], terms, k, state)
        states.append(state[0])
        chance = torch.sigmoid(logits)
        hard = chance > (torch.rand_like(chance) if explore else 0.5)
        shut = closed[:, k]
        if limited:
            # Only what is wanted is shut: other gates keep their gradient.
            shut = shut | over_budget(catalog, hard & ~shut, logits, terms.remaining, k)
        smooth = chance * (k > lines.learned_after)[:, None]
        gate = (hard.float() + smooth - smooth.detach()).masked_fill(shut, 0.0)
        gates.append(gate)
        seen = (k <= lines.seen_until)[:, None]
        before = slots[:, k] * gate[:, data.owner] * seen
        planned = gate * ~seen
        if limited:
            spent = visit_price(catalog, (gate.detach() > 0.5) & recorded[index][:, k], k)
            terms = terms._replace(remaining=(terms.remaining - spent).clamp(min=0.0))
    return Drawn(torch.stack(gates, dim=1), torch.stack(states, dim=1))


def over_budget(
    catalog: Catalog, wanted: Tensor, logits: Tensor, remaining: Tensor, slot: int
) -> Tensor:
    """Which wanted features of a visit the budget does not allow, the surest first, `(n, M)`."""
    too_much = torch.zeros_like(wanted)
    short = torch.nonzero(visit_price(catalog, wanted, slot) > remaining + _TOLERANCE)[:, 0]
    if not len(short):
        return too_much
    wanted, left = wanted[short], remaining[short]
    ranks = torch.where(wanted, logits[short], -torch.inf)
    order = ranks.argsort(dim=1, descending=True, stable=True)
    kept, rows = torch.zeros_like(wanted), torch.arange(len(short))
    for m in order.T[: int(wanted.sum(dim=1).max())]:
        trial = kept.clone()
        trial[rows, m] = wanted[rows, m]
        fits = visit_price(catalog, trial, slot) <= left + _TOLERANCE
        kept = torch.where(fits[:, None], trial, kept)
    too_much[short] = wanted & ~kept
    return too_much


def visit_price(catalog: Catalog, features: Tensor, slot: int) -> Tensor:
    """Price of a visit, fees included, `(n, M)` booleans to `(n,)`."""
    prices = torch.from_numpy(catalog.costs[slot])
    return gate_costs(catalog, features.double()[:, None], prices)[:, 0]


def all_seeing(net: GateNet, cohort: Cohort, weights: Tensor) -> Lines:
    """Every subject of a cohort at its own cost weight, `(n,)`, in closed loop, without budget."""
    n = len(cohort)
    prices = torch.from_numpy(cohort.catalog.costs)
    terms = net.terms(weights, prices, torch.full((n,), torch.inf))
    never = torch.full((n,), -1)
    return Lines(torch.arange(n), terms, never + cohort.n_times, never, torch.zeros(n).bool())
