"""The operating points that a fit keeps, the default one among them, and what they compare with.

All on validation subjects: the points of the method's own knob, acquiring nothing and everything,
and a static schedule of about the cost of the default point. Intervals are over subjects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.metrics import summarize
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import bootstrap_bands
from nocta.methods.nocta import model_of
from nocta.methods.reference.greedy import GreedyOptions, greedy_path, slot_blocks
from nocta.methods.reference.protocol import protocol_settings
from nocta.methods.references import plan_setting, with_ends, with_expectation
from nocta.methods.saving import SavedMethod
from nocta.model.choice.default import KEY, first_default

MEASURES = ("cost", "accuracy", "ap", "roc_auc", "cross_entropy")
#: Measures with an interval.
BOUNDED = ("accuracy", "ap", "roc_auc", "cross_entropy")
#: The schedule is a reference, not a result: its search may be short.
_SHORT = GreedyOptions(max_subjects=256, max_evaluations=600)


def points_to_keep(
    saved: SavedMethod, val: Cohort, n_points: int, *, quick: bool = False
) -> dict[str, Any]:
    """Entries of the model's record: the points, the default one, and the reference points."""
    model = model_of(saved.method)
    if model is not None:
        weights = model.suggest_cost_weights(val, n_points, 60 if quick else None)
        settings: list[dict[str, Any]] = [{"cost_weight": weight} for weight in weights]
        kept: dict[str, Any] = {"cost_weights": weights}
    else:
        settings = saved.method.settings(val, n_points)
        kept = {"settings": settings}
    rollouts = [saved.rollout(val, setting) for setting in settings]
    default = first_default(settings, rollouts)
    named = ({"setting": s} if model is None else s for s in settings)
    points = [{**s, **measured(r)} for s, r in zip(named, rollouts, strict=True)]
    references = []
    for setting in reference_settings(saved, val, settings, default.setting):
        outcome = saved.rollout(val, setting)
        references.append({"setting": with_expectation(setting, outcome), **measured(outcome)})
    return {**kept, KEY: default.to_dict(), "validation": points, "references": references}


def reference_settings(
    saved: SavedMethod,
    val: Cohort,
    settings: Sequence[dict[str, Any]],
    default: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What a model is held against: nothing, everything, protocols, and a static schedule."""
    ends = [s for s in with_ends(list(settings)) if s not in settings]
    ends += protocol_settings(saved.catalog_, default) if ends else []
    if not ends or not saved.method.shares_predictor or saved.name == "static":
        return ends
    cost = saved.rollout(val, default).cost
    slots = schedule_of_cost(saved.policy(default), val, cost, saved.seed)
    if not slots.any():
        return ends
    return [*ends, plan_setting("static", slots, saved.catalog_, default)]


def schedule_of_cost(policy: Policy, val: Cohort, cost: float, seed: int) -> NDArray[np.bool_]:
    """The greedy schedule, `(L, M)`, whose mean cost comes closest; the policy only predicts."""
    blocks = slot_blocks(val.catalog.open_slots)
    path = greedy_path(policy, val, blocks, seed=seed, options=_SHORT)  # type: ignore[arg-type]
    return np.asarray(path.plans[int(np.abs(path.costs - cost).argmin())])


def measured(rollout: Rollout) -> dict[str, Any]:
    """Cost and metrics of a roll-out, each with its 95 % interval over subjects."""
    found = summarize(rollout, per_time=False)
    out = {name: found[name] for name in MEASURES}
    return {**out, "intervals": intervals(rollout)}


def intervals(rollout: Rollout, names: Sequence[str] = BOUNDED) -> dict[str, list[float]]:
    """95 % intervals of the cost and of some metrics; empty for a single subject."""
    if len(np.unique(rollout.units)) < 2:
        return {}
    out: dict[str, list[float]] = {}
    for name in names:
        bands = bootstrap_bands([rollout], name)
        out["cost"] = [float(bands.cost_low[0]), float(bands.cost_high[0])]
        out[name] = [float(bands.quality_low[0]), float(bands.quality_high[0])]
    return out
