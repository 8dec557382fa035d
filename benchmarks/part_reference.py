"""Part `reference`: roll-outs of the `paper` preset against the plain algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from measure import timed
from nocta.core.cohort import Cohort
from nocta.core.rollout import Rollout, rollout
from nocta.model.nocta import NOCTA
from nocta.model.presets.base import EstimatorName
from nocta.model.presets.paper import PaperPlanner
from reference import ReferencePolicy
from scenes import Sizes, fitted, synthetic_parts

#: Cost weights, as multiples of the one at which acquiring everything breaks even.
#: A network trained for an instant may need a low one before anything is acquired.
FACTORS = (0.6, 0.3, 0.1, 0.03)
TARGETS: dict[EstimatorName, float] = {"contrastive": 10.0, "amortized": 5.0}


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Ratios of both estimators, and how many subjects were treated alike to the last slot."""
    _, _, test = synthetic_parts(sizes)
    found: dict[str, Any] = {}
    for name, target in TARGETS.items():
        factors = acting_factors(fitted("paper", name, sizes, models), test)
        points = []
        for factor, n in zip(factors, sizes.compared, strict=True):
            some = test.subset(np.arange(min(n, len(test))))
            # Loaded again: retrieval has not seen any mask yet.
            points.append(compare(fitted("paper", name, sizes, models), some, factor))
        found[name] = {"target": target, "points": points}
    return found


def acting_factors(model: NOCTA, test: Cohort) -> tuple[float, float]:
    """The two highest of `FACTORS` at which subjects are followed for more than two decisions.

    If fewer than two do so, the two lowest.
    """
    few = test.subset(np.arange(min(8, len(test))))
    acting = [
        factor
        for factor in FACTORS
        if model.rollout(few, factor * model.planner_.cost_scale).n_decisions.mean() > 2
    ]
    first, second = acting[:2] if len(acting) > 1 else FACTORS[-2:]
    return first, second


def compare(model: NOCTA, test: Cohort, factor: float) -> dict[str, Any]:
    """One fast and one plain roll-out of the same subjects."""
    planner = model.planner_
    assert isinstance(planner, PaperPlanner)
    weight = factor * planner.cost_scale
    fast, fast_time = timed(lambda: model.rollout(test, weight))
    plain_policy = ReferencePolicy(planner, weight)
    plain, plain_time = timed(lambda: rollout(plain_policy, test, seed=model.seed))
    alike = (fast.history.requested == plain.history.requested).all(axis=(1, 2))
    return {
        "subjects": len(test),
        "n_candidates": planner.options.n_candidates,
        "factor": factor,
        "cost_weight": weight,
        "cost": fast.cost,
        "decisions_per_subject": float(fast.n_decisions.mean()),
        "subjects_alike": int(alike.sum()),
        "widest_tie": _widest_tie(plain_policy, test, fast, plain),
        "fast": fast_time.to_dict(),
        "reference": plain_time.to_dict(),
        "ratio": plain_time.cpu_seconds / fast_time.cpu_seconds,
    }


def _widest_tie(policy: ReferencePolicy, test: Cohort, fast: Rollout, plain: Rollout) -> float:
    """The largest difference in plain score between the choices of the two, if they differ.

    Infinite if no candidate explains what one of them did: that is not a tie.
    """
    widest = 0.0
    differs = (fast.history.requested != plain.history.requested).any(axis=2)
    for row in np.flatnonzero(differs.any(axis=1)):
        widest = max(widest, _tie(policy, test, fast, plain, int(row), differs[row]))
    return widest


def _tie(
    policy: ReferencePolicy,
    test: Cohort,
    fast: Rollout,
    plain: Rollout,
    row: int,
    differs: np.ndarray[Any, np.dtype[np.bool_]],
) -> float:
    """Difference of objectives at the decision at which one subject's two courses part."""
    from nocta.core.history import History
    from nocta.core.policy import Observation
    from nocta.planning.search import draw_candidates

    parting = int(np.argmax(differs))
    asked = plain.history.requested[row].copy()
    asked[parting:] = False
    seen = np.flatnonzero(asked.any(axis=1))
    now = int(seen[-1]) if len(seen) else -1
    one = Observation(
        history=History.of(test.subset(np.array([row])), asked[None]),
        time=np.array([now]),
        remaining=np.array([np.inf]),
        catalog=test.catalog,
        rows=np.array([0]),
    )
    planner = policy.planner
    plans = draw_candidates(one, planner.options.n_candidates, planner.seed)
    scores = policy.scores(one, plans)
    best = []
    for done in (fast, plain):
        # The best plan that begins as this course went on.
        taken = done.history.requested[row, now + 1 : parting + 1]
        begins = (plans[:, now + 1 : parting + 1] == taken).all(axis=(1, 2))
        best.append(scores[begins].min() if begins.any() else np.inf)
    return float(abs(best[0] - best[1])) if np.isfinite(best).all() else np.inf
