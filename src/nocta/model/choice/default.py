"""The default operating point of a model: what acts if nobody says a cost weight.

`nocta fit` finds it by one rule and saves it in the model's record; `nocta choose` replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nocta.core.errors import ConfigError
from nocta.core.rollout import Rollout
from nocta.evaluation.one_error import cheapest_within_one_error

#: How `nocta fit` finds it.
RULE = "the cheapest point within one standard error of the best on validation"
#: The entry of a model's record.
KEY = "default"


@dataclass(frozen=True)
class DefaultPoint:
    """A setting, and why it is the default.

    Args:
        setting: Knob values, such as `{"cost_weight": 0.01}`.
        reason: Completes "It is ...".
        note: What the user should know, if the folder does not say which point is the default.
    """

    setting: dict[str, Any]
    reason: str
    note: str = ""

    @property
    def cost_weight(self) -> float:
        """The cost weight of a NOCTA model."""
        return float(self.setting["cost_weight"])

    def to_dict(self) -> dict[str, Any]:
        return {"setting": self.setting, "reason": self.reason}


def first_default(settings: Sequence[dict[str, Any]], rollouts: Sequence[Rollout]) -> DefaultPoint:
    """The default point of a model that was just fitted, from its roll-outs on validation."""
    return DefaultPoint(dict(settings[cheapest_within_one_error(rollouts)]), RULE)


def saved_default(record: Mapping[str, Any]) -> DefaultPoint:
    """The default point that a model's record holds.

    Folders of earlier versions hold none; there it is the middle one of the points they keep.
    """
    if KEY in record:
        found = record[KEY]
        return DefaultPoint(dict(found["setting"]), found["reason"])
    kept = [{"cost_weight": weight} for weight in record.get("cost_weights", [])]
    kept = [dict(setting) for setting in record.get("settings", kept)]
    if not kept:
        raise ConfigError(
            "This model has no default operating point; say a cost weight (cost_weight=..., or "
            "--cost-weight), or let it choose one on validation subjects: model.choose(val, "
            "within=0.01)."
        )
    # Cheapest first: from an even number, the cheaper of the two in the middle.
    middle = kept[(len(kept) - 1) // 2]
    return DefaultPoint(
        middle,
        f"the middle one of the {len(kept)} saved with the model",
        "An earlier version saved this model without a default operating point; `nocta choose` "
        "sets one.",
    )
