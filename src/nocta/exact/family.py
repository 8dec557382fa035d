"""A family of countdown tasks to compare methods on: ten drawn at random, and two with a name.

Each is `synthetic_task` with other digits, starts, prices, useless features and horizon. In some of
them one result tells when to look next. No option of any method is tuned on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nocta.exact.task import FiniteTask, synthetic_task

#: The numbered tasks that benchmarks use.
N_TASKS = 10
_DIGIT_COSTS = (0.5, 1.0, 1.5, 2.0)
_COUNTER_COSTS = (0.25, 0.5, 1.0, 1.5)
_USELESS_COSTS = (0.25, 0.5, 1.0)
#: Makes the stream of this family different from that of a cohort with the same seed.
_STREAM = 20_418


@dataclass(frozen=True)
class FamilyMember:
    """The knobs of one task; features are digit, counter, then the useless ones."""

    n_digits: int
    starts: tuple[int, ...]  # countdowns start uniformly on these
    horizon: int
    costs: tuple[float, float]  # of digit and counter
    n_useless: int = 0
    useless_cost: float = 1.0

    @property
    def task(self) -> FiniteTask:
        """The finite task."""
        return synthetic_task(
            n_digits=self.n_digits,
            starts=self.starts,
            horizon=self.horizon,
            costs=self.costs,
            n_useless=self.n_useless,
            useless_cost=self.useless_cost,
        )

    def __str__(self) -> str:
        starts = ", ".join(map(str, self.starts[:-1])) + f" or {self.starts[-1]}"
        digit, counter = self.costs
        useless = ("no useless feature", "a useless feature", "2 useless features")[self.n_useless]
        price = f" (cost {self.useless_cost:g})" if self.n_useless else ""
        return (
            f"{self.n_digits} digits (cost {digit:g}), countdowns from {starts} (cost "
            f"{counter:g}), {useless}{price}, horizon {self.horizon}"
        )


#: Open-loop planning falls far behind on these: the counter's answer tells when to look next.
NAMED_TASKS = {
    "late-starts": FamilyMember(2, (1, 2, 3), 8, (1.0, 0.5)),
    "late-starts-useless": FamilyMember(2, (1, 2, 3), 8, (1.0, 0.5), n_useless=1),
}


def family_member(task: int | str) -> FamilyMember:
    """A task of the family: a number draws it, a name is one of `NAMED_TASKS`.

    Example:
        >>> print(family_member("late-starts"))
        2 digits (cost 1), countdowns from 1, 2 or 3 (cost 0.5), no useless feature, horizon 8
        >>> family_member(0) == family_member(0)
        True
    """
    if isinstance(task, str):
        return NAMED_TASKS[task]
    rng = np.random.default_rng([_STREAM, task])
    n_digits = int(rng.integers(2, 5))
    n_starts = int(rng.integers(2, 4))
    starts = tuple(sorted(rng.choice(5, n_starts, replace=False).tolist()))
    # Beliefs multiply fastest with many digits and countdowns that may start at 0.
    horizon = int(rng.integers(6, 8 if n_digits == 4 else 9))
    costs = float(rng.choice(_DIGIT_COSTS)), float(rng.choice(_COUNTER_COSTS))
    n_useless = int(rng.integers(0, 3))
    return FamilyMember(
        n_digits, starts, horizon, costs, n_useless, float(rng.choice(_USELESS_COSTS))
    )
