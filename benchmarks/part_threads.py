"""Part `threads`: two cores as two processes of one thread, or as one process of two threads.

A roll-out of the `default` preset; processes share the subjects out. Times are of the clock, which
a machine that is busy with other work stretches, so processor time is beside them: what threads
lose by waiting for each other shows in both.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from measure import Timing, timed
from nocta.model.presets.base import EstimatorName
from part_default import served
from scenes import Sizes, fitted, synthetic_parts

#: Processes, threads of each.
LAYOUTS = ((1, 1), (2, 1), (1, 2))
ESTIMATORS: tuple[EstimatorName, ...] = ("amortized", "contrastive")
_FACTOR = 0.7
_REPEAT = 3
#: Seconds until the others are ready.
_PATIENCE = 600
#: In a process of a layout: where it waits for the others.
_start: Barrier | None = None


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Seconds of the same roll-out in every layout, the quickest of some."""
    rows = []
    for estimator in ESTIMATORS:
        fitted("default", estimator, sizes, models)  # so that fitting is not timed
        for processes, threads in LAYOUTS:
            layout = {"estimator": estimator, "processes": processes, "threads": threads}
            rows.append(layout | run(estimator, sizes, models, processes, threads))
    return {"factor": _FACTOR, "rows": rows}


def run(
    estimator: EstimatorName, sizes: Sizes, models: Path, processes: int, threads: int
) -> dict[str, float]:
    """The quickest roll-out: seconds until the last process is done, processor time of all."""
    context = get_context("spawn")
    start = context.Barrier(processes)
    shares = [slice(i, None, processes) for i in range(processes)]
    with (
        patch.dict(os.environ, {"OMP_NUM_THREADS": str(threads)}),
        ProcessPoolExecutor(processes, context, _begin, (threads, start)) as pool,
    ):
        waiting = [pool.submit(roll_out_share, estimator, sizes, models, own) for own in shares]
        rounds = zip(*(future.result() for future in waiting), strict=True)
    whole = [
        {
            "seconds": max(took.seconds for took in found),
            "cpu_seconds": sum(took.cpu_seconds for took in found),
        }
        for found in rounds
    ]
    return min(whole, key=lambda found: found["seconds"])


def _begin(threads: int, start: Barrier) -> None:
    global _start
    _start = start
    torch.set_num_threads(threads)


def roll_out_share(
    estimator: EstimatorName, sizes: Sizes, models: Path, share: slice
) -> list[Timing]:
    """Roll out a share of the subjects in this process, each time when all are ready."""
    test = served(synthetic_parts(sizes)[2], estimator, sizes)
    own = test.subset(np.arange(len(test))[share])
    found = []
    for _ in range(1 if sizes.name == "tiny" else _REPEAT):
        # Loaded again: retrieval has not seen any mask yet.
        model = fitted("default", estimator, sizes, models)
        work = partial(model.rollout, own, _FACTOR * model.planner_.cost_scale)
        assert _start is not None
        _start.wait(timeout=_PATIENCE)
        found.append(timed(work)[1])
    return found
