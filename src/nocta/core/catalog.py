"""What can be acquired, when, and what it costs.

A `Catalog` is the price list of one study: features (each with one or more columns of the table),
their cost at each visit, the fees shared by a group of features or by a visit, and the free
context. The project computes all costs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.core.conflicts import conflicts
from nocta.core.constraints import Constraints
from nocta.core.errors import BudgetTooSmall, DataError, Problem, did_you_mean, problems_error
from nocta.core.rules import Rules

#: More cannot be told apart from its neighbors in the arithmetic of networks.
_MOST = 1e30


@dataclass(frozen=True)
class Feature:
    """One thing that can be acquired: a test, a scan, a question, a sensor reading.

    Args:
        name: Name of the feature in plans and reports.
        columns: The table columns it reveals; a scan may reveal several at once.
        cost: Cost of one acquisition, or one cost per visit slot (`c^m`, `c^{m,t}`).
        group: Features of one group share a fee per visit, for example a blood draw.
        at: The visit slots at which it can be acquired; `None` means all of them.
    """

    name: str
    columns: tuple[str, ...]
    cost: float | tuple[float, ...] = 1.0
    group: str | None = None
    at: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Catalog:
    """Features, prices and fees over a fixed number of visit slots.

    Args:
        features: What can be acquired, in a fixed order (the feature axis, length `M`).
        n_times: Number of visit slots (`L`).
        context: Names of the free columns known from the start.
        group_fees: Fee charged once per visit if any feature of the group is acquired.
        visit_fee: Fee charged once per visit if any feature is acquired.
        currency: Unit in which costs are shown, for example `"$"`.
        constraints: What every policy must and must not acquire.
        protocols: Fixed schedules to compare with, by name: the slots at which each feature is
            acquired, or `True` for every visit at which it can be.

    Example:
        >>> catalog = Catalog(
        ...     features=(
        ...         Feature("alt", ("alt",), 3.0, group="blood"),
        ...         Feature("ast", ("ast",), 4.0, group="blood"),
        ...     ),
        ...     n_times=2,
        ...     group_fees={"blood": 2.0},
        ... )
        >>> plan = np.array([[True, True], [False, True]])  # both now, `ast` again next visit
        >>> float(catalog.cost_of(plan))
        15.0
    """

    features: tuple[Feature, ...]
    n_times: int
    context: tuple[str, ...] = ()
    group_fees: Mapping[str, float] = field(default_factory=dict)
    visit_fee: float = 0.0
    currency: str = ""
    constraints: Constraints = field(default_factory=Constraints)
    protocols: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = self._problems()
        if self.constraints and not problems:
            problems = conflicts(self.constraints, self.names, self.offered_slots)
        if self.protocols and not problems:
            problems = self._protocol_problems()
        if problems:
            raise problems_error(problems)

        with np.errstate(over="ignore"):
            most = self.price_of_everything
        if not most <= _MOST:
            what = f"All costs and fees add up to {most:g}. Use another unit, so that they add up"
            raise problems_error([Problem(f"{what} to at most {_MOST:g}.", kind="cost")])

    def _problems(self) -> list[Problem]:
        names = [f.name for f in self.features]
        columns = [c for f in self.features for c in f.columns]
        found = [] if names else [Problem("The catalog has no feature; add at least one.")]
        found += [Problem(f"Feature '{n}' is listed twice.") for n in _repeated(names)]
        found += [
            Problem(f"Column '{c}' belongs to two features; give it to one.")
            for c in _repeated(columns)
        ]
        for f in self.features:
            found += self._feature_problems(f)
        return found + self._fee_problems()

    def _fee_problems(self) -> list[Problem]:
        fees = {f"group '{g}'": fee for g, fee in self.group_fees.items()}
        found = [
            Problem(f"The {where} fee is {fee}; a fee is a number of at least 0.", kind="cost")
            for where, fee in {**fees, "visit": self.visit_fee}.items()
            if not np.isfinite(fee) or fee < 0
        ]
        used = {f.group for f in self.features if f.group}
        for g in (g for g in self.group_fees if g not in used):
            what = f"Group '{g}' has a fee but no feature belongs to it."
            found.append(Problem(what + did_you_mean(g, used), kind="cost"))
        return found

    def _feature_problems(self, f: Feature) -> list[Problem]:
        found = []
        who = f"Feature '{f.name}'"
        costs = np.atleast_1d(np.asarray(f.cost, dtype=float))
        if isinstance(f.cost, list | tuple) and costs.size != self.n_times:
            what = f"{who} has {costs.size} costs for {self.n_times} visits"
            found.append(Problem(f"{what}; give one cost or one per visit.", kind="cost"))
        if not np.isfinite(costs).all() or (costs < 0).any():
            what = f"{who} has cost {f.cost}; a cost is a number of at least 0."
            found.append(Problem(what, kind="cost"))
        outside = [t for t in f.at or () if not 0 <= t < self.n_times]
        if outside:
            what = f"{who} is open at visit {outside[0]}, but visits run from 0 to"
            found.append(Problem(f"{what} {self.n_times - 1}."))
        if not f.columns:
            found.append(Problem(f"{who} has no column."))
        return found

    def _protocol_problems(self) -> list[Problem]:
        found = []
        for name, table in self.protocols.items():
            where = f"protocols.{name}"
            for feature, visits in table.items():
                if feature not in self.names:
                    hint = did_you_mean(feature, self.names)
                    found.append(Problem(f"'{feature}' is not a feature.{hint}", where))
                    continue
                open_at = np.flatnonzero(self.offered_slots[:, self.names.index(feature)])
                wrong = [t for t in visited(visits, open_at) if t not in open_at]
                if wrong:
                    what = f"'{feature}' cannot be acquired at slot {wrong[0]}; it can be at"
                    found.append(Problem(f"{what} {', '.join(map(str, open_at))}.", where))
        return found

    def protocol_plan(self, name: str) -> NDArray[np.bool_]:
        """What a protocol acquires, `(n_times, n_features)`."""
        plan = np.zeros_like(self.offered_slots)
        for feature, visits in self.protocols[name].items():
            m = self.names.index(feature)
            plan[visited(visits, np.flatnonzero(self.offered_slots[:, m])), m] = True
        return plan

    @property
    def n_features(self) -> int:
        """Number of features that can be acquired at a visit (`M`)."""
        return len(self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.features)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The value columns in the order of the cohort's last axis (length `D`)."""
        return tuple(c for f in self.features for c in f.columns)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Index of the feature that reveals each column, `(D,)`."""
        return np.array([m for m, f in enumerate(self.features) for _ in f.columns], dtype=np.int64)

    def feature_index(self, name: str) -> int:
        """Position of a feature by its name."""
        if name not in self.names:
            raise DataError(f"There is no feature '{name}'.{did_you_mean(name, self.names)}")
        return self.names.index(name)

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """Price of each slot without fees, `(n_times, n_features)`."""
        costs = [np.broadcast_to(np.asarray(f.cost, float), self.n_times) for f in self.features]
        return np.stack(costs, axis=1)

    @cached_property
    def rules(self) -> Rules | None:
        """The constraints as arrays; `None` if there are none."""
        if not self.constraints:
            return None
        return Rules.of(self.constraints, self.names, self.offered_slots)

    @cached_property
    def open_slots(self) -> NDArray[np.bool_]:
        """Which feature can ever be acquired at which visit, `(n_times, n_features)`."""
        offered = self.offered_slots
        return offered if self.rules is None else np.asarray(offered & ~self.rules.closed)

    @cached_property
    def everything(self) -> NDArray[np.bool_]:
        """All that one subject can get, `(n_times, n_features)`."""
        return self.open_slots if self.rules is None else self.rules.everything

    @cached_property
    def offered_slots(self) -> NDArray[np.bool_]:
        """The same without constraints: when each feature is on offer."""
        out = np.ones((self.n_times, self.n_features), dtype=bool)
        for m, f in enumerate(self.features):
            if f.at is not None:
                out[:, m] = np.isin(np.arange(self.n_times), f.at)
        return out

    @cached_property
    def group_members(self) -> NDArray[np.bool_]:
        """Which features belong to each group with a fee, `(n_groups, n_features)`."""
        rows = [[f.group == g for f in self.features] for g in self.group_fees]
        return np.array(rows, dtype=bool).reshape(len(self.group_fees), self.n_features)

    @cached_property
    def group_fee_values(self) -> NDArray[np.float64]:
        return np.array(list(self.group_fees.values()), dtype=float)

    def cost_per_visit(self, plans: ArrayLike) -> NDArray[np.float64]:
        """Cost of each visit of each plan, fees included: `(..., L, M)` booleans to `(..., L)`."""
        plans = np.asarray(plans, dtype=bool)
        total = np.einsum("...lm,lm->...l", plans.astype(float), self.costs)
        for members, fee in zip(self.group_members, self.group_fee_values, strict=True):
            total = total + fee * plans[..., members].any(axis=-1)
        if self.visit_fee:
            total = total + self.visit_fee * plans.any(axis=-1)
        return np.asarray(total)

    def cost_of(self, plans: ArrayLike) -> NDArray[np.float64]:
        """Cost of whole plans, fees included: `(..., L, M)` booleans to `(...)`."""
        return np.asarray(self.cost_per_visit(plans).sum(axis=-1))

    @cached_property
    def price_of_everything(self) -> float:
        """List price of all that one subject can get, fees included."""
        return float(self.cost_of(self.everything))

    @cached_property
    def price_of_required(self) -> float:
        """List price of what the constraints always acquire, fees included."""
        return 0.0 if self.rules is None else float(self.cost_of(self.rules.required))

    def check_budget(self, budget: float) -> None:
        """Raise `BudgetTooSmall` if a budget does not cover what is always acquired."""
        if budget < self.price_of_required - 1e-9:
            raise BudgetTooSmall(
                f"A budget of {budget:g} does not cover what the constraints always acquire, "
                f"which costs {self.price_of_required:g}. Raise the budget, or relax `always`."
            )

    def expand(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of features to mask of the columns they reveal: `(..., M)` to `(..., D)`."""
        return np.asarray(mask[..., self.owner])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `manifest.json`."""
        features = [
            {k: list(v) if isinstance(v, tuple) else v for k, v in vars(f).items()}
            for f in self.features
        ]
        constraints = self.constraints.to_dict()
        return {
            "n_times": self.n_times,
            "context": list(self.context),
            "group_fees": dict(self.group_fees),
            "visit_fee": self.visit_fee,
            "currency": self.currency,
            "features": features,
            **({"constraints": constraints} if constraints else {}),
            **(
                {"protocols": {k: dict(v) for k, v in self.protocols.items()}}
                if self.protocols
                else {}
            ),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Catalog:
        """Inverse of `to_dict`."""
        rows: list[dict[str, Any]] = [
            {k: tuple(v) if isinstance(v, list) else v for k, v in f.items()}
            for f in data["features"]
        ]
        features = tuple(Feature(**row) for row in rows)
        constraints = Constraints.read(data.get("constraints"))
        read = {"features": features, "context": tuple(data["context"]), "constraints": constraints}
        return cls(**{**data, **read})

    def constrained(self, constraints: Any) -> Catalog:
        """The same catalog with these constraints too; see `Constraints.read`."""
        more = Constraints.read(constraints)
        return replace(self, constraints=self.constraints.also(more)) if more else self

    def with_costs(self, costs: Mapping[str, float]) -> Catalog:
        """The same catalog with other prices for some features."""
        for name in costs:
            self.feature_index(name)
        changed = tuple(replace(f, cost=costs.get(f.name, f.cost)) for f in self.features)
        return replace(self, features=changed)


def visited(visits: Any, open_at: NDArray[np.int64]) -> list[int]:
    """The slots that an entry of a protocol stands for: a list, `"first"` or `True`."""
    if isinstance(visits, bool):
        return open_at.tolist() if visits else []
    return [0] if visits == "first" else [int(t) for t in visits]


def _repeated(items: list[str]) -> list[str]:
    return sorted({item for item in items if items.count(item) > 1})
