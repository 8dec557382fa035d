"""What people pass to a model is taken, or the error says what to pass instead."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nocta
from nocta.core.errors import ConfigError, DataError, TimeError
from nocta.model.nocta import NOCTA
from nocta.tables.history_table import read_history
from nocta.testing import tiny_cohort
from small_models import WEIGHT

FRAME = pd.DataFrame(
    {"subject": ["X1", "X1", "X2"], "visit": [0, 1, 0], "age": 60.0, "marker": [0.5, 0.2, None]}
)


@pytest.fixture
def model(tiny_models: dict[str, NOCTA]) -> NOCTA:
    return tiny_models["amortized"]


def test_a_frame_is_decided_for_like_its_history(model: NOCTA, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    table = read_history(FRAME, model.schema_, model.catalog_)
    expected = model.decide(table.history.subset(np.array([0])), WEIGHT, time=1)
    assert model.decide(FRAME, WEIGHT, subject="X1") == expected
    assert model.decide(tmp_path / "t.csv", WEIGHT, subject="X1") == expected
    alone = FRAME[FRAME["subject"] == "X2"]
    assert model.decide(alone, WEIGHT) == model.decide(FRAME, WEIGHT, subject="X2")
    assert model.decide(FRAME, WEIGHT, subject="X1", time=2).time in (None, 3)


def test_the_subject_of_a_frame_is_named(model: NOCTA) -> None:
    with pytest.raises(DataError, match="has 2 subjects; choose one with subject="):
        model.decide(FRAME, WEIGHT)
    with pytest.raises(DataError, match=r"has no subject 'x1'\. Did you mean 'X1'"):
        model.decide(FRAME, WEIGHT, subject="x1")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m, df: m.fit(df, df["marker"]), r"fit\(train, val\): train is a DataFrame"),
        (lambda m, df: m.fit(tiny_cohort(8), df), r"fit\(train, val\): val is a DataFrame"),
        (lambda m, df: m.rollout(df), r"rollout\(cohort\): cohort is a DataFrame"),
        (lambda m, df: m.decide(tiny_cohort(8)), r"`model.rollout\(cohort\)` acts on a whole"),
    ],
)
def test_a_table_where_a_cohort_belongs_is_explained(
    model: NOCTA, call: Callable[[NOCTA, pd.DataFrame], Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        call(model, FRAME)
    assert "from_table" in str(caught.value) or "decide takes" in str(caught.value)


def test_values_far_outside_training_are_named(
    model: NOCTA, caplog: pytest.LogCaptureFixture
) -> None:
    odd = FRAME.assign(age=[6000.0, 6000.0, 60.0])
    with caplog.at_level(logging.WARNING, "nocta"):
        model.decide(odd, WEIGHT, subject="X2")
        assert not caplog.records
        model.decide(odd, WEIGHT, subject="X1")
    assert "1 value(s) of 'age' are far outside those seen in training" in caplog.text
    assert "6000 (subject X1). Check the unit." in caplog.text


def test_ranges_are_saved_and_absent_in_older_models(model: NOCTA, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = nocta.load(tmp_path / "model")
    assert loaded.ranges_ == model.ranges_
    low, high = loaded.ranges_["age"]
    assert 0 < low < high < 120
    del loaded.ranges_
    loaded.decide(FRAME.assign(age=6000.0), WEIGHT, subject="X1")  # nothing to compare with


def test_a_visit_after_the_schedule_is_refused(model: NOCTA) -> None:
    late = FRAME.assign(visit=[0, 9, 0])
    message = r"Subject X1 has a visit \(row 1\) at visit 9, beyond the schedule this model knows, "
    with pytest.raises(TimeError, match=message + "which ends at visit 3"):
        model.decide(late, WEIGHT, subject="X1")
    assert model.decide(late, WEIGHT, subject="X2").cost_weight == WEIGHT


def test_an_unseen_category_says_what_can_be_done(model: NOCTA) -> None:
    with_sites = copy(model)
    with_sites.schema_ = {**model.schema_, "categories": {"age": ["young", "old"]}}
    with pytest.raises(DataError, match=r"The model knows .* Leave the cell empty if the value is"):
        with_sites.decide(FRAME.assign(age="ancient"), WEIGHT, subject="X1")
