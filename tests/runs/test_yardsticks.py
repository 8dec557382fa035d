"""The shipped optimum and the paper's numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.exact.optimum import accuracy_at
from nocta.report.plots.style import METHOD_STYLES
from nocta.report.published import METRICS, paper_table, published_for
from nocta.runs.optimum import (
    compute_optimum,
    finite_task,
    read_optimum,
    shipped_optimum,
    write_optimum,
)
from nocta.runs.setup import DataSource

SYNTHETIC = DataSource("synthetic")


def test_the_shipped_optimum_has_the_known_values() -> None:
    optimum = shipped_optimum(SYNTHETIC)
    assert optimum is not None
    known = {0.0: 0.3312, 8.952: 0.8451, 13.724: 1.0, 10.242: 0.9061, 11.549: 0.9579}
    for cost, accuracy in known.items():
        assert float(accuracy_at(optimum, cost)) == pytest.approx(accuracy, abs=1e-4)
    weights = optimum.cost_weight
    assert (np.diff(weights) < 0).all()
    assert weights[np.isclose(optimum.cost, 8.952, atol=1e-3)][0] <= 0.5


@pytest.mark.slow
def test_the_shipped_optimum_is_what_is_computed() -> None:
    shipped, computed = shipped_optimum(SYNTHETIC), compute_optimum(SYNTHETIC)
    assert shipped is not None
    np.testing.assert_allclose(shipped.cost, computed.cost, atol=1e-6)
    np.testing.assert_allclose(shipped.accuracy, computed.accuracy, atol=1e-6)


def test_an_optimum_survives_writing_and_reading(tmp_path: Path) -> None:
    optimum = shipped_optimum(SYNTHETIC)
    assert optimum is not None
    write_optimum(optimum, tmp_path / "new" / "f.csv")
    found = read_optimum(tmp_path / "new" / "f.csv", horizon=10)
    np.testing.assert_array_equal(found.cost, optimum.cost)
    np.testing.assert_array_equal(found.accuracy, optimum.accuracy)


def test_an_optimum_that_is_not_known_says_for_what_it_is() -> None:
    assert shipped_optimum(DataSource("pbc-stage")) is None
    with pytest.raises(ConfigError, match=r"'pbc-stage' is not known.*finite task: synthetic\."):
        finite_task(DataSource("pbc-stage"))
    with pytest.raises(ConfigError, match="Did you mean 'synthetic'"):
        finite_task(DataSource("synthetik"))


def test_a_table_called_as_a_data_set_is_not_mistaken_for_it() -> None:
    table = DataSource("synthetic", schema="synthetic.toml")
    assert (table.headline, SYNTHETIC.headline) == ("ap", "accuracy")
    assert shipped_optimum(table) is None
    assert published_for(table) is None
    with pytest.raises(ConfigError, match="'synthetic' is not known"):
        finite_task(table)


@pytest.mark.parametrize(
    ("table", "n_rows", "place"),
    [
        ("synthetic", 21, "Table 8"),
        ("adni", 21, "Table 9"),
        ("womac", 23, "Table 10"),
        ("klg", 20, "Table 11"),
        ("embedding", 18, "Table 1"),
        ("candidates", 8, "Tables 2 and 3"),
        ("neighbors", 3, "Table 4"),
        ("kappa", 3, "Table 5"),
        ("beta", 4, "Table 6"),
        ("gamma", 4, "Table 7"),
    ],
)
def test_every_table_of_the_paper_is_there(table: str, n_rows: int, place: str) -> None:
    found = paper_table(table)
    assert found.place.startswith(place + ",")
    assert len(found.rows) == n_rows
    assert all(row.method in METHOD_STYLES for row in found.rows)
    assert all(0 < row.metrics[name] < 1 for row in found.rows for name in row.metrics)
    assert all(row.metrics.keys() <= set(METRICS) for row in found.rows)


def test_what_was_printed_without_a_spread_has_none() -> None:
    row = paper_table("figure-dynamics").rows[0]
    assert (row.cost, math.isnan(row.cost_spread), row.metrics) == (4.3775, True, {})
    order = paper_table("complexity").rows[-1]
    assert order.knob == {"L": 2, "M": 1, "O": 1, "n": 1}
    assert (order.dataset, math.isnan(order.cost)) == ("", True)


def test_an_unknown_table_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'kappa'"):
        paper_table("kapa")


@pytest.mark.parametrize(
    ("dataset", "method", "position", "printed"),
    [
        ("synthetic", "nocta-contrastive", 2, (0.855, 0.002, 11.315, 0.012)),
        ("synthetic", "nocta-amortized", 2, (0.640, 0.017, 8.6358, 0.164)),
        ("synthetic", "asac", 1, (0.567, 0.161, 9.929, 8.365)),
        ("adni", "ras", 3, (0.572, 0.012, 9.197, 1.438)),
        ("oai-womac", "dime", 4, (0.310, 0.028, 13.325, 0.643)),
        ("oai-klg", "asac", 3, (0.304, 0.008, 24.361, 15.940)),
    ],
)
def test_rows_read_as_printed(
    dataset: str, method: str, position: int, printed: tuple[float, ...]
) -> None:
    table = published_for(DataSource(dataset))
    assert table is not None
    row = [r for r in table.rows if r.method == method][position]
    first = next(iter(row.metrics))
    assert (row.metrics[first], row.spreads[first], row.cost, row.cost_spread) == printed


def test_data_the_paper_does_not_have_give_no_rows() -> None:
    assert published_for(DataSource("pbc-stage")) is None
