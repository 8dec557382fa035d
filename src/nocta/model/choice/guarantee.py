"""A promise about new subjects: the cheapest point whose risk is controlled (Learn-then-Test)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nocta.core.currency import money
from nocta.core.rollout import Rollout
from nocta.evaluation.detection import Positive
from nocta.evaluation.risk import RISKS, Control, UnitRisk, controlled, subjects_needed
from nocta.model.choice.goals import Goal, Measured, Verdict


@dataclass(frozen=True, kw_only=True)
class Promise(Goal):
    """The cheapest point whose true risk is at most a limit, with a given probability.

    The probability is over the draw of the subjects that choose. It holds for subjects of the same
    population that neither the fit nor the list of points has seen.

    Args:
        risk: A name of `nocta.evaluation.risk.RISKS`.
        limit: What the true risk may be at most.
        confidence: Probability with which the promise is kept.
        control: `"fixed-sequence"` tests from the most expensive point down and stops at the first
            failure; `"bonferroni"` tests every point at a smaller level.
        positive: What counts as positive, and from which probability it is predicted.
    """

    kind = "risk"
    risk: str
    limit: float
    confidence: float = 0.9
    control: Control = "fixed-sequence"
    positive: Positive = field(default_factory=Positive)

    def measure(self, rollouts: Sequence[Rollout]) -> Measured:
        """The observed risk; the interval is a bootstrap and no part of the promise."""
        found = self._risks(rollouts)
        ends = np.array([_interval(risk) for risk in found])
        return Measured(self.risk, np.array([r.mean for r in found]), ends[:, 0], ends[:, 1])

    def judge(self, rollouts: Sequence[Rollout], measured: Measured) -> Verdict:
        risks = self._risks(rollouts)
        kept = self.promised([risk.p_value(self.limit) for risk in risks])
        wanted = f"{self.risk} of at most {self.limit:.3g} can be promised"
        wanted += f" with {self.confidence:.0%} confidence"
        if not kept.any():
            return Verdict(None, f"no point's {wanted}: {self._advice(rollouts, risks)}")
        i = int(np.flatnonzero(kept)[0])
        return Verdict(
            i,
            f"the cheapest point whose {wanted} ({self._test(risks[i])}, on "
            f"{len(risks[i].values)} subjects)",
        )

    def promised(self, p_values: Sequence[float]) -> NDArray[np.bool_]:
        """Which points may be offered, cheapest first as given, `(k,)`."""
        return controlled(p_values[::-1], 1 - self.confidence, self.control)[::-1]

    def _risks(self, rollouts: Sequence[Rollout]) -> list[UnitRisk]:
        return [RISKS[self.risk](rollout, self.positive) for rollout in rollouts]

    def _test(self, risk: UnitRisk) -> str:
        test = "exact binomial tests" if risk.is_binary else "Hoeffding-Bentkus tests"
        if self.control == "bonferroni":
            return f"{test}, Bonferroni over all points"
        return f"{test} in a fixed sequence, from the most expensive point down"

    def _advice(self, rollouts: Sequence[Rollout], risks: Sequence[UnitRisk]) -> str:
        """What would be needed."""
        n = len(risks[0].values)
        if not n:
            return "no subject here has a visit that counts"
        best = int(np.argmin([risk.mean for risk in risks]))
        seen = f"{risks[best].mean:.3g}"
        level = (1 - self.confidence) / (len(risks) if self.control == "bonferroni" else 1)
        binary = all(risk.is_binary for risk in risks)
        needed = subjects_needed(risks[best].mean, self.limit, level, binary=binary)
        if needed is None:
            return f"the lowest seen is {seen}, so more subjects would not help"
        cost = money(rollouts[best].cost, self.currency)
        if needed <= n:
            return (
                f"the point that costs {cost} could, but a more expensive one fails first; "
                f"use bonferroni control, or ask for less"
            )
        return (
            f"the lowest seen is {seen}, at a cost of {cost}; with this on about {needed} subjects "
            f"that count it could be promised, and there are {n}"
        )


def _interval(risk: UnitRisk, n_resamples: int = 200) -> tuple[float, float]:
    n = len(risk.values)
    if not n:
        return float("nan"), float("nan")
    draws = np.random.default_rng(0).integers(n, size=(n_resamples, n))
    low, high = np.quantile(risk.values[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)
