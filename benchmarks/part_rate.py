"""Part `rate`: how near plan scoring comes to what the machine's matrix product can do.

The rate of a large square product and the operations of plan scoring (those in matrix products
alone) are taken in the same process. Networks as small as the published one, ten units wide,
cannot fill a processor: most of their time goes into what lies between the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from measure import timed
from nocta.core.cohort import Cohort
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.model.nocta import NOCTA
from scenes import Sizes, fitted, synthetic_parts


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Operations per second of the product itself, and of planning with every estimator."""
    _, _, test = synthetic_parts(sizes)
    square = 1024 if sizes.name != "tiny" else 64
    peak = product_rate(square, repeat=5)
    found: dict[str, Any] = {"square": square, "product_gflops": peak / 1e9, "scoring": {}}
    for preset in ("paper", "default"):
        for estimator in ("contrastive", "amortized"):
            model = fitted(preset, estimator, sizes, models)
            rate, share = planning_rate(model, test)
            found["scoring"][f"{preset} {estimator}"] = {
                "gflops": rate / 1e9,
                "of_product": rate / peak,
                "time_in_products": share,
            }
    return found


def product_rate(size: int, repeat: int) -> float:
    """Operations per second of a square product in single precision."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    left @ right
    _, took = timed(lambda: left @ right, repeat)
    return 2 * size**3 / max(took.cpu_seconds, 1e-9)


def planning_rate(model: NOCTA, test: Cohort) -> tuple[float, float]:
    """Operations in matrix products per second of planning, and the share of time they take."""
    plan = planning(model, test)
    plan()  # retrieval has then seen the masks: plan scoring alone remains
    counter = FlopCounterMode(display=False)
    with counter:
        plan()
    _, took = timed(plan, repeat=3)
    return counter.get_total_flops() / took.cpu_seconds, _time_in_products(plan)


def planning(model: NOCTA, test: Cohort) -> Callable[[], Any]:
    """Planning for up to 64 subjects of one mask who have seen three visits."""
    n, now = min(64, len(test)), 2
    asked = np.zeros((n, test.n_times, test.catalog.n_features), dtype=bool)
    asked[:, : now + 1] = True
    observation = Observation(
        history=History.of(test.subset(np.arange(n)), asked),
        time=np.full(n, now),
        remaining=np.full(n, np.inf),
        catalog=test.catalog,
        rows=np.arange(n),
    )
    observation = replace(observation, history=observation.history.up_to(now))
    policy = model.policy(0.5 * model.planner_.cost_scale)
    return lambda: policy.best_plans(observation)


def _time_in_products(plan: Callable[[], Any]) -> float:
    """Share of the operators' own time that is spent in matrix products."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        plan()
    own = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    products = sum(own.get(name, 0.0) for name in ("aten::mm", "aten::addmm", "aten::bmm"))
    return float(products / max(sum(own.values()), 1e-9))
