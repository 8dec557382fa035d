"""Hints at a name that is nearly the one that was meant."""

from __future__ import annotations

import pytest

from nocta.core.errors import did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("crp", "CRP [mg/L]", "CRP [mg/L]"),
        ("CRP (mg/L)", "crp", "crp"),
        ("bilirubn", "bilirubin", "bilirubin"),
        ("crp", "crp_date", ""),  # a column of its own, no misspelling
        ("age", "age_group", ""),
    ],
)
def test_a_near_name_is_offered_and_a_longer_one_is_not(name: str, known: str, meant: str) -> None:
    hint = did_you_mean(name, ["something", known])
    assert hint == (f" Did you mean '{meant}'?" if meant else "")
