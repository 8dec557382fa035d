"""Risks that can be promised: p-values for "the true risk is above the limit", point by point.

Learn-then-Test (Angelopoulos et al., 2021): the operating points are fixed before these subjects
are looked at; each is tested on them, and only points whose test is passed are offered. Subjects
(or groups of subjects) are exchangeable, visits are not, so every subject counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.rollout import Rollout
from nocta.evaluation.detection import Positive, scores_of

Floats = NDArray[np.float64]
Control = Literal["fixed-sequence", "bonferroni"]
_TOLERANCE = 1e-12
#: Beyond this number of subjects, "more subjects" is no advice.
_MOST_SUBJECTS = 10_000_000


@dataclass(frozen=True)
class UnitRisk:
    """The loss of every unit that has one, `(u,)`, between 0 and 1."""

    values: Floats

    @classmethod
    def of(cls, rollout: Rollout, wrong: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Self:
        """The share of the counted visits `(n, L)` of each unit that are wrong."""
        sums = np.bincount(rollout.units, weights=(wrong & counted).sum(axis=1))
        counts = np.bincount(rollout.units, weights=counted.sum(axis=1))
        return cls(np.asarray(sums[counts > 0] / counts[counts > 0], dtype=float))

    @property
    def mean(self) -> float:
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def is_binary(self) -> bool:
        return bool(np.isin(self.values, (0.0, 1.0)).all())

    def p_value(self, limit: float) -> float:
        """p-value of a true risk above `limit`: exact if every loss is 0 or 1."""
        n = len(self.values)
        if self.is_binary:
            return binomial_p_value(int(self.values.sum()), n, limit)
        return hoeffding_bentkus_p_value(self.mean, n, limit)


def _error(rollout: Rollout, positive: Positive) -> UnitRisk:
    wrong = rollout.probabilities.argmax(axis=2) != rollout.labels
    return UnitRisk.of(rollout, wrong, rollout.labels >= 0)


def _miss(rollout: Rollout, positive: Positive) -> UnitRisk:
    truth, scores, labeled = scores_of(rollout, positive)
    return UnitRisk.of(rollout, scores < positive.threshold, labeled & truth)


def _false_alarm(rollout: Rollout, positive: Positive) -> UnitRisk:
    truth, scores, labeled = scores_of(rollout, positive)
    return UnitRisk.of(rollout, scores >= positive.threshold, labeled & ~truth)


#: By name, from a roll-out to the loss of every unit. `miss-rate`: share of a subject's positive
#: visits that are not predicted positive; only subjects with such visits count.
RISKS: dict[str, Callable[[Rollout, Positive], UnitRisk]] = {
    "miss-rate": _miss,
    "false-alarm-rate": _false_alarm,
    "error": _error,
}


def check_risk(name: str) -> str:
    """Return the name of a risk if it exists; raise an error that lists all otherwise."""
    if name not in RISKS:
        hint = did_you_mean(name, RISKS)
        raise ConfigError(f"There is no risk '{name}'.{hint} Known: {', '.join(RISKS)}.")
    return name


def binomial_p_value(n_wrong: int, n: int, limit: float) -> float:
    """Chance of at most `n_wrong` of `n` if the true risk were `limit`; exact.

    Example:
        >>> round(binomial_p_value(0, 22, 0.1), 4)
        0.0985
    """
    from scipy.stats import binom

    return float(binom.cdf(n_wrong, n, limit)) if n else 1.0


def hoeffding_bentkus_p_value(mean: float, n: int, limit: float) -> float:
    """Upper bound of the p-value for losses between 0 and 1 with this mean over `n` subjects.

    The smaller of Hoeffding's bound (in its relative-entropy form) and Bentkus'.

    Example:
        >>> round(hoeffding_bentkus_p_value(0.05, 100, 0.1), 4)
        0.1565
    """
    from scipy.stats import binom

    if not n or np.isnan(mean):
        return 1.0
    low = min(mean, limit)
    hoeffding = np.exp(-n * (_entropy_term(low, limit) + _entropy_term(1 - low, 1 - limit)))
    bentkus = np.e * binom.cdf(np.ceil(n * mean - _TOLERANCE), n, limit)
    return float(min(1.0, hoeffding, bentkus))


def _entropy_term(a: float, b: float) -> float:
    return 0.0 if a <= 0 else float(a * np.log(a / b)) if b > 0 else np.inf


def controlled(p_values: Sequence[float], level: float, control: Control) -> NDArray[np.bool_]:
    """Which points keep their promise, all at once with probability `1 - level`, `(k,)`.

    Args:
        p_values: One per point, in the order in which they are tested.
        level: Accepted chance of a broken promise.
        control: `"fixed-sequence"` tests one after the other at the full level and stops at the
            first failure; `"bonferroni"` tests all at `level / k`.

    Example:
        >>> controlled([0.01, 0.08, 0.2, 0.01], 0.1, "fixed-sequence").tolist()
        [True, True, False, False]
        >>> controlled([0.01, 0.08, 0.2, 0.01], 0.1, "bonferroni").tolist()
        [True, False, False, True]
    """
    found = np.asarray(p_values, dtype=float)
    if control == "bonferroni":
        return np.asarray(found <= level / max(len(found), 1))
    return np.asarray(np.cumsum(found > level) == 0)


def subjects_needed(mean: float, limit: float, level: float, *, binary: bool) -> int | None:
    """How many subjects with the same observed risk would pass the test; `None` if no number."""
    if not mean < limit:
        return None

    def passes(n: int) -> bool:
        if binary:
            return binomial_p_value(int(np.floor(n * mean + _TOLERANCE)), n, limit) <= level
        return hoeffding_bentkus_p_value(mean, n, limit) <= level

    high = 1
    while not passes(high):
        high *= 2
        if high > _MOST_SUBJECTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
