"""Short fits of every built-in method."""

from __future__ import annotations

from typing import Any

from nocta.core.cohort import Cohort
from nocta.methods.registry import method_class
from nocta.methods.saving import SavedMethod

DIFA = {"hidden": 8, "dropouts": [0.0], "epochs": 1, "min_steps": 4}
#: Arguments that make a fit short.
SHORT: dict[str, dict[str, Any]] = {
    "asac": {"grid": [0.01], "epochs": 1},
    "ras": {"grid": [10.0], "hidden": 8, "drop_rate": 0.3, "options": {"rounds": 2}},
    "as": {"grid": [10.0], "hidden": 8, "drop_rate": 0.3, "options": {"rounds": 2}},
    "dime": {"n_updates": 5},
    "difa": {"grid": [0.01], "options": DIFA},
    "static": {"options": {"max_subjects": 20}},
    "nocta-auto": {"options": {"candidates": ["amortized"]}},
    "nocta-direct": {},
    "nocta-amortized": {"options": {"n_rounds": 0}},
    "nocta-contrastive": {"options": {"metric": "values"}},
    "nocta-ensemble": {"options": {"metric": "values", "amortized_share": 0.5}},
}


def fitted(name: str, clinic: list[Cohort], shared: Any, **more: Any) -> SavedMethod:
    arguments = {**SHORT.get(name, {}), **more}
    cls: Any = method_class(name)
    if name in SHORT and name not in ("static",):
        arguments["quick"] = True
    method = cls(**arguments).fit(clinic[0], clinic[1], seed=0, predictor=shared)
    return SavedMethod.of(method, clinic[0], 0, {"settings": method.settings(clinic[1], 3)})
