"""Part `methods`: fit and roll-out of every method on one small cohort, one operating point.

All use the shorter schedule of a quick run, and so does the predictor that some of them share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nocta
from measure import timed
from nocta.core.cohort import Cohort
from nocta.core.predictor import Predictor
from nocta.core.rollout import rollout
from nocta.methods.contract import Method
from nocta.runs.method_options import make_method
from scenes import Sizes, shared_predictor, training_of


def measure(sizes: Sizes, models: Path) -> dict[str, Any]:
    """Processor seconds of one fit, milliseconds per subject of one roll-out."""
    del models  # nothing is kept: fitting is what is measured
    cohort = nocta.datasets.load("synthetic", seed=0, n_subjects=sizes.method_subjects)
    train, val, test = cohort.split((0.70, 0.15, 0.15), seed=0)
    predictor, took = timed(lambda: shared_predictor("default", train, val, sizes, quick=True))
    found: dict[str, Any] = {
        "subjects": [len(train), len(val), len(test)],
        "predictor_cpu_seconds": took.cpu_seconds,
        "methods": {},
    }
    for name in sizes.methods:
        method = make_method(name, {}, quick=True)
        with training_of(sizes):
            found["methods"][name] = one_method(method, predictor, train, val, test)
    return found


def one_method(
    method: Method, predictor: Predictor, train: Cohort, val: Cohort, test: Cohort
) -> dict[str, Any]:
    """Fit, take the operating point in the middle, roll out."""
    shared = predictor if method.shares_predictor else None
    _, fit = timed(lambda: method.fit(train, val, seed=0, predictor=shared))
    settings, choice = timed(lambda: method.settings(val, 3))
    setting = settings[len(settings) // 2]
    policy = method.policy(setting)
    done, took = timed(lambda: rollout(policy, test, budget=setting.get("budget")))
    return {
        "shares_predictor": method.shares_predictor,
        "fit_cpu_seconds": fit.cpu_seconds,
        "settings_cpu_seconds": choice.cpu_seconds,
        "ms_per_subject": 1e3 * took.cpu_seconds / len(test),
        "cost": done.cost,
        "decisions_per_subject": float(np.mean(done.n_decisions)),
    }
