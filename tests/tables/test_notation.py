"""Numbers, dates and visit names are read as people write them; what has two readings is asked."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nocta.core.errors import DataError, TimeError
from nocta.tables.dates import date_orders, day_of, to_date, visit_number, visit_prefix
from nocta.tables.notation import decimal_evidence, parse_amount, parse_number
from nocta.tables.table import Reading, read_table

SCHEMA: dict[str, Any] = {
    "subject": "id",
    "visit": "visit",
    "label": "ill",
    "features": {"crp": {"cost": 1.0}, "plt": {"cost": 2.0}},
}


def read(folder: Path, text: str, encoding: str = "utf-8", **keys: Any) -> Reading:
    path = folder / "t.csv"
    path.write_bytes(text.encode(encoding))
    return read_table(path, {**SCHEMA, **keys})


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        ("3,5", ",", 3.5),
        ("3,5", ".", None),
        ("3.5", ",", None),
        ("1.234", ",", 1234),
        ("1.234", ".", 1.234),
        ("1.234,5", ",", 1234.5),
        ("1,234.5", ".", 1234.5),
        ("12,34,567", ".", None),
        ("1 234 567", ".", 1234567),
        ("1\u202f234,5", ",", 1234.5),
        ("1'234.5", ".", 1234.5),
        ("0,431", ".", None),
        ("-1,5e3", ",", -1500),
        ("1_000", ".", None),
        ("", ",", None),
    ],
)
def test_numbers_are_read_with_their_sign(text: str, decimal: Any, expected: float | None) -> None:
    assert parse_number(text, decimal) == expected


@pytest.mark.parametrize(
    ("text", "sign"),
    [("3,5", ","), ("3.5", "."), ("1,234", "either"), ("0.431", "."), ("7", None), ("low", None)],
)
def test_only_some_numbers_prove_the_sign(text: str, sign: str | None) -> None:
    assert decimal_evidence(text) == sign


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("€ 12,50", (12.5, "€")),
        ("12,50 EUR", (12.5, "EUR")),
        ("CHF 1'272,00", (1272.0, "CHF")),
        ("120,-", (120.0, "")),
        ("7", (7.0, "")),
        ("-1", (-1.0, "")),
        ("v7", (None, "")),
    ],
)
def test_prices_keep_their_currency(text: str, expected: tuple[float | None, str]) -> None:
    assert parse_amount(text, ",") == expected


@pytest.mark.parametrize(
    ("texts", "orders"),
    [
        (["2025-01-10", "2025-01-10 08:30:00"], ["ymd"]),
        (["10.01.2025", "01.02.2025"], ["dmy"]),
        (["10/01/2025", "01/02/2025"], ["dmy", "mdy"]),
        (["10/13/2025", "01/02/2025"], ["mdy"]),
        (["31/10/2025 8:30", "01/02/2025"], ["dmy"]),
        (["31/10/2025", "10/31/2025"], []),
        (["10.01.25"], []),
        ([], []),
    ],
)
def test_dates_have_an_order(texts: list[str], orders: list[str]) -> None:
    assert date_orders(texts) == orders
    assert all(day_of(text, order) is not None for text in texts for order in date_orders(texts))


def test_a_day_is_the_same_however_it_is_written() -> None:
    day = day_of("2025-01-10")
    assert day is not None
    assert [day_of("10.01.2025", "dmy"), day_of("1/10/2025", "mdy")] == [day, day]
    assert day_of("10.01.2025 12:00", "dmy") == day + 0.5
    assert to_date(day) == date(2025, 1, 10)


def test_visits_have_one_name() -> None:
    assert visit_prefix(["V1", "V02"]) == "V"
    assert visit_prefix(["Visit 1", "visit 2"]) == "Visit"
    assert visit_prefix(["V1", "W2"]) is None
    assert visit_prefix(["V1", "last"]) is None
    assert (visit_number("v 02", "V"), visit_number("W2", "V")) == ("02", "W2")


def test_a_german_table_is_read_with_notes(tmp_path: Path) -> None:
    text = "id;visit;crp;plt;ill\nMüller;V1;0,8;1.234;0\nMüller;V2;1,25;980;1\nZoë;V1;;1.100;0\n"
    reading = read(tmp_path, text, "cp1252", first_visit=1)
    np.testing.assert_array_equal(reading.cohort.values[0], np.float32([[0.8, 1234], [1.25, 980]]))
    assert list(reading.cohort.subjects) == ["Müller", "Zoë"]
    notes = "\n".join(reading.notes)
    for part in (
        "columns are separated by ';'",
        "read as Windows-1252; check 'Müller' (line 2)",
        "decimal commas ('0,8' in 'crp') and points between thousands ('1.234' in 'plt')",
        "'V1' is read as number 1",
    ):
        assert part in notes
    assert reading.cohort.schema is not None
    assert reading.cohort.schema["decimal"] == ","
    assert reading.cohort.schema["visit_prefix"] == "V"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_the_encoding_are_no_part_of_a_name(tmp_path: Path, encoding: str) -> None:
    reading = read(tmp_path, "id,visit,crp,plt,ill\nä,0,1,2,0\nb,0,3,4,1\n", encoding)
    assert list(reading.cohort.subjects) == ["ä", "b"]


@pytest.mark.parametrize(("given", "expected"), [(",", 1.234), (".", 1234.0)])
def test_what_could_be_thousands_is_asked(tmp_path: Path, given: str, expected: float) -> None:
    text = 'id,visit,crp,plt,ill\na,0,"1,234",2,0\nb,0,"2,500",3,1\n'
    with pytest.raises(DataError, match="'1,234' in 'crp' could be a decimal number or one with"):
        read(tmp_path, text)
    reading = read(tmp_path, text, decimal=given)
    assert reading.cohort.values[0, 0, 0] == pytest.approx(expected)


def test_points_are_asked_too_where_commas_are_usual(tmp_path: Path) -> None:
    text = "id;visit;crp;plt;ill\na;0;1;1.234;0\nb;0;2;2.345;1\n"
    with pytest.raises(DataError, match=re.escape('Add decimal = "," or decimal = "."')):
        read(tmp_path, text)
    assert read(tmp_path, text, decimal=",").cohort.values[0, 0, 1] == 1234
    # Elsewhere a point is a point.
    assert read(tmp_path, text.replace(";", ",")).cohort.values[0, 0, 1] == np.float32(1.234)


def test_other_columns_tell_what_a_comma_is(tmp_path: Path) -> None:
    text = 'id,visit,crp,plt,ill\na,0,0.5,"1,234",0\nb,0,2.5,"12,345",1\n'
    reading = read(tmp_path, text)
    assert reading.cohort.values[:, 0, 1].tolist() == [1234, 12345]
    assert any("commas separate thousands ('1,234' in 'plt')" in note for note in reading.notes)


def test_two_decimal_signs_are_refused(tmp_path: Path) -> None:
    text = "id;visit;crp;plt;ill\na;0;0,5;2.5;0\nb;0;1,5;3.5;1\n"
    with pytest.raises(DataError, match="'0,5' in 'crp' has a decimal comma, but "):
        read(tmp_path, text)
    with pytest.raises(
        DataError, match=r"column 'plt': not a number: '2.5' .*decimals with a comma"
    ):
        read(tmp_path, text, decimal=",")


def test_rows_that_are_repeated_count_once(tmp_path: Path) -> None:
    text = "id,visit,crp,plt,ill\na,0,1,2,0\na,0,1,2,0\nb,0,3,4,1\n"
    reading = read(tmp_path, text)
    assert "1 row(s) of t.csv repeat an earlier row exactly and are left out." in reading.notes
    with pytest.raises(TimeError, match=r"subject a at 0 \(line 2 and line 3\)"):
        read(tmp_path, text.replace("a,0,1,2,0\nb", "a,0,1,9,0\nb"))
    frame = pd.DataFrame({"id": list("aab"), "visit": 0, "crp": [1.0, 1, None], "plt": 1})
    repeated = read_table(frame.assign(ill=[0, 0, 1]), SCHEMA)
    assert "1 row(s) of the table repeat" in repeated.notes[0]


DATES = ["10.01.2025", "10.07.2025", "13.02.2025"]


def dated(dates: list[str], **keys: Any) -> Reading:
    table = pd.DataFrame({"id": list("aab"), "on": dates, "crp": [1.0, 2, 3], "ill": [0, 1, 1]})
    schema = {"subject": "id", "time": "on", "grid": [0, 6], "time_unit": "months", "label": "ill"}
    return read_table(table, {**schema, "features": {"crp": {"cost": 1.0}}, **keys})


def test_dates_with_points_begin_with_the_day() -> None:
    reading = dated(DATES)
    np.testing.assert_array_equal(reading.cohort.values[0, :, 0], [1, 2])
    assert any("dates begin with the day" in note for note in reading.notes)
    assert reading.cohort.schema is not None
    assert reading.cohort.schema["date_order"] == "dmy"


def test_dates_with_two_readings_are_asked() -> None:
    slashed = ["01/10/2025", "07/10/2025", "02/12/2025"]
    with pytest.raises(TimeError, match='Add date_order = "dmy" or date_order = "mdy"'):
        dated(slashed)
    months = dated(slashed, date_order="mdy").cohort
    np.testing.assert_array_equal(months.values[0, :, 0], [1, 2])
    with pytest.raises(TimeError, match="its dates are not in the order mdy"):
        dated(DATES, date_order="mdy")
