"""The operating points of a method: its own grid, given cost weights, given budgets."""

from __future__ import annotations

from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.metrics import cross_entropy
from nocta.core.rollout import Rollout, rollout
from nocta.methods.contract import Method
from nocta.runs.setup import Setup


def operating_points(method: Method, val: Cohort, setup: Setup, seed: int) -> list[dict[str, Any]]:
    """The settings at which to roll out a fitted method.

    By default the method chooses about `setup.n_points` settings on validation. Given cost weights
    replace the grid of a method whose knob is a cost weight. Each given budget keeps the knob value
    with the lowest cross-entropy on validation under that hard limit, or every given cost weight.
    """
    weighted = bool(setup.cost_weights) and method.has_cost_weight
    if weighted:
        own: list[dict[str, Any]] = [{"cost_weight": weight} for weight in setup.cost_weights]
    else:
        own = method.settings(val, setup.n_points)
    if not setup.budgets:
        return own
    if weighted:
        return [{**s, "budget": b} for b in sorted(setup.budgets) for s in own]
    return [_best_within(b, own, method, val, setup, seed) for b in sorted(setup.budgets)]


def roll_out(
    method: Method, setting: dict[str, Any], cohort: Cohort, setup: Setup, seed: int
) -> Rollout:
    """Roll out a fitted method at one operating point, under the rules of the comparison."""
    return rollout(
        method.policy(setting),
        cohort,
        budget=setting.get("budget"),
        availability=setup.availability,
        results=setup.results,
        seed=seed,
    )


def _best_within(
    budget: float,
    settings: list[dict[str, Any]],
    method: Method,
    val: Cohort,
    setup: Setup,
    seed: int,
) -> dict[str, Any]:
    """The setting with the lowest loss on validation under a hard budget."""
    tried: dict[str, dict[str, Any]] = {}
    for setting in settings:
        limited = {**setting, "budget": budget}
        tried.setdefault(repr(limited), limited)
    if len(tried) == 1:
        return next(iter(tried.values()))

    def loss(setting: dict[str, Any]) -> float:
        found = roll_out(method, setting, val, setup, seed)
        labelled = found.labels >= 0
        return cross_entropy(found.labels[labelled], found.probabilities[labelled])

    return min(tried.values(), key=loss)
