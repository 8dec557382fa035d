"""The shipped optimum and the paper's numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.evaluation.attainable import (
    attainable_share,
    noct_frontier,
    optimum_frontier,
    share_over_costs,
)
from nocta.exact.optimum import accuracy_at
from nocta.report.plots.style import METHOD_STYLES
from nocta.report.published import METRICS, paper_table, published_for
from nocta.runs.optimum import (
    compute_yardstick,
    finite_task,
    known_yardstick,
    read_curves,
    write_curves,
    write_optimum,
)
from nocta.runs.setup import DataSource

SYNTHETIC = DataSource("synthetic")
LATE = DataSource("synthetic-family", data_options={"task": "late-starts"})


def test_the_shipped_optimum_has_the_known_values() -> None:
    yardstick = known_yardstick(SYNTHETIC)
    assert yardstick is not None
    optimum = yardstick.optimum
    known = {0.0: 0.3312, 8.952: 0.8451, 13.724: 1.0, 10.242: 0.9061, 11.549: 0.9579}
    for cost, accuracy in known.items():
        assert float(accuracy_at(optimum, cost)) == pytest.approx(accuracy, abs=1e-4)
    weights = optimum.cost_weight
    assert (np.diff(weights) < 0).all()
    assert weights[np.isclose(optimum.cost, 8.952, atol=1e-3)][0] <= 0.5


def test_the_shipped_curves_of_cross_entropy_and_noct_have_the_known_values() -> None:
    yardstick = known_yardstick(SYNTHETIC)
    assert yardstick is not None
    for policy in ("optimum", "noct"):
        for loss in ("error", "cross-entropy"):
            curve = yardstick.curve(policy, loss)
            assert curve.cost[-1] == pytest.approx(13.724, abs=1e-3)
            assert curve.cross_entropy[-1] == pytest.approx(0.0, abs=1e-9)
    best = optimum_frontier(yardstick, "accuracy")
    noct = noct_frontier(yardstick, "accuracy")
    assert best is not None
    assert noct is not None
    # Planning by exact NOCT is optimal where much is acquired, not where little is.
    assert attainable_share(best, noct.costs[-4:], noct.qualities[-4:]) == pytest.approx(1.0)
    assert 0.9 < share_over_costs(best, noct).lowest < 0.95


@pytest.mark.slow
def test_the_shipped_curves_are_what_is_computed() -> None:
    shipped, computed = known_yardstick(SYNTHETIC), compute_yardstick(SYNTHETIC)
    assert shipped is not None
    for ours, theirs in zip(shipped.curves, computed.curves, strict=True):
        np.testing.assert_allclose(ours.cost, theirs.cost, atol=1e-6)
        np.testing.assert_allclose(ours.accuracy, theirs.accuracy, atol=1e-6)
        np.testing.assert_allclose(ours.cross_entropy, theirs.cross_entropy, atol=1e-6)


def test_curves_survive_writing_and_reading(tmp_path: Path) -> None:
    yardstick = known_yardstick(LATE)
    assert yardstick is not None
    write_curves(yardstick, tmp_path / "new" / "f.csv")
    found = read_curves(tmp_path / "new" / "f.csv")
    assert len(found.curves) == 4
    for ours, theirs in zip(found.curves, yardstick.curves, strict=True):
        assert (ours.policy, ours.loss) == (theirs.policy, theirs.loss)
        for name in ("cost_weight", "cost", "accuracy", "cross_entropy"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-8)


def test_an_optimum_is_written_as_cost_and_accuracy(tmp_path: Path) -> None:
    yardstick = known_yardstick(LATE)
    assert yardstick is not None
    write_optimum(yardstick.optimum, tmp_path / "f.csv")
    head, first, *_ = (tmp_path / "f.csv").read_text().splitlines()
    assert (head, first) == ("cost,accuracy", "0,0.6161265432")


def test_the_yardstick_is_that_of_the_task_named_in_the_options() -> None:
    other = known_yardstick(replace(LATE, data_options={"task": 6, "seed": 3}))
    late, drawn = known_yardstick(LATE), finite_task(LATE)
    assert late is not None
    assert other is not None
    assert drawn.feature_names == ("digit", "counter")
    assert other.optimum.accuracy[0] != late.optimum.accuracy[0]
    unknown = DataSource("synthetic", data_options={"horizon": 3})
    assert known_yardstick(unknown) is None
    with pytest.raises(ConfigError, match="not known with the data option horizon"):
        finite_task(unknown)


def test_a_task_too_large_to_solve_on_the_way_has_no_yardstick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nocta.runs.optimum.SMALL_TASK", 20)
    assert known_yardstick(DataSource("synthetic-family", data_options={"task": 9})) is None


def test_an_optimum_that_is_not_known_says_for_what_it_is() -> None:
    assert known_yardstick(DataSource("pbc-stage")) is None
    with pytest.raises(ConfigError, match=r"is not known.*task: synthetic, synthetic-family\."):
        finite_task(DataSource("pbc-stage"))
    with pytest.raises(ConfigError, match="Did you mean 'synthetic'"):
        finite_task(DataSource("synthetik"))


def test_a_table_called_as_a_data_set_is_not_mistaken_for_it() -> None:
    table = DataSource("synthetic", schema="synthetic.toml")
    assert (table.headline, SYNTHETIC.headline) == ("ap", "accuracy")
    assert known_yardstick(table) is None
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
