"""One way of writing amounts, wherever they are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nocta.core.currency import money, with_currency
from nocta.report.plots.dynamics import TimeAxis
from nocta.tables.summary import CohortSummary
from nocta.testing import tiny_cohort


@pytest.mark.parametrize(
    ("currency", "written"),
    [
        ("$", "$12.50"),
        ("€", "€12.50"),
        ("US$", "US$12.50"),
        ("EUR", "12.50 EUR"),
        ("h", "12.50 h"),
        ("kr.", "12.50 kr."),
        ("hours of staff", "12.50 hours of staff"),
        ("", "12.50"),
    ],
)
def test_signs_stand_before_and_words_after(currency: str, written: str) -> None:
    assert money(12.5, currency) == written
    assert with_currency("12.50", currency) == written


def test_cards_and_figures_write_the_same() -> None:
    cohort = tiny_cohort(n_subjects=40)
    catalog = replace(cohort.catalog, currency="EUR")
    card = CohortSummary.of(replace(cohort, catalog=catalog)).to_markdown()
    assert "EUR" in card
    assert not any(f"EUR{digit}" in card for digit in "0123456789")
    assert TimeAxis((0.0,), currency="hours of staff").price(12.5) == "12.5 hours of staff"
