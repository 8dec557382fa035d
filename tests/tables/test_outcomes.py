"""Labels that are no classes yet: cut numbers, and events soon after a visit; nominal context."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError
from nocta.tables.draft.draft import draft_schema
from nocta.tables.draft.meaning import Wish
from nocta.tables.history_table import read_history
from nocta.tables.outcomes import label_within
from nocta.tables.schema import Schema
from nocta.tables.table import read_cohort

TABLE = pd.DataFrame(
    {
        "id": [1, 1, 1, 2, 2, 3],
        "years": [0.0, 1.0, 2.0, 0.0, 1.0, 0.0],
        "alt": [1.0, 2, 3, 4, 5, 6],
        "outcome": [4.9, 5.7, 8.25, None, 6.5, 5.1],
        "end": [2.5, 2.5, 2.5, 9.0, 9.0, 1.5],
        "status": ["dead"] * 3 + ["alive"] * 3,
    }
)
SCHEMA: dict[str, Any] = {
    "subject": "id",
    "time": "years",
    "grid": [0, 1, 2],
    "time_unit": "years",
    "features": {"alt": {"cost": 1.0}},
}
EVENT = {"time": "end", "status": "status", "happened": ["dead"], "within": 2}


def test_a_number_is_cut_into_classes() -> None:
    schema = {**SCHEMA, "label": "outcome", "bins": [5.7, 6.5]}
    cohort = read_cohort(TABLE, schema)
    assert cohort.classes == ("below 5.7", "5.7 to 6.5", "6.5 and above")
    assert cohort.labels.tolist() == [[0, 1, 2], [-1, 2, -1], [0, -1, -1]]
    named = read_cohort(TABLE, {**schema, "classes": ["fine", "raised", "high"]})
    assert named.classes == ("fine", "raised", "high")
    assert read_cohort(TABLE, json.loads(json.dumps(cohort.schema))).classes == cohort.classes


def test_an_event_that_is_near_is_a_label() -> None:
    cohort = read_cohort(TABLE, {**SCHEMA, "event": EVENT})
    assert cohort.classes == ("no event", "event")
    assert cohort.labels.tolist() == [[0, 1, 1], [0, 0, -1], [-1, -1, -1]]
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(TABLE["years"] * 365.25, unit="D")
    ends = pd.Timestamp("2020-01-01") + pd.to_timedelta(TABLE["end"] * 365.25, unit="D")
    dated = TABLE.assign(years=days, end=ends)
    np.testing.assert_array_equal(
        read_cohort(dated, {**SCHEMA, "event": EVENT}).labels, cohort.labels
    )
    # A model keeps the schema; a history needs no end of follow-up.
    saved = json.loads(Schema.of(cohort).model_dump_json(exclude_none=True))
    history = TABLE[["id", "years", "alt"]]
    assert read_history(history, saved, cohort.catalog).time.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("end", "happened", "label"),
    [(2.0, True, 1), (2.1, True, 0), (2.0, False, 0), (1.9, False, -1), (-1, True, -1)],
)
def test_what_is_not_known_has_no_label(end: float, happened: bool, label: int) -> None:
    assert label_within([0.0], [end], [happened], 2.0).tolist() == [label]
    assert label_within([0.0], [np.nan], [happened], 2.0).tolist() == [-1]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"label": "outcome", "bins": [6, 5]}, r"bins are \[6.0, 5.0\]"),
        ({"bins": [5]}, "bins cut a label, and there is none"),
        ({"label": "outcome", "bins": [5], "classes": ["a"]}, "bins make 2 classes, and 1 are"),
        ({"label": "outcome", "event": EVENT}, r"both label and \[event\]"),
        ({"event": {**EVENT, "within": 0}}, r"\[event\]: within is 0"),
        ({"event": {**EVENT, "hapened": []}}, "no key 'hapened'. Did you mean 'happened'"),
        ({"event": {**EVENT, "happened": ["gone"]}}, "no cell is one of the events, gone"),
        ({"event": {**EVENT, "status": "statos"}}, "no column 'statos'"),
        ({"label": "outcome"}, r"A label has classes. .*bins = \[...\]"),
        ({}, r"names no label column. .*bins = \[...\] .*\[event\]"),
        ({"label": "outcome", "bins": [5], "nominal": ["alt"]}, "nominal names 'alt'"),
    ],
)
def test_mistakes_say_what_to_write(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_cohort(TABLE, {**SCHEMA, **keys})


SITES = {
    **SCHEMA,
    "label": "status",
    "context": ["site", "age"],
    "categories": {"site": ["A", "B", "C"]},
}


def test_nominal_context_has_a_column_per_value() -> None:
    table = TABLE.assign(site=["C"] * 3 + ["A"] * 2 + [None], age=[60] * 3 + [50] * 2 + [40])
    cohort = Cohort.from_table(table, {**SITES, "nominal": ["site"]})
    assert cohort.catalog.context == ("site=A", "site=B", "site=C", "age")
    expected = [[0, 0, 1, 60], [1, 0, 0, 50], [np.nan, np.nan, np.nan, 40]]
    np.testing.assert_array_equal(cohort.context, np.float32(expected))
    saved = json.loads(Schema.of(cohort).model_dump_json(exclude_none=True))
    assert saved["context"] == ["site", "age"]
    history = read_history(table.drop(columns="status"), saved, cohort.catalog).history
    np.testing.assert_array_equal(history.context, cohort.context)


def test_context_of_older_schemas_stays_a_position() -> None:
    table = TABLE.assign(site=["C"] * 3 + ["A"] * 3, age=50)
    cohort = Cohort.from_table(table, SITES)
    assert cohort.catalog.context == ("site", "age")
    assert cohort.context[:, 0].tolist() == [2, 0, 0]
    assert cohort.schema is not None
    assert "nominal" not in cohort.schema


def grown() -> pd.DataFrame:
    """Twelve copies of the table with other subjects."""
    many = [TABLE.assign(id=TABLE["id"] + 3 * i) for i in range(12)]
    table = pd.concat(many, ignore_index=True).assign(outcome=lambda t: t.index / 7 + 0.05)
    return table.assign(ast=np.arange(72.0), years=table["years"] + table["id"] / 1000)


def test_init_cuts_a_continuous_outcome() -> None:
    table = grown().drop(columns=["end", "status"])
    doubts = "\n".join(draft_schema(table).unsure)
    assert "holds 72 different values" in doubts
    assert "nocta init --label COLUMN --bins 3" in doubts
    draft = draft_schema(table, wish=Wish(bins=3))
    schema = tomllib.loads(draft.text)
    assert (schema["label"], len(schema["bins"])) == ("outcome", 2)
    assert draft.readable, draft.check
    assert "3 classes)" in draft.check
    counts = np.bincount(read_cohort(table, schema).labels.ravel() + 1)[1:]
    assert counts.min() >= 20
    given = tomllib.loads(draft_schema(table, wish=Wish(label="alt", bins=(2.5, 4.5))).text)
    assert (given["label"], given["bins"]) == ("alt", [2.5, 4.5])
    assert "outcome" not in given["features"]  # named like a label


def test_init_drafts_an_event() -> None:
    wish = Wish(event=("end", "status"), within=2.0)
    draft = draft_schema(grown().drop(columns="outcome"), wish=wish)
    schema = tomllib.loads(draft.text)
    assert schema["event"] == {**EVENT, "within": 2.0}
    assert "label" not in schema
    assert list(schema["features"]) == ["alt", "ast"]
    assert draft.readable, draft.check
    assert "2 classes)" in draft.check


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish(label="outcom"), "no column 'outcom' for the label. Did you mean 'outcome'"),
        (Wish(label="status", bins=3), "--bins cuts numbers, and 'status' holds other things"),
        (Wish(bins=1), "use at least 2 ranges"),
        (Wish(bins=(100.0,)), "--bins leaves one class: 'outcome' goes from"),
        (Wish(event=("end", "status")), "--event needs --within"),
        (Wish(event=("end", "state"), within=1.0), "no column 'state'"),
    ],
)
def test_a_wish_that_cannot_be_met_is_explained(wish: Wish, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draft_schema(grown(), wish=wish)
