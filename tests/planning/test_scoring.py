"""Scores of many subjects are the decisions of each."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.errors import ConfigError
from nocta.core.history import History
from nocta.model.nocta import NOCTA
from nocta.planning import scoring
from nocta.planning.limits import Limits
from nocta.tables.history_table import HistoryTable
from small_models import WEIGHT, Parts


def some_histories(parts: Parts) -> HistoryTable:
    """Test subjects at every slot, with a part of what was recorded until then."""
    test = parts[2]
    rng = np.random.default_rng(0)
    time = np.arange(len(test)) % (test.n_times + 1) - 1
    asked = rng.random(test.recorded.shape) < 0.6
    asked &= np.arange(test.n_times)[:, None] <= time[:, None, None]
    return HistoryTable(History.of(test, asked), test.subjects, time, ())


@pytest.mark.parametrize("name", ["amortized", "ensemble"])
@pytest.mark.parametrize("budget", [None, 2.0])
def test_scores_are_the_decisions_of_each_subject(
    name: str, budget: float | None, tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    model, table = tiny_models[name], some_histories(tiny_parts)
    rows = scoring.score_histories(model, table, WEIGHT, budget).to_pylist()
    assert {row["stop"] for row in rows} == {True, False}
    for i, row in enumerate(rows):
        alone = model.decide(
            table.history.subset(np.array([i])),
            WEIGHT,
            time=int(table.time[i]),
            remaining=budget,
        )
        assert (row["subject"], row["now"]) == (table.subjects[i], table.time[i])
        assert (row["stop"], row["time"], row["features"]) == (
            alone.stop,
            alone.time,
            alone.features,
        )
        assert row["cost"] == pytest.approx(alone.cost)
        assert row["plan_cost"] == pytest.approx(alone.plan.cost)
        assert row["expected_charge"] == pytest.approx(alone.plan.expected_charge)
        assert row["expected_loss"] == pytest.approx(alone.plan.expected_loss, abs=1e-5)
        assert row["objective"] == pytest.approx(alone.plan.objective, abs=1e-5)
        gain = alone.stopping.expected_loss - alone.plan.expected_loss
        assert row["expected_gain"] == pytest.approx(gain, abs=1e-5)
        assert row["probability"] == pytest.approx(alone.prediction, abs=1e-6)
        assert row["predicted"] == model.classes_[int(np.argmax(alone.prediction))]


def test_pieces_do_not_change_decisions(tiny_models: dict[str, NOCTA], tiny_parts: Parts) -> None:
    model, table = tiny_models["amortized"], some_histories(tiny_parts)
    whole = scoring.score_histories(model, table, WEIGHT)
    pieces = scoring.score_histories(model, table, WEIGHT, limits=Limits(scored_subjects=5))
    for name in ("subject", "stop", "time", "features", "predicted"):
        assert whole[name].to_pylist() == pieces[name].to_pylist()


def test_an_impossible_budget_is_refused(tiny_models: dict[str, NOCTA], tiny_parts: Parts) -> None:
    with pytest.raises(ConfigError, match="budget is -1"):
        scoring.score_histories(tiny_models["amortized"], some_histories(tiny_parts), WEIGHT, -1.0)
