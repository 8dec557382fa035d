"""The space of plans: the subsets of features offered at each slot, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort

#: Up to this many open features at a slot, every subset is offered; beyond, a selection.
MAX_EXHAUSTIVE = 5
#: Maximum number of subjects over which expected charges are averaged.
_MOST_CHARGED = 50_000


@dataclass(frozen=True)
class ActionTable:
    """Subsets of features offered at each slot; the empty one is always the first."""

    subsets: tuple[NDArray[np.bool_], ...]  # per slot, (s, M)
    prices: tuple[NDArray[np.float64], ...]  # list price with fees, compared with the hard budget
    charges: tuple[NDArray[np.float64], ...]  # expected: unavailable features are not charged

    @property
    def n_times(self) -> int:
        return len(self.subsets)

    @classmethod
    def build(
        cls, catalog: Catalog, train: Cohort | None = None, worth: NDArray[np.float64] | None = None
    ) -> ActionTable:
        """Offer every subset of few features, and a selection of subsets of many.

        Charges are averaged over what the subjects of `train` had recorded; `worth`, `(L, M)`, the
        value of each slot alone, guides the selection.
        """
        worth = np.ones(catalog.open_slots.shape) if worth is None else worth
        subsets = tuple(_subsets_at(catalog, t, worth[t]) for t in range(catalog.n_times))
        return cls(subsets, (), ()).with_charges(catalog, train)

    def at_prices(self, catalog: Catalog) -> ActionTable:
        """The same subsets at another catalog's prices; the charged share stays the same."""
        prices = tuple(_prices_at(catalog, t, s) for t, s in enumerate(self.subsets))
        charges = tuple(
            new * np.divide(charge, old, out=np.ones_like(old), where=old > 0)
            for new, old, charge in zip(prices, self.prices, self.charges, strict=True)
        )
        return replace(self, prices=prices, charges=charges)

    def obeying(self, catalog: Catalog) -> ActionTable:
        """The same at the catalog's prices, without subsets that its constraints never allow.

        What is always acquired at a slot is in all its subsets; so is every partner. Acquiring
        nothing more than that takes the place of the empty subset as the first.
        """
        table = self.at_prices(catalog)
        if catalog.rules is None:
            return table
        subsets = tuple(_obeying(catalog, t, s) for t, s in enumerate(table.subsets))
        prices = tuple(_prices_at(catalog, t, s) for t, s in enumerate(subsets))
        charges = tuple(table._charges_of(catalog, t, s) for t, s in enumerate(subsets))
        return replace(table, subsets=subsets, prices=prices, charges=charges)

    def with_charges(self, catalog: Catalog, train: Cohort | None) -> ActionTable:
        """The same subsets at this catalog's prices."""
        prices = tuple(_prices_at(catalog, t, s) for t, s in enumerate(self.subsets))
        if train is None:
            return replace(self, prices=prices, charges=prices)
        recorded = train.sample(_MOST_CHARGED).recorded
        charges = tuple(
            _charges_at(catalog, t, s, recorded[:, t]) for t, s in enumerate(self.subsets)
        )
        return replace(self, prices=prices, charges=charges)

    def expected_charges(self, catalog: Catalog, plans: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Expected charges of plans, `(p,)`, at the prices of the table, which are the catalog's.

        A subset that is not offered is charged the mean share of its single features.
        """
        total = np.zeros(len(plans))
        for t in range(self.n_times):
            chosen, which = np.unique(plans[:, t], axis=0, return_inverse=True)
            total += self._charges_of(catalog, t, chosen)[which.reshape(-1)]
        return total

    def _charges_of(
        self, catalog: Catalog, time: int, chosen: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Expected charges of subsets at a slot, `(c, M)` to `(c,)`, offered or not."""
        subsets, charges = self.subsets[time], self.charges[time]
        single = subsets.sum(axis=1) == 1
        listed = chosen @ (subsets[single].T @ self.prices[time][single])
        charged = chosen @ (subsets[single].T @ charges[single])
        share = np.divide(charged, listed, out=np.ones_like(listed), where=listed > 0)
        bills = share * _prices_at(catalog, time, chosen)
        offered = {s.tobytes(): charge for s, charge in zip(subsets, charges, strict=True)}
        found = [offered.get(s.tobytes(), bill) for s, bill in zip(chosen, bills, strict=True)]
        return np.array(found)


def _charges_at(
    catalog: Catalog, time: int, subsets: NDArray[np.bool_], recorded: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Mean price of the recorded part of each subset; each pattern is priced once."""
    there, who = np.unique(recorded, axis=0, return_inverse=True)
    bills = (_prices_at(catalog, time, there & subset) for subset in subsets)
    return np.array([bill[who.reshape(-1)].mean() for bill in bills])


def _prices_at(catalog: Catalog, time: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    plans = np.zeros((len(subsets), catalog.n_times, catalog.n_features), dtype=bool)
    plans[:, time] = subsets
    return catalog.cost_of(plans)


def _subsets_at(catalog: Catalog, time: int, worth: NDArray[np.float64]) -> NDArray[np.bool_]:
    features = np.flatnonzero(catalog.open_slots[time])
    if features.size <= MAX_EXHAUSTIVE:
        codes = np.arange(2**features.size)[:, None]
        chosen = (codes >> np.arange(features.size)) & 1 == 1
        out = np.zeros((len(chosen), catalog.n_features), dtype=bool)
        out[:, features] = chosen
        return out
    return _proposal(catalog, time, features, worth)


def _obeying(catalog: Catalog, time: int, subsets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Subsets that the constraints may allow at a slot, each once; the smallest is the first."""
    rules = catalog.rules
    assert rules is not None
    required = rules.required[time]
    asked = rules.with_partners(subsets) | required
    allowed = ~(asked & ~catalog.open_slots[time] & ~required).any(axis=1)
    rows = {row.tobytes(): row for row in [required, *asked[allowed]]}
    return np.stack(list(rows.values()))


def _proposal(
    catalog: Catalog, time: int, features: NDArray[np.int64], worth: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """The empty set, single features, groups, pairs of the best, and growing sets by value."""
    m = catalog.n_features
    alone = np.zeros((features.size, m), dtype=bool)
    alone[np.arange(features.size), features] = True
    per_cost = worth[features] / np.maximum(_prices_at(catalog, time, alone), 1e-9)
    by_worth = features[np.argsort(-worth[features], kind="stable")]
    by_ratio = features[np.argsort(-per_cost, kind="stable")]
    rows = [np.zeros(m, dtype=bool), *alone]
    for order in (by_ratio, by_worth):
        rows += [np.isin(np.arange(m), order[: i + 1]) for i in range(order.size)]
    best = by_ratio[:6]
    rows += [np.isin(np.arange(m), [a, b]) for i, a in enumerate(best) for b in best[i + 1 :]]
    groups = {f.group for f in catalog.features if f.group is not None}
    for group in sorted(groups):
        members = np.array([f.group == group for f in catalog.features])
        rows.append(members & catalog.open_slots[time])
    unique: dict[bytes, NDArray[np.bool_]] = {r.tobytes(): r for r in rows}
    return np.stack(list(unique.values()))
