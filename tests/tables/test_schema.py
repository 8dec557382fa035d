"""A schema says what it means, goes through JSON and back, and its mistakes are explained."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nocta.tables.problems import Issues
from nocta.tables.schema import FeatureSpec, Schema
from nocta.tables.schema_file import load_schema
from nocta.tables.table import read_cohort
from nocta.testing import tiny_cohort

EXAMPLE = Path(__file__).parents[2] / "examples" / "clinic.schema.toml"


def problems_of(source: Any) -> list[str]:
    issues = Issues()
    load_schema(source, issues)
    return [str(p) for p in issues.problems]


def test_the_example_is_sound() -> None:
    issues = Issues()
    schema = load_schema(EXAMPLE, issues)
    assert schema is not None
    assert issues.problems == []
    catalog = schema.catalog()
    assert catalog.names[-1] == "elastography"
    assert catalog.open_slots[:, 0].tolist() == [True, False, False, False, False]
    assert catalog.price_of_everything == 2 + 5 * (1 + 7 + 5 + 8 + 60 + 10 + 5)


def test_a_schema_goes_through_json(visits: pd.DataFrame, schema: dict[str, Any]) -> None:
    cohort = read_cohort(visits, schema)
    saved = json.loads(json.dumps(cohort.schema))
    assert saved["n_visits"] == 3
    assert saved["classes"] == ["mild", "moderate", "severe"]
    again = Schema.model_validate(saved)
    assert again.catalog() == cohort.catalog
    assert json.loads(json.dumps(Schema.of(cohort).model_dump(mode="json", exclude_none=True)))
    assert read_cohort(visits, again).schema == cohort.schema


def test_the_schema_of_a_cohort_follows_its_prices(
    visits: pd.DataFrame, schema: dict[str, Any]
) -> None:
    cohort = read_cohort(visits, schema)
    costlier = cohort.with_catalog(cohort.catalog.with_costs({"alt": 30.0}))
    of = Schema.of(costlier)
    assert of.catalog() == costlier.catalog
    assert of.categories == {"sex": ["F", "M"]}


def test_a_cohort_without_a_table_has_a_plain_schema() -> None:
    cohort = tiny_cohort(4)
    schema = Schema.of(cohort)
    assert (schema.subject, schema.visit, schema.n_visits) == ("subject", "visit", 4)
    assert schema.catalog() == cohort.catalog


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subjct": "x"}, "there is no key 'subjct'. Did you mean 'subject'?"),
        ({"colour": "x"}, "there is no key 'colour'. Allowed keys: subject, visit"),
        ({"subject": 3}, "subject is 3. It should be the name of a column"),
        (
            {"context": "age", "categories": {}},
            "context is 'age'. It should be a list of column names",
        ),
        ({"grid": [0, 1]}, "grid goes with time, not with visit"),
        ({"time": "years"}, "it has both visit and time"),
        ({"visit": None}, "names no visit or time column"),
        ({"visit": None, "time": "y"}, "time needs a grid"),
        ({"visit": None, "time": "y", "grid": "0, 1"}, "grid is '0, 1'. It should be a list"),
        ({"visit": None, "time": "y", "grid": [0, 2, 1]}, "in increasing order"),
        ({"visit": None, "time": "y", "grid": [0, 1], "end": 1}, "end is 1.0, not after the grid"),
        ({"snap": "after"}, 'snap is \'after\'. It should be "nearest" or "before"'),
        ({"n_visits": 0}, "n_visits is 0. It should be a whole number of at least 1"),
        ({"classes": ["a", "b", "a"]}, "class 'a' is listed twice"),
        (
            {"categories": {"sx": ["F"]}},
            "[categories]: the schema uses no column 'sx'. Did you mean 'sex'",
        ),
        ({"categories": {"sex": "F"}}, "[categories]: sex is 'F'. It should be a list of texts"),
        ({"features": {"alt": {}}}, "[features.alt]: cost is missing"),
        ({"features": {"alt": 3.0}}, "[features]: alt is 3.0. It should be a table per feature"),
        (
            {"features": {"alt": {"cost": "3"}}},
            "[features.alt]: cost is '3'. It should be a number",
        ),
        ({"features": {"alt": {"cost": True}}}, "cost is True"),
        ({"features": {"alt": {"cost": 1, "att": [0]}}}, "no key 'att'. Did you mean 'at'?"),
        ({"features": {"alt": {"cost": 1, "at": "last"}}}, "at is 'last'. It should be \"first\""),
        (
            {"features": {"s": {"cost": 1, "columns": "alt"}}},
            "columns is 'alt'. It should be a list",
        ),
        ({"groups": {"blood": {}}}, "[groups.blood]: fee is missing"),
        ({"visit_fee": {"fee": 3}}, "[visit_fee]: there is no key 'fee'"),
        ({"visit_fee": 3.0}, "visit_fee is 3.0. It should be a table with its cost"),
    ],
)
def test_each_mistake_is_explained_once(
    schema: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    mistaken = {k: v for k, v in {**schema, **change}.items() if v is not None}
    found = problems_of(mistaken)
    assert len(found) == 1
    assert message in found[0]


def test_several_mistakes_come_together(schema: dict[str, Any]) -> None:
    schema["features"]["alt"] = {"cost": "free", "grp": "blood"}
    schema |= {"label": 7, "currencies": "$"}
    assert len(problems_of(schema)) == 4


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text("subject = patient\n")
    assert "schema.toml: it is not valid TOML" in problems_of(path)[0]
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in problems_of(path)[0]
    assert "cannot be read" in problems_of(tmp_path / "none.toml")[0]


def test_the_reference_page_tells_the_truth() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "reference" / "schema.md").read_text("utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    assert problems_of(tomllib.loads(example)) == []
    documented = set(re.findall(r"^\| `\[?([a-z_]+)", page, flags=re.MULTILINE))
    assert set(Schema.model_fields) - {"features"} <= documented
    assert set(FeatureSpec.model_fields) <= documented
