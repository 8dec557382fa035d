"""Two comparisons are only held against each other where they judged the same subjects."""

from __future__ import annotations

import pandas as pd
import pytest

from across import across
from nocta.core.errors import DataError
from nocta.runs.summary import QUALITIES


def results(method: str, lift: float, n_labels: int = 90) -> pd.DataFrame:
    rows = [
        {
            "dataset": "clinic",
            "method": method,
            "availability": "on-arrival",
            "split": "test",
            "seed": seed,
            "n_subjects": 30,
            "n_labels": n_labels,
            "cost": cost,
            **dict.fromkeys(QUALITIES, 0.5 + lift + 0.1 * seed),
        }
        for seed in range(3)
        for cost in (1.0, 5.0)
    ]
    return pd.DataFrame(rows)


def test_methods_of_both_are_paired_by_seed() -> None:
    first = pd.concat([results("ours", 0.2), results("static", 0.1)])
    second = pd.concat([results("ours", 0.0), results("ras", 0.05)])
    second = second[second["seed"] < 2]
    table = across(first, second, "more")
    assert set(table["versus"]) == {"ours@more", "ras"}
    ap = table[(table["quality"] == "ap") & (table["versus"] == "ras")].set_index("method")
    assert ap.loc["ours", "mean"] == pytest.approx(0.15)
    assert ap.loc["static", "mean"] == pytest.approx(0.05)
    assert (ap["n_seeds"] == 2).all()


def test_other_subjects_are_refused() -> None:
    with pytest.raises(DataError, match="Seed 0: n_labels is 90 in one comparison and 80"):
        across(results("ours", 0.2), results("ras", 0.1, n_labels=80), "more")


def test_a_method_that_both_have_is_told_apart() -> None:
    table = across(results("static", 0.1), results("static", 0.3), "other")
    found = table[table["quality"] == "ap"]
    assert found[["method", "versus"]].to_numpy().tolist() == [["static", "static@other"]]
    assert found["mean"].item() < 0


def test_other_seeds_are_refused() -> None:
    second = results("ras", 0.1)
    with pytest.raises(DataError, match="No seed in common"):
        across(results("ours", 0.2), second.assign(seed=second["seed"] + 10), "more")
