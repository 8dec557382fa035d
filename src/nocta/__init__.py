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

if TYPE_CHECKING:
    from nocta import datasets, testing
    from nocta.cohort import Catalog, Cohort, Feature, History
    from nocta.evaluation.rollout import Rollout, rollout
    from nocta.model import NOCTA
    from nocta.persistence import load

__version__ = "0.1.0"

_HOMES = {
    "NOCTA": "nocta.model",
    "Catalog": "nocta.cohort",
    "Cohort": "nocta.cohort",
    "Feature": "nocta.cohort",
    "History": "nocta.cohort",
    "Rollout": "nocta.evaluation.rollout",
    "load": "nocta.persistence",
    "rollout": "nocta.evaluation.rollout",
}
_MODULES = ("datasets", "testing")

__all__ = [
    "NOCTA",
    "Catalog",
    "Cohort",
    "Feature",
    "History",
    "Rollout",
    "datasets",
    "load",
    "rollout",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"nocta.{name}")
    raise AttributeError(f"module 'nocta' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
