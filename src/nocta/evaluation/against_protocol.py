"""One sentence that holds a fixed schedule, such as the present protocol, against a curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nocta.core.currency import money
from nocta.evaluation.frontier import Frontier

_NAMES = {
    "ap": "AP",
    "roc_auc": "ROC AUC",
    "accuracy": "accuracy",
    "cross_entropy": "cross-entropy",
}
_TOLERANCE = 1e-9


def protocol_sentence(
    curve: Frontier,
    cost: float,
    quality: float,
    *,
    currency: str = "",
    name: str = "your present protocol",
) -> str:
    """What the protocol costs and reaches, and what operating points do for as much of either.

    Only points that exist are named; nothing is interpolated.

    Args:
        curve: The operating points of a method, on the same subjects as the protocol.
        cost: Mean cost per subject of the protocol.
        quality: What it reaches, in the metric of the curve.
        currency: Unit of the costs.
        name: What the schedule is called at the beginning of the sentence.

    Example:
        >>> curve = Frontier([120.0, 300.0], [0.81, 0.85], metric="ap")
        >>> protocol_sentence(curve, 310.0, 0.81, currency="$")
        'Your present protocol costs $310 and reaches AP .81; for the same money .85, or .81 for $120.'
    """  # noqa: E501
    sign = 1.0 if curve.higher_is_better else -1.0
    head = (
        f"{name[:1].upper()}{name[1:]} costs {_amount(cost, currency)} and reaches "
        f"{_NAMES.get(curve.metric, curve.metric)} "
    )
    gains = sign * (curve.qualities - quality)
    affordable = np.flatnonzero(curve.costs <= cost + _TOLERANCE)
    as_good = np.flatnonzero((gains >= -_TOLERANCE) & (curve.costs < cost - _TOLERANCE))
    best = max(affordable.tolist(), key=lambda i: gains[i], default=None)
    cheapest = min(as_good.tolist(), key=lambda i: curve.costs[i], default=None)
    shown = [quality, *(curve.qualities[i] for i in (best, cheapest) if i is not None)]
    text = _distinct(shown)
    said = []
    if best is not None and best != cheapest and gains[best] > _TOLERANCE:
        said.append(f"for the same money {text(curve.qualities[best])}")
    if cheapest is not None and curve.costs[cheapest] < cost - _TOLERANCE:
        price = _amount(float(curve.costs[cheapest]), currency)
        said.append(f"{text(curve.qualities[cheapest])} for {price}")
    rest = ", or ".join(said) or "no operating point is better for the same money"
    return f"{head}{text(quality)}; {rest}."


def _amount(cost: float, currency: str) -> str:
    """Whole units from 100 on; cents matter below."""
    return money(cost, currency) if cost < 100 else money(round(cost), currency).replace(".00", "")


class _distinct:
    """Writes numbers with as few digits as keep different ones apart, two to four."""

    def __init__(self, values: Sequence[float]) -> None:
        different = len(np.unique(np.round(values, 4)))
        digits = (d for d in (2, 3) if len(np.unique(np.round(values, d))) == different)
        self.digits = next(digits, 4)

    def __call__(self, value: float) -> str:
        text = f"{value:.{self.digits}f}"
        return text.removeprefix("0") if text.startswith("0.") else text
