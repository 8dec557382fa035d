"""Part `default`: what the `default` preset takes per subject, whole trajectories of a cohort."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measure import timed
from nocta.cohort.cohort import Cohort
from nocta.model import NOCTA
from scenes import Sizes, fitted, synthetic_parts

#: Cost weights, as multiples of the one at which acquiring everything breaks even.
FACTORS = (0.4, 0.7, 1.0)
#: Milliseconds.
TARGETS = {"amortized": 5.0, "contrastive": 50.0}
#: What the released code of RAS takes per trajectory, in milliseconds.
RELEASED_RAS = (7.0, 18.0)


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Milliseconds per subject."""
    _, _, test = synthetic_parts(sizes)
    amortized = fitted("default", "amortized", sizes, models)
    contrastive = fitted("default", "contrastive", sizes, models)
    some = test.subset(np.arange(min(sizes.served, len(test))))
    return {
        "amortized": {"target_ms": TARGETS["amortized"], "points": trajectories(amortized, test)},
        "contrastive": {
            "target_ms": TARGETS["contrastive"],
            "points": trajectories(contrastive, some),
        },
        "released_ras_ms": RELEASED_RAS,
    }


def trajectories(model: NOCTA, test: Cohort) -> list[dict[str, Any]]:
    """Whole trajectories of a cohort, at several cost weights."""
    points = []
    model.rollout(test.subset(np.arange(min(4, len(test)))), model.planner_.cost_scale)
    for factor in FACTORS:
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
