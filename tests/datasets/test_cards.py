"""Cards agree with what the loaders make, and say everything they should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nocta import datasets
from nocta.cli.datasets import to_markdown
from nocta.datasets._card import Card

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = DOCS / "reference/datasets.md"
HOW_TO = DOCS / "how-to/public-data.md"


@pytest.fixture(params=datasets.names())
def card(request: pytest.FixtureRequest) -> Card:
    return datasets.card(request.param)


def test_card_is_complete(card: Card) -> None:
    facts = dict(card.facts())
    for entry in ("Origin", "License", "Cite", "Label rule", "Costs", "Get it", "Visits"):
        assert facts[entry].strip()
    assert card.traps
    assert all(m.about for m in card.measurements)


def test_card_lists_every_option_of_the_loader(card: Card) -> None:
    assert set(card.options) == set(datasets.get(card.name).options) - {"path"}


def test_card_needs_files_where_the_loader_takes_a_path(card: Card) -> None:
    assert bool(card.files) == ("path" in datasets.get(card.name).options)


@pytest.mark.parametrize("name", ["synthetic", "pbc-event", "pbc-stage"])
def test_card_has_the_prices_of_the_catalog(name: str) -> None:
    catalog = datasets.load(name).catalog
    card = datasets.card(name)
    assert [m.feature() for m in card.measurements] == list(catalog.features)
    assert dict(card.group_fees) == dict(catalog.group_fees)
    assert tuple(card.context) == catalog.context


def test_oai_offers_the_paper_s_27_features_at_its_prices() -> None:
    costs = [m.cost for m in datasets.card("oai-womac").measurements]
    assert len(costs) == 27
    assert (costs.count(0.3), costs.count(0.5), costs.count(0.8), costs.count(1.0)) == (14, 3, 9, 1)


def test_cards_carry_what_results_are_shown_by() -> None:
    drawn, adni = datasets.card("synthetic"), datasets.card("adni")
    assert (drawn.headline, adni.headline) == ("accuracy", "ap")
    assert drawn.finite_task is not None
    assert adni.finite_task is None
    task, catalog = drawn.finite_task(), datasets.load("synthetic", n_subjects=1).catalog
    assert task.feature_names == catalog.names
    np.testing.assert_array_equal(task.cost_table(), catalog.costs)


def test_card_says_where_files_go_and_how_options_are_given() -> None:
    adni, drawn = (dict(datasets.card(name).facts()) for name in ("adni", "synthetic"))
    assert "data/adni/ or $NOCTA_DATA/adni/" in adni["Files"]
    assert "Files" not in drawn
    assert "--data-option NAME=VALUE" in drawn["Options"]
    assert "Options" not in dict(replace(datasets.card("synthetic"), options={}).facts())


def test_how_to_names_every_data_set_and_option(card: Card) -> None:
    rows = [line for line in HOW_TO.read_text().splitlines() if line.startswith("|")]
    places, options = (row for row in rows if f"`{card.name}`" in row)
    assert not card.files or f"`data/{card.home}/" in places
    assert all(f"`{option}`" in options for option in card.options)


def test_reference_page_is_up_to_date() -> None:
    assert REFERENCE.read_text() == to_markdown(datasets.names()), (
        "Run: nocta datasets --markdown > docs/reference/datasets.md"
    )
