"""The promise of `nocta choose --risk` is kept, in a small version of the simulation of record."""

from __future__ import annotations

import pandas as pd
import pytest

from guarantee import cases, most_broken, page, simulate


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return simulate(500, (30,), seed=1, horizon=3)


def test_promises_are_broken_no_more_often_than_said(table: pd.DataFrame) -> None:
    assert table["broken"].max() <= most_broken(500)
    assert table["broken"].max() > 0  # the limits are hard enough to tell


def test_the_observed_risk_alone_promises_nothing(table: pd.DataFrame) -> None:
    assert table["broken_plug_in"].max() > 2 * most_broken(500)


def test_the_large_sample_agrees_with_the_exact_risk() -> None:
    found = cases(4000, seed=0, horizon=3)[0]
    assert found.losses.mean(axis=1) == pytest.approx(found.true, abs=0.03)


def test_the_page_has_the_worst_of_every_kind(table: pd.DataFrame) -> None:
    text = page(table, 1)
    assert f"{table['broken'].max():.1%}" in text
    assert text.count("\n| error") == len(table.groupby(["risk", "control"]))
