"""Operating points in a few words, for tables in the terminal and on the card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nocta.core.currency import money
from nocta.methods.references import PLAN, reference_name


def point_name(setting: Mapping[str, Any]) -> str:
    """The knob value, or the name of a reference point.

    Example:
        >>> point_name({"cost_weight": 0.012345}), point_name({"n_slots": 3})
        ('0.01235', '{"n_slots": 3}')
        >>> point_name({"acquire": "nothing", "at": {}})
        'nothing'
    """
    name = reference_name(setting)
    if name is not None:
        return f"{name} schedule" if setting["acquire"] == PLAN else name
    if set(setting) - {"budget"} == {"cost_weight"}:
        return f"{setting['cost_weight']:.4g}"
    return json.dumps({k: v for k, v in setting.items() if k != "budget"} or dict(setting))


def with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """A measure with three digits, and its interval with two.

    Example:
        >>> with_interval(0.8123, [0.7512, 0.85]), with_interval(0.8123, None)
        ('0.812 (0.75-0.85)', '0.812')
    """
    if value is None or value != value:
        return ""
    if not interval or any(end is None or end != end for end in interval):
        return f"{value:.3f}"
    return f"{value:.3f} ({interval[0]:.2f}-{interval[1]:.2f})"


def setting_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of a point in a model's record."""
    if "setting" in point:
        return dict(point["setting"])
    return {"cost_weight": point["cost_weight"]}


def rows_in_order(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Points and reference points of a model's record, cheapest first, schedules last."""
    points = [*record["validation"], *record.get("references", [])]

    def place(point: Mapping[str, Any]) -> int:
        setting = setting_of(point)
        name = reference_name(setting)
        return {None: 1, "nothing": 0, "everything": 2}.get(name, 3)

    return sorted(points, key=place)


def point_table(
    record: Mapping[str, Any], currency: str, default: Mapping[str, Any] | None = None
) -> list[tuple[str, ...]]:
    """Name, mean cost, accuracy, AP, ROC AUC and cross-entropy of every point in a record.

    The default point is marked with an asterisk.
    """
    rows = []
    for point in rows_in_order(record):
        setting, ends = setting_of(point), point.get("intervals", {})
        mark = "* " if default is not None and setting == dict(default) else ""
        rows.append(
            (
                mark + point_name(setting),
                money(point["cost"], currency),
                *(
                    with_interval(point[name], ends.get(name) if name == "ap" else None)
                    for name in ("accuracy", "ap", "roc_auc", "cross_entropy")
                ),
            )
        )
    return rows


def default_sentence(
    setting: Mapping[str, Any], reason: str, record: Mapping[str, Any], currency: str
) -> str:
    """Which point is the default, what it costs on validation, and why."""
    points = [p for p in record.get("validation", []) if setting_of(p) == dict(setting)]
    cost = f", {money(points[0]['cost'], currency)} a subject" if points else ""
    knob = "cost weight " if set(setting) == {"cost_weight"} else ""
    return f"Default operating point: {knob}{point_name(setting)}{cost}: {reason}."
