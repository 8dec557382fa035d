"""The recommended operating point: the cheapest that is as good as the best.

"As good" means within one standard error of the best, by the headline metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.runs.record import PointDetails

#: Standard errors from the middle to the end of a 95 % interval.
_HALF_BAND = 1.96


def recommended_index(details: Sequence[PointDetails], metric: str) -> int:
    """Position of the cheapest point within one standard error of the best, of at least one."""
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
