"""One decision for one subject, timed by pytest-benchmark; started by part `decide`.

    pytest benchmarks/test_decide.py --benchmark-timer=time.process_time

Slots are before the first visit, early, and late; before, every other visit was acquired.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import scenes
from nocta.cohort.history import History
from nocta.presets.base import EstimatorName

SIZES: dict[str, scenes.Sizes] = {s.name: s for s in (scenes.FULL, scenes.QUICK, scenes.TINY)}
MODELS = Path(os.environ.get("NOCTA_BENCH_MODELS", "build/bench"))
VERSION = os.environ.get("NOCTA_BENCH_SIZES", "full")


@pytest.mark.parametrize("now", [-1, 2, 6])
@pytest.mark.parametrize("estimator", ["amortized", "contrastive"])
def test_one_decision(benchmark: BenchmarkFixture, estimator: EstimatorName, now: int) -> None:
    sizes = SIZES[VERSION]
    model = scenes.fitted("default", estimator, sizes, MODELS)
    test = scenes.synthetic_parts(sizes)[2]
    slots = np.arange(test.n_times)
    asked = ((slots <= now) & (slots % 2 == 0))[:, None]
    histories = [
        History.of(test.subset(np.array([i])), np.broadcast_to(asked, test.recorded.shape[1:]))
        for i in range(len(test))
    ]
    weight, turn = 0.5 * model.planner_.cost_scale, iter(range(10**9))

    def decide() -> object:
        # Another subject each time.
        return model.decide(histories[next(turn) % len(histories)], weight, time=now)

    benchmark.extra_info.update(estimator=estimator, now=now)
    assert benchmark(decide) is not None
