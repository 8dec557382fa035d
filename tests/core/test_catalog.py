"""Prices and fees add up; a wrong price list is refused with every reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nocta.core.catalog import Catalog, Feature
from nocta.core.errors import CostError, DataError

CATALOG = Catalog(
    features=(
        Feature("alt", ("alt",), 3.0, group="blood"),
        Feature("ast", ("ast",), 4.0, group="blood"),
        Feature("scan", ("left", "right"), (9.0, 8.0, 7.0)),
        Feature("history", ("history",), 2.0, at=(0,)),
    ),
    n_times=3,
    context=("age",),
    group_fees={"blood": 2.0},
    visit_fee=1.0,
    currency="$",
)


@pytest.mark.parametrize(
    ("slots", "cost"),
    [
        ([], 0),
        ([(0, 0)], 3 + 2 + 1),
        ([(0, 0), (0, 1)], 3 + 4 + 2 + 1),
        ([(0, 0), (1, 1)], 3 + 4 + 2 * (2 + 1)),
        ([(1, 2)], 8 + 1),
        ([(0, 2), (0, 3)], 9 + 2 + 1),
    ],
)
def test_fees_are_charged_once_per_visit(slots: list[tuple[int, int]], cost: float) -> None:
    plan = np.zeros((3, 4), dtype=bool)
    for slot in slots:
        plan[slot] = True
    assert CATALOG.cost_of(plan) == cost


@given(data=st.data())
def test_more_is_never_cheaper(data: st.DataObject) -> None:
    bits = st.lists(st.booleans(), min_size=12, max_size=12)
    plan = np.array(data.draw(bits)).reshape(3, 4)
    more = plan | np.array(data.draw(bits)).reshape(3, 4)
    assert CATALOG.cost_of(more) >= CATALOG.cost_of(plan)
    np.testing.assert_allclose(CATALOG.cost_per_visit(plan).sum(), CATALOG.cost_of(plan))


def test_features_reveal_their_columns() -> None:
    assert CATALOG.columns == ("alt", "ast", "left", "right", "history")
    shown = CATALOG.expand(np.array([True, False, True, False]))
    assert shown.tolist() == [True, False, True, True, False]
    assert CATALOG.open_slots[:, 3].tolist() == [True, False, False]


def test_a_catalog_goes_through_json() -> None:
    assert Catalog.from_dict(json.loads(json.dumps(CATALOG.to_dict()))) == CATALOG


def test_prices_can_be_changed() -> None:
    assert CATALOG.with_costs({"alt": 1.0}).costs[0, 0] == 1.0
    with pytest.raises(DataError, match="no feature 'allt'"):
        CATALOG.with_costs({"allt": 1.0})


def test_every_wrong_price_is_named() -> None:
    with pytest.raises(CostError) as caught:
        Catalog(
            features=(
                Feature("a", ("a",), -1.0),
                Feature("b", ("b",), (1.0, 2.0)),
                Feature("c", ("c",), float("nan")),
            ),
            n_times=3,
            visit_fee=float("inf"),
        )
    assert len(str(caught.value).splitlines()) == 4


def test_a_name_does_not_decide_the_kind_of_error() -> None:
    with pytest.raises(DataError) as caught:
        Catalog(features=(Feature("coffee cost", ()),), n_times=3)
    assert not isinstance(caught.value, CostError)


def test_every_wrong_feature_is_named() -> None:
    with pytest.raises(DataError) as caught:
        Catalog(
            features=(
                Feature("a", ("x",)),
                Feature("a", ("x",)),
                Feature("b", (), at=(5,), group="bloood"),
            ),
            n_times=3,
            group_fees={"blood": 1.0},
        )
    message = str(caught.value)
    for part in (
        "'a' is listed twice",
        "'x' belongs to two features",
        "'b' has no column",
        "open at visit 5",
        "Did you mean 'bloood'?",
    ):
        assert part in message


def test_error_class_follows_the_kind_of_problem_not_its_words() -> None:
    twice = (Feature("coffee cost", ("a",)), Feature("coffee cost", ("b",)))
    with pytest.raises(DataError, match="'coffee cost' is listed twice") as caught:
        Catalog(features=twice, n_times=1)
    assert type(caught.value) is DataError
    assert [p.kind for p in caught.value.problems] == ["data"]
    with pytest.raises(CostError) as caught:
        Catalog(features=twice[:1], n_times=1, visit_fee=-1)
    assert [p.kind for p in caught.value.problems] == ["cost"]
