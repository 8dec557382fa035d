"""Reference points: a method's own predictions after fixed acquisitions, as an operating point.

Acquiring nothing and everything are the ends of every curve. Any other fixed schedule, such as the
best static one or a user's protocol, can be held against a method in the same way. The settings
are plain data, so they can be saved with a model and written to `results.csv`:

    {"acquire": "nothing", "at": {...}}
    {"acquire": "everything", "at": {...}}
    {"acquire": "plan", "name": "static", "plan": {"0": ["blood"], "3": ["mri"]}, "at": {...}}

`at` is the setting of the method whose policy makes the predictions. `expected` may say which loss
and charge the reference point had on validation; it promises them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.core.losses import trajectory_losses
from nocta.core.policy import Decision, Observation, Policy, Promise
from nocta.core.rollout import Rollout
from nocta.methods.contract import Method
from nocta.methods.fixed import first_affordable, promise_of

NOTHING, EVERYTHING, PLAN = "nothing", "everything", "plan"


@dataclass(eq=False)
class ReferencePolicy(Policy):
    """Acquires what a reference setting says; another policy predicts."""

    inner: Policy
    setting: Mapping[str, Any]

    def begin(self, n_subjects: int, seed: int) -> None:
        self.inner.begin(n_subjects, seed)

    def decide(self, observation: Observation) -> Decision:
        plan = slots_of(self.setting, observation.catalog)
        return first_affordable(observation, observation.open_slots & plan)

    def promise(self, observation: Observation) -> Promise | None:
        """What the reference point had on validation, if its setting says so."""
        found = self.setting.get("expected")
        expected = None if found is None else (found["loss"], found["charge"])
        return promise_of(slots_of(self.setting, observation.catalog), expected, observation)

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        return self.inner.predict_proba(history)


def slots_of(setting: Mapping[str, Any], catalog: Catalog) -> NDArray[np.bool_]:
    """What a reference setting acquires, `(L, M)`."""
    if setting["acquire"] != PLAN:
        return np.asarray(catalog.open_slots & (setting["acquire"] == EVERYTHING))
    plan = np.zeros_like(catalog.open_slots)
    for slot, names in setting["plan"].items():
        plan[int(slot)] = np.isin(catalog.names, names)
    return plan


def plan_setting(
    name: str, slots: NDArray[np.bool_], catalog: Catalog, at: Mapping[str, Any]
) -> dict[str, Any]:
    """The setting of a fixed schedule `(L, M)`."""
    visits = np.flatnonzero(slots.any(axis=1))
    plan = {str(t): [catalog.names[m] for m in np.flatnonzero(slots[t])] for t in visits}
    return {"acquire": PLAN, "name": name, "plan": plan, "at": dict(at)}


def with_expectation(setting: Mapping[str, Any], outcome: Rollout) -> dict[str, Any]:
    """A reference setting that promises what it had on the subjects of a roll-out."""
    loss = float(trajectory_losses(outcome.labels, outcome.probabilities).mean())
    return {**setting, "expected": {"charge": round(outcome.cost, 6), "loss": round(loss, 6)}}


def reference_name(setting: Mapping[str, Any]) -> str | None:
    """`"nothing"`, `"everything"` or the name of a schedule; `None` for a method's own setting."""
    if "at" not in setting or "acquire" not in setting:
        return None
    return str(setting["name"] if setting["acquire"] == PLAN else setting["acquire"])


def with_ends(settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings of a method, cheapest first, between the ends of its curve.

    A method without a knob has one empty setting and no curve.

    Example:
        >>> with_ends([{}])
        [{}]
        >>> [reference_name(setting) for setting in with_ends([{"cost_weight": 1.0}])]
        ['nothing', None, 'everything']
    """
    if not any(settings):
        return settings
    first = {"acquire": NOTHING, "at": settings[0]}
    last = {"acquire": EVERYTHING, "at": settings[-1]}
    return [first, *settings, last]


def policy_at(method: Method, setting: Mapping[str, Any]) -> Policy:
    """The policy of a method at one operating point, or at a reference point."""
    if reference_name(setting) is None:
        return method.policy(dict(setting))
    return ReferencePolicy(method.policy(dict(setting["at"])), setting)
