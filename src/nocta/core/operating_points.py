"""Operating points: knob values whose costs on validation spread along the cost-quality curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.options import Count, check_value

Costs = NDArray[np.float64]
#: Operating points are spread over this share of the cost of acquiring everything.
COST_SHARE = (0.05, 0.90)
#: How many times the knob range may be extended on either side.
_MOST_STRETCHES = 3


def cost_of_everything(cohort: Cohort) -> float:
    """Mean charge per subject if everything is requested (unavailable values are not charged)."""
    catalog = cohort.catalog
    return float(catalog.cost_of(cohort.recorded & catalog.everything).mean())


def cost_targets(cohort: Cohort, n_points: int) -> Costs:
    """Evenly spread mean costs, from 5 % to 90 % of acquiring everything, `(n_points,)`."""
    check_value("n_points", n_points, Count)
    low, high = COST_SHARE
    targets = np.linspace(low, high, n_points) * cost_of_everything(cohort)
    return np.maximum(targets, cohort.catalog.price_of_required)


def nearest_to_targets(costs: Costs, targets: Costs) -> NDArray[np.int64]:
    """Positions of the costs closest to the targets, each position once, cheapest first."""
    nearest = np.abs(np.asarray(costs)[None, :] - np.asarray(targets)[:, None]).argmin(axis=1)
    unique = np.unique(nearest)
    return np.asarray(unique[np.argsort(np.asarray(costs)[unique], kind="stable")])


def spread_knob(
    cost_at: Callable[[float], float],
    knob_range: tuple[float, float],
    targets: Costs,
    *,
    n_evaluations: int = 24,
    tolerance: float = 0.02,
    n_coarse: int = 7,
    known: Mapping[float, float] | None = None,
    stretch: float | None = None,
) -> list[float]:
    """Values of a positive knob whose costs lie closest to `targets`, cheapest first.

    The search is on a logarithmic scale: a coarse grid first, then repeatedly the target with the
    largest miss, by interpolation between its two neighbors. Cost should rise or fall with the
    knob; if it is not quite monotone, the nearest value seen is taken.

    Args:
        cost_at: Mean cost on validation at a knob value (often a whole roll-out).
        knob_range: Smallest and largest value to try, both positive.
        targets: Target costs.
        n_evaluations: Maximum number of calls of `cost_at`.
        tolerance: Accepted miss, as a share of the largest target.
        n_coarse: Size of the coarse grid.
        known: Costs of knob values that were evaluated before; they count as evaluations.
        stretch: Factor by which to extend the range while targets lie beyond all costs seen: above
            1 if a larger knob costs more. By default the search stays in the range.
    """
    low, high = knob_range
    if not 0 < low < high:
        raise ConfigError(f"knob_range is {knob_range}; give two positive numbers, low first.")
    seen = dict(known or {})
    for x in np.linspace(np.log(low), np.log(high), max(3, min(n_coarse, n_evaluations))):
        seen[float(np.exp(x))] = float(cost_at(float(np.exp(x))))
    logs, costs = [float(np.log(value)) for value in seen], list(seen.values())
    close_enough = tolerance * float(np.max(targets))
    room = _MOST_STRETCHES * abs(float(np.log(stretch or 1.0))) + 1e-9
    low_end, high_end = float(np.log(low)) - room, float(np.log(high)) + room
    while len(logs) < n_evaluations:
        proposal = _next_knob(np.array(logs), np.array(costs), targets, close_enough)
        if proposal is None and stretch is not None:
            proposal = _beyond(logs, costs, targets, close_enough, float(np.log(stretch)))
            if proposal is not None and not low_end <= proposal <= high_end:
                proposal = None
        if proposal is None:
            break
        logs.append(proposal)
        costs.append(float(cost_at(float(np.exp(proposal)))))
    return [float(np.exp(logs[i])) for i in nearest_to_targets(np.array(costs), targets)]


def _beyond(
    logs: list[float], costs: list[float], targets: Costs, close_enough: float, step: float
) -> float | None:
    """One step beyond the knobs seen, toward the target farthest outside the costs seen."""
    above, below = float(np.max(targets)) - max(costs), min(costs) - float(np.min(targets))
    if max(above, below) <= close_enough:
        return None
    toward = step if above >= below else -step
    return (max(logs) if toward > 0 else min(logs)) + toward


def _next_knob(
    logs: NDArray[np.float64], costs: Costs, targets: Costs, close_enough: float
) -> float | None:
    """The next knob to try: inside the narrowest bracket of the target with the largest miss."""
    order = np.argsort(logs)
    logs, costs = logs[order], costs[order]
    misses = np.abs(costs[None, :] - targets[:, None]).min(axis=1)
    for i in np.argsort(-misses):
        if misses[i] <= close_enough:
            return None
        above = costs >= targets[i]
        crossings = np.flatnonzero(above[1:] != above[:-1])
        for j in crossings:
            if logs[j + 1] - logs[j] < 1e-4:
                continue  # a jump: no knob value gives this cost
            share = (targets[i] - costs[j]) / (costs[j + 1] - costs[j])
            # Between a fifth and four fifths, so that a bracket always shrinks.
            return float(logs[j] + np.clip(share, 0.2, 0.8) * (logs[j + 1] - logs[j]))
    return None
