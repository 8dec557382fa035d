"""What may be acquired at a visit, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.catalog import Catalog, Feature
from nocta.planning.space import MAX_EXHAUSTIVE, ActionTable
from nocta.testing import tiny_cohort


def crowded_catalog(n_features: int = 8) -> Catalog:
    features = tuple(
        Feature(f"f{i}", (f"f{i}",), 1.0 + i, group="blood" if i < 3 else None)
        for i in range(n_features)
    )
    return Catalog(features, n_times=2, group_fees={"blood": 2.0}, visit_fee=0.5)


def test_every_subset_is_offered_where_that_is_few() -> None:
    table = ActionTable.build(tiny_cohort(4).catalog)
    assert [len(s) for s in table.subsets] == [4, 4, 4, 4]
    assert {tuple(row) for row in table.subsets[0].tolist()} == {
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    }


def test_acquiring_nothing_comes_first() -> None:
    for catalog in (tiny_cohort(4).catalog, crowded_catalog()):
        table = ActionTable.build(catalog)
        assert not any(subsets[0].any() for subsets in table.subsets)
        assert all(prices[0] == 0 for prices in table.prices)


def test_closed_features_are_never_offered() -> None:
    catalog = tiny_cohort(4).catalog
    blood, scan = catalog.features
    table = ActionTable.build(replace(catalog, features=(replace(blood, at=(0, 2)), scan)))
    assert [len(s) for s in table.subsets] == [4, 2, 4, 2]
    assert not table.subsets[1][:, 0].any()


def test_prices_hold_every_fee_and_every_visits_own_cost() -> None:
    catalog = Catalog(
        (Feature("a", ("a",), (1.0, 5.0), group="g"), Feature("b", ("b",), 2.0, group="g")),
        n_times=2,
        group_fees={"g": 10.0},
        visit_fee=100.0,
    )
    table = ActionTable.build(catalog)
    at = {tuple(row): i for i, row in enumerate(table.subsets[0].tolist())}
    both, first = at[(True, True)], at[(True, False)]
    assert table.prices[0][[first, both]].tolist() == [111.0, 113.0]
    assert table.prices[1][[first, both]].tolist() == [115.0, 117.0]


def test_what_is_rarely_recorded_is_rarely_charged() -> None:
    cohort = tiny_cohort(200)
    table = ActionTable.build(cohort.catalog, cohort)
    recorded = cohort.recorded[:, 3].mean(axis=0)
    singles = {tuple(row): i for i, row in enumerate(table.subsets[3].tolist())}
    scan = singles[(False, True)]
    assert table.charges[3][scan] == pytest.approx(3.0 * recorded[1])
    for prices, charges in zip(table.prices, table.charges, strict=True):
        assert (charges <= prices + 1e-12).all()


def test_many_features_make_a_proposal_and_not_every_subset() -> None:
    catalog = crowded_catalog()
    assert catalog.n_features > MAX_EXHAUSTIVE
    subsets = ActionTable.build(catalog).subsets[0]
    assert len(subsets) < 2**catalog.n_features
    assert len(np.unique(subsets, axis=0)) == len(subsets)
    offered = {tuple(np.flatnonzero(row)) for row in subsets}
    assert offered >= {(i,) for i in range(8)}
    assert (0, 1, 2) in offered  # the group that shares a fee
    assert tuple(range(8)) in offered


def test_proposals_begin_with_what_is_worth_most() -> None:
    worth = np.zeros((2, 8))
    worth[:, 5], worth[:, 7] = 9.0, 8.0
    subsets = ActionTable.build(crowded_catalog(), worth=worth).subsets[0]
    assert (5, 7) in {tuple(np.flatnonzero(row)) for row in subsets}


def test_other_prices_keep_the_subsets() -> None:
    cohort = tiny_cohort(20)
    table = ActionTable.build(cohort.catalog, cohort)
    costlier = table.with_charges(cohort.catalog.with_costs({"scan": 30.0}), None)
    for before, after in zip(table.subsets, costlier.subsets, strict=True):
        np.testing.assert_array_equal(before, after)
    assert costlier.prices[0].max() == pytest.approx(31.5)
    np.testing.assert_array_equal(costlier.prices[0], costlier.charges[0])


def test_plans_are_charged_as_their_subsets_are_and_others_by_single_features() -> None:
    train = tiny_cohort(200)
    table = ActionTable.build(train.catalog, train)
    plans = np.zeros((len(table.subsets[1]), *train.catalog.open_slots.shape), dtype=bool)
    plans[:, 1] = table.subsets[1]
    np.testing.assert_allclose(table.expected_charges(train.catalog, plans), table.charges[1])
    few = table.subsets[1].sum(axis=1) < 2
    less = [
        tuple(part[few] if t == 1 else part for t, part in enumerate(parts))
        for parts in (table.subsets, table.prices, table.charges)
    ]
    found = ActionTable(*less).expected_charges(train.catalog, plans)
    np.testing.assert_allclose(found, table.charges[1])  # no fees, so features add up
