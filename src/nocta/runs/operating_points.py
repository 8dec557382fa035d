"""The operating points of a method: which there are, a roll-out and an audit at each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.metrics import cross_entropy
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.audit import audit
from nocta.methods.contract import Method
from nocta.methods.references import policy_at, reference_name, with_ends, with_expectation
from nocta.runs.record import Audit, AuditPoint
from nocta.runs.setup import Setup

#: Minimum number of audited subjects at every operating point.
MIN_SUBJECTS = 8
#: Maximum number of slots after which the future of the audited subjects is changed.
MAX_CUTS = 12


def operating_points(method: Method, val: Cohort, setup: Setup, seed: int) -> list[dict[str, Any]]:
    """The settings at which to roll out a fitted method.

    By default the method chooses about `setup.n_points` settings on validation; acquiring nothing
    and everything are the ends of its curve. Given cost weights replace the grid of a method whose
    knob is a cost weight. Each given budget keeps the knob value with the lowest cross-entropy on
    validation under that hard limit, or every given cost weight.
    """
    weighted = bool(setup.cost_weights) and method.has_cost_weight
    if weighted:
        own: list[dict[str, Any]] = [{"cost_weight": weight} for weight in setup.cost_weights]
    else:
        own = method.settings(val, setup.n_points)
    if not setup.budgets:
        return own if weighted else with_ends(own)
    if weighted:
        return [{**s, "budget": b} for b in sorted(setup.budgets) for s in own]
    return [_best_within(b, own, method, val, setup, seed) for b in sorted(setup.budgets)]


def with_promises(
    settings: Sequence[dict[str, Any]], method: Method, val: Cohort, setup: Setup, seed: int
) -> list[dict[str, Any]]:
    """The settings; reference points among them promise what they have on validation."""
    return [
        setting
        if reference_name(setting) is None
        else with_expectation(
            setting, roll_out(policy_at(method, setting), setting, val, setup, seed)
        )
        for setting in settings
    ]


def roll_out(
    policy: Policy, setting: dict[str, Any], cohort: Cohort, setup: Setup, seed: int
) -> Rollout:
    """Roll out the policy of one operating point, under the rules of the comparison."""
    return rollout(
        policy,
        cohort,
        budget=setting.get("budget"),
        availability=setup.availability,
        results=setup.results,
        seed=seed,
    )


def _best_within(
    budget: float, own: list[dict[str, Any]], method: Method, val: Cohort, setup: Setup, seed: int
) -> dict[str, Any]:
    """The setting with the lowest loss on validation under a hard budget."""
    limited = [{**setting, "budget": budget} for setting in own]
    settings = [s for i, s in enumerate(limited) if s not in limited[:i]]
    if len(settings) == 1:
        return settings[0]

    def loss(setting: dict[str, Any]) -> float:
        found = roll_out(policy_at(method, setting), setting, val, setup, seed)
        labeled = found.labels >= 0
        return cross_entropy(found.labels[labeled], found.probabilities[labeled])

    return min(settings, key=loss)


def audit_points(
    packed: Callable[[dict[str, Any]], bytes],
    settings: Sequence[dict[str, Any]],
    test: Cohort,
    setup: Setup,
    seed: int,
) -> Audit | None:
    """Audit the policy of every operating point on a sample of the test subjects.

    `packed` makes a policy that can be sent to another process; nothing of it runs in this one.

    `setup.audit_subjects` are divided among the points, with at least `MIN_SUBJECTS` each, so an
    audit takes about the same time for any number of points. With 0 the result is `None`.
    """
    if not setup.audit_subjects:
        return None
    fewest = min(MIN_SUBJECTS, setup.audit_subjects)
    points = []
    for i, setting in enumerate(settings):
        found = audit(
            packed(setting),
            test,
            n_subjects=max(fewest, setup.audit_subjects // len(settings)),
            seed=1000 * seed + i,  # other subjects at every point
            budget=setting.get("budget"),
            availability=setup.availability,
            results=setup.results,
            n_cuts=min(test.n_times + 1, MAX_CUTS),
        )
        points.append(AuditPoint(**found.to_dict(), setting=setting, finding=str(found)))
    totals = ("n_subjects", "n_decisions", "n_predictions", "seconds")
    return Audit(
        n_points=len(points),
        points=points,
        **{name: sum(getattr(point, name) for point in points) for name in totals},
        **{name: getattr(points[0], name) for name in ("availability", "results", "kinds", "cuts")},
    )
