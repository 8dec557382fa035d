"""Decide what to acquire next, and when: longitudinal active feature acquisition.

    import nocta

    cohort = nocta.datasets.load("synthetic", seed=0)
    train, val, test = cohort.split((0.70, 0.15, 0.15), seed=0)
    model = nocta.NOCTA(estimator="amortized", seed=0).fit(train, val)
    model.rollout(test, cost_weight=0.7).summary()

Names are imported when they are first used, so that `import nocta` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nocta.core import hooks as _hooks
from nocta.core.version import __version__

if TYPE_CHECKING:
    from nocta import datasets, testing
    from nocta.core.catalog import Catalog, Feature
    from nocta.core.cohort import Cohort
    from nocta.core.constraints import Constraints
    from nocta.core.estimator import NoctEstimator
    from nocta.core.history import History
    from nocta.core.policy import Decision, Observation, Policy
    from nocta.core.predictor import Predictor
    from nocta.core.rollout import Rollout, rollout
    from nocta.evaluation.frontier import Frontier
    from nocta.methods.contract import Method
    from nocta.methods.saving import load
    from nocta.model.explaining import explain
    from nocta.model.nocta import NOCTA
    from nocta.model.presets.options import DefaultOptions, PaperOptions

_HOMES = {
    "NOCTA": "nocta.model.nocta",
    "Catalog": "nocta.core.catalog",
    "Cohort": "nocta.core.cohort",
    "Constraints": "nocta.core.constraints",
    "Decision": "nocta.core.policy",
    "DefaultOptions": "nocta.model.presets.options",
    "Feature": "nocta.core.catalog",
    "Frontier": "nocta.evaluation.frontier",
    "History": "nocta.core.history",
    "Method": "nocta.methods.contract",
    "NoctEstimator": "nocta.core.estimator",
    "Observation": "nocta.core.policy",
    "PaperOptions": "nocta.model.presets.options",
    "Policy": "nocta.core.policy",
    "Predictor": "nocta.core.predictor",
    "Rollout": "nocta.core.rollout",
    "explain": "nocta.model.explaining",
    "load": "nocta.methods.saving",
    "rollout": "nocta.core.rollout",
}
_MODULES = ("datasets", "testing")

__all__ = [
    "NOCTA",
    "Catalog",
    "Cohort",
    "Constraints",
    "Decision",
    "DefaultOptions",
    "Feature",
    "Frontier",
    "History",
    "Method",
    "NoctEstimator",
    "Observation",
    "PaperOptions",
    "Policy",
    "Predictor",
    "Rollout",
    "__version__",
    "datasets",
    "explain",
    "load",
    "rollout",
    "testing",
]


def _read_table(table: Any, schema: Any) -> Any:
    from nocta.tables.table import read_cohort

    return read_cohort(table, schema)


_hooks.read_table = _read_table


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"nocta.{name}")
    raise AttributeError(f"module 'nocta' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
