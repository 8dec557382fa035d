"""Choose an operating point in the user's terms, from roll-outs on subjects the fit never used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nocta.core.currency import money
from nocta.core.errors import ConfigError
from nocta.core.metrics import check_metric
from nocta.core.rollout import Rollout
from nocta.evaluation.bootstrap import bootstrap_bands
from nocta.evaluation.detection import Positive
from nocta.evaluation.risk import check_risk
from nocta.model.choice.default import DefaultPoint
from nocta.model.choice.goals import AtMostCost, CostPerCase, Goal, Measured, Sensitivity, Within
from nocta.model.choice.guarantee import Promise

#: What may be asked, one at a time: the argument and its flag.
ASKS = {
    "sensitivity": "--sensitivity",
    "at_most_cost": "--at-most-cost",
    "cost_per_case": "--cost-per-case",
    "within": "--within",
    "risk": "--risk",
}


@dataclass(frozen=True)
class Choice:
    """The outcome of choosing.

    Args:
        setting: The chosen operating point; `None` if none does what was asked.
        reason: Why this one, or why none, in a sentence without its end.
        measured: What was looked at, for every candidate.
        cost: Mean cost of every candidate with its interval.
        settings: The candidates, cheapest first.
        index: Position of the chosen one.
        threshold: Probability from which a visit is called positive, if that was chosen too.
        n_subjects: Subjects that chose.
        currency: Of the costs.
    """

    setting: dict[str, Any] | None
    reason: str
    measured: Measured
    cost: Measured
    settings: tuple[dict[str, Any], ...]
    index: int | None
    threshold: float | None
    n_subjects: int
    currency: str = ""

    @property
    def point(self) -> DefaultPoint:
        """The chosen point as the default of a model."""
        if self.setting is None:
            raise ConfigError(f"Nothing was chosen: {self.reason}. The default stays as it was.")
        return DefaultPoint(self.setting, self.reason)

    def __str__(self) -> str:
        if self.index is None:
            return f"Nothing was chosen: {self.reason}."
        i = self.index
        cost = money(float(self.cost.values[i]), self.currency)
        ends = " to ".join(
            money(float(x[i]), self.currency) for x in (self.cost.low, self.cost.high)
        )
        said = f"{self.reason[0].upper()}{self.reason[1:]}: {cost} a subject (95 %: {ends})"
        value, low, high = (
            float(x[i]) for x in (self.measured.values, self.measured.low, self.measured.high)
        )
        if self.measured.name != "cost" and np.isfinite(value):
            said += f", {self.measured.name} {value:.3g} (95 %: {between(low, high)})"
        if self.threshold is not None:
            said += f", calling a visit positive from a probability of {self.threshold:.3g}"
        return f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a model's record."""
        ends = {
            m.name: {"value": _at(m.values, self.index), "low": _at(m.low, self.index)}
            | {"high": _at(m.high, self.index)}
            for m in (self.cost, self.measured)
        }
        return {
            "setting": self.setting,
            "reason": self.reason,
            "measured": ends,
            "threshold": self.threshold,
            "n_subjects": self.n_subjects,
        }


def between(low: float, high: float) -> str:
    """The ends of an interval.

    Example:
        >>> between(0.714, 1.0), between(198.0, float("inf"))
        ('0.714 to 1', '198 or more')
    """
    if not np.isfinite(high):
        return f"{low:.3g} or more" if np.isfinite(low) else "unknown"
    return f"{low:.3g} to {high:.3g}"


def _at(values: Any, index: int | None) -> float | None:
    found = float("nan") if index is None else float(values[index])
    return found if np.isfinite(found) else None


def make_goal(
    classes: Sequence[str],
    *,
    sensitivity: float | None = None,
    specificity: float | None = None,
    at_most_cost: float | None = None,
    cost_per_case: float | None = None,
    within: float | None = None,
    metric: str = "ap",
    risk: str | None = None,
    at_most: float | None = None,
    confidence: float = 0.9,
    control: str = "fixed-sequence",
    positive: Sequence[str] | None = None,
    threshold: float = 0.5,
    currency: str = "",
) -> Goal:
    """The one goal that was asked for; see `NOCTA.choose`."""
    asked = {
        "sensitivity": sensitivity,
        "at_most_cost": at_most_cost,
        "cost_per_case": cost_per_case,
        "within": within,
        "risk": risk,
    }
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(ASKS[name] for name in given) or "none of them"
        raise ConfigError(f"Ask for one of {', '.join(ASKS.values())}; found {found}.")
    shares = {"sensitivity": sensitivity, "specificity": specificity, "within": within}
    shares |= {"at-most": at_most, "confidence": confidence, "threshold": threshold}
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise ConfigError(f"{name} is {share:g}; use a share from 0 to 1, such as 0.9.")
    for name, limit in (("at-most-cost", at_most_cost), ("cost-per-case", cost_per_case)):
        if limit is not None and not limit >= 0:
            raise ConfigError(f"{name} is {limit:g}; use a number of at least 0.")
    if at_most_cost is not None:
        return AtMostCost(limit=at_most_cost, currency=currency)
    if within is not None:
        return Within(share=within, metric=check_metric(metric), currency=currency)
    if risk is not None:
        return _promise(classes, risk, at_most, confidence, control, positive, threshold, currency)
    called = Positive.named(positive, classes)
    level = 0.8 if specificity is None else specificity
    if sensitivity is not None:
        return Sensitivity(
            at_least=sensitivity, specificity=level, positive=called, currency=currency
        )
    assert cost_per_case is not None
    return CostPerCase(limit=cost_per_case, specificity=level, positive=called, currency=currency)


def _promise(
    classes: Sequence[str],
    risk: str,
    at_most: float | None,
    confidence: float,
    control: str,
    positive: Sequence[str] | None,
    threshold: float,
    currency: str,
) -> Promise:
    if at_most is None or not 0 < at_most < 1:
        raise ConfigError("--risk needs --at-most: what the risk may be, such as 0.10.")
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is {confidence:g}; nothing is certain, use 0.9 or so.")
    if control not in ("fixed-sequence", "bonferroni"):
        raise ConfigError(f"control is '{control}'; use 'fixed-sequence' or 'bonferroni'.")
    classless = check_risk(risk) == "error"
    called = Positive() if classless else Positive.named(positive, classes, threshold)
    return Promise(
        risk=risk,
        limit=at_most,
        confidence=confidence,
        control=control,  # type: ignore[arg-type]  # checked above
        positive=called,
        currency=currency,
    )


def choose_point(
    settings: Sequence[Mapping[str, Any]], rollouts: Sequence[Rollout], goal: Goal
) -> Choice:
    """Take one of some operating points; their order decides which is cheaper."""
    measured = goal.measure(rollouts)
    verdict = goal.judge(rollouts, measured)
    bands = bootstrap_bands(rollouts, "accuracy")
    index = verdict.index
    return Choice(
        setting=None if index is None else dict(settings[index]),
        reason=verdict.reason,
        measured=measured,
        cost=Measured("cost", bands.costs, bands.cost_low, bands.cost_high),
        settings=tuple(map(dict, settings)),
        index=index,
        threshold=verdict.threshold,
        n_subjects=len(rollouts[0]),
        currency=goal.currency,
    )
