"""The recommended operating point of a comparison: the default of a method, as validation chose it.

It is the rule of `nocta fit`: the cheapest point within one standard error of the best. No test
subject has a say in it, so what is shown at that point is not the best of several draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.metrics import LOWER_IS_BETTER
from nocta.evaluation.one_error import cheapest_within_one_error
from nocta.methods.contract import Method
from nocta.methods.references import policy_at, reference_name
from nocta.model.choice.default import RULE, DefaultPoint
from nocta.runs.operating_points import roll_out
from nocta.runs.record import JobRecord, PointDetails, Recommended
from nocta.runs.setup import Setup

#: Standard errors from the middle to the end of a 95 % interval.
_HALF_BAND = 1.96


def chosen_on_validation(
    method: Method, settings: Sequence[dict[str, Any]], val: Cohort, setup: Setup, seed: int
) -> Recommended:
    """The default of a fitted method among its settings; reference points are not candidates."""
    own = [i for i, setting in enumerate(settings) if reference_name(setting) is None]
    if len(own) < 2:
        return Recommended(own[0] if own else 0, "the only operating point")
    rollouts = [
        roll_out(policy_at(method, settings[i]), settings[i], val, setup, seed) for i in own
    ]
    return Recommended(own[cheapest_within_one_error(rollouts)], RULE)


def default_among(
    settings: Sequence[Mapping[str, Any]], default: DefaultPoint
) -> Recommended | None:
    """The default of a saved model among these settings, or `None`; of budgets the largest."""
    same = [
        i
        for i, setting in enumerate(settings)
        if {k: v for k, v in setting.items() if k != "budget"} == default.setting
    ]
    if not same:
        return None
    return Recommended(max(same, key=lambda i: settings[i].get("budget", math.inf)), default.reason)


def shown_index(record: JobRecord, metric: str) -> int:
    """Position of the point at which a job is shown in detail."""
    if record.recommended is not None:
        return record.recommended.index
    return best_looking_index(record.details, metric)


def best_looking_index(details: Sequence[PointDetails], metric: str) -> int:
    """The cheapest point within one standard error of the best, of at least one, as judged here.

    Only for results in which no default is known, such as those of earlier versions: it peeks.
    """
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    quality = {i: sign * float(getattr(d, metric)) for i, d in enumerate(details)}
    known = {i: value for i, value in quality.items() if not math.isnan(value)}
    if not known:
        return len(details) // 2
    best = max(known, key=lambda i: known[i])
    low, high = details[best].band or (0.0, 0.0)
    error = 0.0 if math.isnan(high - low) else (high - low) / (2 * _HALF_BAND)
    enough = [i for i, value in known.items() if value >= known[best] - error]
    return min(enough, key=lambda i: details[i].cost)
