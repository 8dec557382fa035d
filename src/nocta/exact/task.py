"""Finite longitudinal tasks: a hidden Markov chain, its features and its labels.

Everything else in `nocta.exact` works from a `FiniteTask`. `synthetic_task` is the paper's digit
and counter task (section 4.1) with its knobs exposed, so that variants can be sampled and solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FiniteTask:
    """A hidden Markov chain with categorical features, one label per time and a cost per feature.

    The label at a time is either the running sum of `increments` over the states visited so far
    (this time included), or a function of the present state, `state_labels`: give exactly one.
    To model a random increment, make its cause part of the state.

    Args:
        initial: `(n_states,)` probabilities of the first state.
        transition: `(n_states, n_states)`, or one per step `(horizon - 1, n_states, n_states)`.
        emissions: Per feature `(n_states, n_values)` probabilities of each value, or one table per
            time `(horizon, n_states, n_values)`. Value `j` is recorded as the number `j`.
        costs: `(n_features,)`, or one row per time `(horizon, n_features)`.
        horizon: Number of times (`L`).
        n_classes: Number of labels; labels are `0 .. n_classes - 1`.
        increments: `(n_states,)` whole numbers, none negative.
        state_labels: `(n_states,)` labels.
        feature_names: One name per feature; `x0, x1, ...` when left out.

    Example:
        >>> task = synthetic_task()
        >>> task.n_states, task.n_features, task.n_classes
        (9, 2, 21)
        >>> values, labels = task.sample(5, np.random.default_rng(0))
        >>> values.shape, labels.shape
        ((5, 10, 2), (5, 10))
    """

    initial: FloatArray
    transition: FloatArray
    emissions: tuple[FloatArray, ...]
    costs: FloatArray
    horizon: int
    n_classes: int
    increments: IntArray | None = None
    state_labels: IntArray | None = None
    feature_names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("initial", np.asarray(self.initial, dtype=np.float64))
        put("transition", np.asarray(self.transition, dtype=np.float64))
        put("emissions", tuple(np.asarray(e, dtype=np.float64) for e in self.emissions))
        put("costs", np.asarray(self.costs, dtype=np.float64))
        for name in ("increments", "state_labels"):
            if getattr(self, name) is not None:
                put(name, np.asarray(getattr(self, name), dtype=np.int64))
        if not self.feature_names:
            put("feature_names", tuple(f"x{m}" for m in range(len(self.emissions))))
        problems = _shape_problems(self) or _value_problems(self)
        if problems:
            raise ValueError("This is not a finite task: " + "; ".join(problems) + ".")

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_features(self) -> int:
        return len(self.emissions)

    @property
    def n_sums(self) -> int:
        """Number of values the running sum can take up to the horizon; 1 without a sum."""
        return _largest_sum(self) + 1

    def transition_at(self, time: int) -> FloatArray:
        """`(n_states, n_states)` probabilities of moving from `time` to `time + 1`."""
        return self.transition if self.transition.ndim == 2 else self.transition[time]

    def emission_at(self, feature: int, time: int) -> FloatArray:
        """`(n_states, n_values)` probabilities of the values of `feature` at `time`."""
        table = self.emissions[feature]
        return table if table.ndim == 2 else table[time]

    def cost_table(self) -> FloatArray:
        """`(horizon, n_features)` costs (`c^{m,t}`)."""
        return np.broadcast_to(self.costs, (self.horizon, self.n_features)).copy()

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Draw values `(n, horizon, n_features)` and labels `(n, horizon)` of `n` subjects."""
        values = np.empty((n, self.horizon, self.n_features))
        states = np.empty((n, self.horizon), dtype=np.int64)
        for t in range(self.horizon):
            if t == 0:
                odds = np.broadcast_to(self.initial, (n, self.n_states))
            else:
                odds = self.transition_at(t - 1)[states[:, t - 1]]
            states[:, t] = _draw(odds, rng)
            for m in range(self.n_features):
                values[:, t, m] = _draw(self.emission_at(m, t)[states[:, t]], rng)
        if self.increments is not None:
            return values, self.increments[states].cumsum(axis=1)
        assert self.state_labels is not None
        return values, self.state_labels[states]


def synthetic_task(
    n_digits: int = 3,
    n_starts: int = 3,
    horizon: int = 10,
    costs: ArrayLike = (1.0, 1.0),
    n_useless: int = 0,
    useless_cost: float = 1.0,
    n_classes: int | None = None,
    starts: Sequence[int] | None = None,
) -> FiniteTask:
    """The paper's task: add up the digits shown while the counter reads zero.

    Features are digit, counter, then the useless ones.

    Args:
        n_digits: Digits are uniform on `0 .. n_digits - 1`.
        n_starts: Countdowns start uniformly on `0 .. n_starts - 1`.
        horizon: Number of times.
        costs: Costs of digit and counter, `(2,)` or `(horizon, 2)`.
        n_useless: Further features that are pure noise, uniform over the digits.
        useless_cost: Cost of each of them.
        n_classes: Number of labels; by default every possible sum (21 in the paper).
        starts: Countdowns start uniformly on these numbers instead.
    """
    begins = list(range(n_starts) if starts is None else starts)
    n_counters = max(begins) + 1
    first = np.isin(np.arange(n_counters), begins) / len(set(begins))
    counter, digit = np.divmod(np.arange(n_counters * n_digits), n_digits)
    countdown = np.eye(n_counters, k=-1)
    countdown[0] = first
    noise = np.full((n_counters * n_digits, n_digits), 1.0 / n_digits)
    base = np.asarray(costs, dtype=np.float64)
    extra = np.full((*base.shape[:-1], n_useless), float(useless_cost))
    return FiniteTask(
        initial=np.kron(first, np.full(n_digits, 1.0 / n_digits)),
        transition=np.kron(countdown, np.full((n_digits, n_digits), 1.0 / n_digits)),
        emissions=(np.eye(n_digits)[digit], np.eye(n_counters)[counter], *[noise] * n_useless),
        costs=np.concatenate([base, extra], axis=-1),
        horizon=horizon,
        n_classes=(n_digits - 1) * horizon + 1 if n_classes is None else n_classes,
        increments=np.where(counter == 0, digit, 0),
        feature_names=("digit", "counter", *(f"useless{i}" for i in range(n_useless))),
    )


def _draw(odds: FloatArray, rng: np.random.Generator) -> IntArray:
    """One category per row of `odds`, `(n, n_categories)`."""
    edges = odds.cumsum(axis=1)[:, :-1]
    return np.asarray((rng.random((len(odds), 1)) >= edges).sum(axis=1))


def _shape_problems(task: FiniteTask) -> list[str]:
    s, horizon, m = task.initial.size, task.horizon, len(task.emissions)
    found: list[str] = []

    def expect(name: str, shape: tuple[int, ...], allowed: Sequence[tuple[int, ...]]) -> None:
        if shape not in allowed:
            wanted = " or ".join(str(a) for a in allowed)
            found.append(f"{name} has shape {shape}, expected {wanted}")

    if horizon < 1:
        found.append(f"horizon is {horizon}, expected at least 1")
    expect("initial", task.initial.shape, [(s,)])
    expect("transition", task.transition.shape, [(s, s), (horizon - 1, s, s)])
    for i, table in enumerate(task.emissions):
        k = table.shape[-1] if table.ndim else 0
        expect(f"emissions[{i}]", table.shape, [(s, k), (horizon, s, k)])
    expect("costs", task.costs.shape, [(m,), (horizon, m)])
    if (task.increments is None) == (task.state_labels is None):
        found.append("give exactly one of increments and state_labels")
    for name in ("increments", "state_labels"):
        rule = getattr(task, name)
        if rule is not None:
            expect(name, rule.shape, [(s,)])
    if len(task.feature_names) != m:
        found.append(f"there are {len(task.feature_names)} feature_names for {m} features")
    return found


def _value_problems(task: FiniteTask) -> list[str]:
    found: list[str] = []
    tables = {"initial": task.initial, "transition": task.transition}
    tables |= {f"emissions[{i}]": table for i, table in enumerate(task.emissions)}
    for name, table in tables.items():
        if not np.all(table >= 0) or not np.allclose(table.sum(axis=-1), 1.0):
            found.append(f"{name} is not made of probabilities that add up to 1")
    if not np.all(np.isfinite(task.costs)) or np.any(task.costs < 0):
        found.append("costs must be finite and not negative")
    if task.increments is not None and np.any(task.increments < 0):
        return [*found, "increments must not be negative"]
    labels = [_largest_sum(task)] if task.state_labels is None else task.state_labels
    if np.min(labels) < 0 or np.max(labels) >= task.n_classes:
        found.append(
            f"labels reach from {np.min(labels)} to {np.max(labels)}, "
            f"outside the {task.n_classes} declared classes"
        )
    return found


def _largest_sum(task: FiniteTask) -> int:
    """The largest running sum that has positive probability at the horizon."""
    if task.increments is None:
        return 0
    reached = np.where(task.initial > 0, task.increments, -1)
    for t in range(task.horizon - 1):
        moves = (task.transition_at(t) > 0) & (reached >= 0)[:, None]
        best = np.where(moves, reached[:, None], -1).max(axis=0)
        reached = np.where(best >= 0, best + task.increments, -1)
    return int(reached.max())
