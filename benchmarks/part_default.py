"""Part `default`: what the `default` preset takes per subject, whole trajectories of a cohort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measure import timed
from nocta.core.cohort import Cohort
from nocta.model.nocta import NOCTA
from nocta.model.presets.base import EstimatorName
from scenes import Sizes, fitted, synthetic_parts

#: Cost weights, as multiples of the one at which acquiring everything breaks even.
FACTORS = (0.4, 0.7, 1.0)
#: Milliseconds.
TARGETS: dict[EstimatorName, float] = {"amortized": 5.0, "contrastive": 50.0}
#: Milliseconds per trajectory that the released code of RAS took when it was run apart from this.
RELEASED_RAS = (7.0, 18.0)


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Milliseconds per subject."""
    _, _, test = synthetic_parts(sizes)
    found: dict[str, Any] = {"released_ras_ms": RELEASED_RAS}
    for name, target in TARGETS.items():
        points = trajectories(
            partial(fitted, "default", name, sizes, models), served(test, name, sizes)
        )
        found[name] = {"target_ms": target, "points": points}
    return found


def served(test: Cohort, estimator: EstimatorName, sizes: Sizes) -> Cohort:
    """Everybody; fewer if each decision asks neighbors."""
    n = len(test) if estimator == "amortized" else min(sizes.served, len(test))
    return test.subset(np.arange(n))


def trajectories(load: Callable[[], NOCTA], test: Cohort) -> list[dict[str, Any]]:
    """Whole trajectories of a cohort, at several cost weights."""
    points = []
    model = load()
    # What happens once per process is not timed.
    model.rollout(test.subset(np.arange(min(4, len(test)))), model.planner_.cost_scale)
    for factor in FACTORS:
        model = load()  # again: retrieval has not seen any mask yet
        done, took = timed(partial(model.rollout, test, factor * model.planner_.cost_scale))
        points.append(
            {
                "factor": factor,
                "subjects": len(test),
                "cost": done.cost,
                "decisions_per_subject": float(done.n_decisions.mean()),
                "ms": 1e3 * took.cpu_seconds / len(test),
                "wall_ms": 1e3 * took.seconds / len(test),
                "decisions_per_second": float(done.n_decisions.sum()) / took.cpu_seconds,
            }
        )
    return points
