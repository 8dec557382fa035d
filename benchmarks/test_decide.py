"""One decision for one subject, timed by pytest-benchmark; started by part `decide`.

    pytest benchmarks/test_decide.py --benchmark-timer=time.process_time

Slots are before the first visit, early, and late. Every subject has a mask of their own; it was
met before, or the model meets it for the first time (retrieval then looks at its bank again).
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import nocta
import scenes
from nocta.core.history import History
from nocta.model.presets.base import EstimatorName

SIZES: dict[str, scenes.Sizes] = {s.name: s for s in (scenes.FULL, scenes.QUICK, scenes.TINY)}
MODELS = Path(os.environ.get("NOCTA_BENCH_MODELS", "build/bench"))
VERSION = SIZES[os.environ.get("NOCTA_BENCH_SIZES", "full")]
#: Few enough that what retrieval keeps of their masks is never dropped.
N_HISTORIES = 16


def load(estimator: EstimatorName) -> nocta.NOCTA:
    """The model as a service finds it when it starts."""
    return scenes.fitted("default", estimator, VERSION, MODELS)


def histories(now: int) -> list[History]:
    """Subjects at one slot, each with a mask of their own."""
    test = scenes.synthetic_parts(VERSION)[2]
    masks = scenes.random_masks(N_HISTORIES, test.catalog, now)
    return [
        History.of(test.subset(np.array([i % len(test)])), mask[None])
        for i, mask in enumerate(masks)
    ]


def decide(model: nocta.NOCTA, history: History, now: int) -> object:
    """One decision."""
    return model.decide(history, 0.5 * model.planner_.cost_scale, time=now)


@pytest.mark.parametrize("now", [-1, 2, 6])
@pytest.mark.parametrize("estimator", ["amortized", "contrastive"])
def test_masks_met_before(benchmark: BenchmarkFixture, estimator: EstimatorName, now: int) -> None:
    model, subjects, turn = load(estimator), histories(now), count()
    for history in subjects:
        decide(model, history, now)
    benchmark.extra_info.update(estimator=estimator, now=now, mask="seen")
    # Another subject each time.
    found = benchmark(lambda: decide(model, subjects[next(turn) % len(subjects)], now))
    assert found is not None


@pytest.mark.parametrize("now", [-1, 2, 6])
@pytest.mark.parametrize("estimator", ["amortized", "contrastive"])
def test_new_masks(benchmark: BenchmarkFixture, estimator: EstimatorName, now: int) -> None:
    subjects, turn = histories(now), count()
    nobody = histories(-1)[0]

    def forget() -> tuple[tuple[nocta.NOCTA, History, int], dict[str, object]]:
        model = load(estimator)
        decide(model, nobody, 0 if now < 0 else -1)  # what happens once per model is not timed
        return (model, subjects[next(turn) % len(subjects)], now), {}

    benchmark.extra_info.update(estimator=estimator, now=now, mask="new")
    rounds = 2 if VERSION is scenes.TINY else len(subjects)
    assert benchmark.pedantic(decide, setup=forget, rounds=rounds, iterations=1) is not None
