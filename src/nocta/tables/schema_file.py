"""Reads `schema.toml` and lists every mistake in it, in terms of the file's keys."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from nocta.core.errors import Kind, did_you_mean
from nocta.tables.problems import Issues
from nocta.tables.rule_tables import ConstraintTable, expected, inline_protocols
from nocta.tables.schema import EventSpec, FeatureSpec, GroupSpec, Schema, VisitFee

_COLUMN = "the name of a column, in quotes"
_EXPECTED = {
    **dict.fromkeys(("subject", "visit", "time", "label", "split", "group"), _COLUMN),
    "cost": "a number, or a list with one number per visit",
    "fee": "a number",
    "columns": 'a list of column names, such as ["left", "right"]',
    "at": '"first", or a list of slot numbers such as [0, 4]',
    "grid": "a list of finite numbers, the time of every slot",
    "snap": '"nearest" or "before"',
    "end": "a number",
    "first_visit": "a whole number",
    "n_visits": "a whole number of at least 1",
    "classes": "a list of classes",
    "context": "a list of column names",
    "categories": 'a list of texts per column, such as sex = ["female", "male"]',
    "bins": "a list of numbers, such as [5.7, 6.5]",
    "nominal": "a list of context columns",
    "decimal": '"." or ","',
    "date_order": '"dmy", "mdy" or "ymd"',
    "visit_prefix": 'text, such as "V"',
    "event": "a table with time, status, happened and within",
    "happened": "a list of the texts of `status` that are events",
    "within": "a number above 0, in the unit of the times",
    "features": "a table per feature, such as [features.mri]",
    "groups": "a table per group, such as [groups.blood]",
    "visit_fee": "a table with its cost",
}
# Placeholders for wrong values, so that one mistake is not reported twice.
_PLACEHOLDERS: dict[str, Any] = {
    **dict.fromkeys(("subject", "visit", "time", "label"), ""),
    **dict.fromkeys(("cost", "fee"), 0.0),
    **dict.fromkeys(("status",), ""),
    "grid": [],
    "happened": [],
    "within": 1.0,
}


def load_schema(source: str | Path | Schema | Mapping[str, Any], issues: Issues) -> Schema | None:
    """Read a schema (a path, a mapping or a `Schema`) and add every mistake to the issues.

    A wrong entry is left out or replaced by a placeholder, so that the table can be checked
    against the rest. `None` if nothing can be checked.
    """
    if isinstance(source, Schema):
        _check_rules(source, issues)
        return source
    if isinstance(source, Mapping):
        return _parse(source, issues)
    path = Path(source)
    issues.schema = path.name
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        inline_protocols(data, path.parent, issues)
        return _parse(data, issues)
    except RecursionError:
        issues.add(path.name, "it is nested too deeply.", "Write it with fewer levels.")
    except OSError as error:
        issues.add(str(path), f"the schema cannot be read ({error.strerror}).", "Check the path.")
    except UnicodeDecodeError:
        issues.add(path.name, "the schema is not UTF-8 text.", "Name a TOML file as the schema.")
    except tomllib.TOMLDecodeError as error:
        issues.add(path.name, f"it is not valid TOML: {error}.", "Correct that line.")
    return None


def _parse(source: Mapping[str, Any], issues: Issues) -> Schema | None:
    data = deepcopy(dict(source))
    if data.get("grid") == []:
        _report_and_repair(data, ("grid",), issues)
    for _ in range(100):  # every round repairs at least one mistake
        try:
            schema = Schema.model_validate(data)
        except ValidationError as error:
            for path in _places(error, data):
                _report_and_repair(data, path, issues)
        else:
            _check_rules(schema, issues)
            return schema
    return None


def _places(error: ValidationError, data: Any) -> list[tuple[str, ...]]:
    """The keys of the file that have mistakes, each once."""
    places: dict[tuple[str, ...], None] = {}
    for details in error.errors():
        inside, path = data, []
        for key in details["loc"]:
            if not isinstance(inside, dict) or (key not in inside and details["type"] != "missing"):
                break
            path.append(str(key))
            inside = inside.get(key)
        places[tuple(path)] = None
    return list(places)


def _known_keys(path: tuple[str, ...]) -> list[str] | None:
    """The keys allowed at the end of `path`; `None` if the user chooses the name."""
    parts: dict[str, type[BaseModel]] = {"features": FeatureSpec, "groups": GroupSpec}
    if len(path) == 1:
        return list(Schema.model_fields)
    if path[0] == "constraints":
        return list(ConstraintTable.model_fields) if len(path) == 2 else None
    if path[0] in parts:
        return None if len(path) == 2 else list(parts[path[0]].model_fields)
    tables: dict[str, type[BaseModel]] = {"visit_fee": VisitFee, "event": EventSpec}
    return list(tables[path[0]].model_fields) if path[0] in tables else None


def _report_and_repair(data: dict[str, Any], path: tuple[str, ...], issues: Issues) -> None:
    *tables, key = path
    place = f"{issues.schema}, [{'.'.join(tables)}]" if tables else issues.schema
    kind: Kind = "cost" if key in ("cost", "fee") else "data"
    parent = data
    for table in tables:
        parent = parent[table]
    known = _known_keys(path)
    if key not in parent:
        issues.add(place, f"{key} is missing.", f"Add {key} = ..., {_EXPECTED[key]}.", kind)
        parent[key] = _PLACEHOLDERS[key]
        return
    found = parent.pop(key)
    if known is not None and key not in known:
        hint = did_you_mean(key, known) or f" Allowed keys: {', '.join(known)}."
        issues.add(place, f"there is no key '{key}'.{hint}")
        return
    what = expected(path) or _EXPECTED.get(key if known else path[0], "text, in quotes")
    issues.add(place, f"{key} is {found!r}.", f"It should be {what}.", kind)
    if key == "columns" and isinstance(found, str):
        parent[key] = [found]
    elif known and key in _PLACEHOLDERS:
        parent[key] = deepcopy(_PLACEHOLDERS[key])


def _check_rules(schema: Schema, issues: Issues) -> None:
    """Check rules that involve several keys."""
    where = issues.schema
    _check_clock(schema, where, issues)
    used = {column for _, column in schema.columns_by_role()}
    for column in schema.categories:
        if column not in used:
            hint = did_you_mean(column, used) or " Remove it."
            issues.add(f"{where}, [categories]", f"the schema uses no column '{column}'.{hint}")
    _check_label(schema, where, issues)
    for column in schema.nominal:
        if column not in schema.context or column not in schema.categories:
            issues.add(
                where,
                f"nominal names '{column}', which is not a context column with [categories].",
                "Name columns of both, or remove it.",
            )
    names = [str(c) for c in schema.classes or []]
    for name in sorted({n for n in names if names.count(n) > 1}):
        issues.add(where, f"class '{name}' is listed twice.", "List every class once.")


def _check_label(schema: Schema, where: str, issues: Issues) -> None:
    n_bins, n_classes = len(schema.bins or []) + 1, len(schema.classes or [])
    if schema.label is not None and schema.event is not None:
        issues.add(where, "it has both label and [event].", "Keep one of them.")
    if schema.event is not None and schema.time is None:
        issues.add(where, "[event] needs a time column.", "Give time and grid.", "time")
    if schema.bins is None:
        return
    if schema.label is None:
        issues.add(where, "bins cut a label, and there is none.", 'Add label = "...".')
    if not schema.bins or any(b <= a for a, b in pairwise(schema.bins)):
        issues.add(where, f"bins are {schema.bins}.", "List at least one number, in order.")
    elif schema.classes is not None and n_classes != n_bins:
        issues.add(where, f"bins make {n_bins} classes, and {n_classes} are listed.", "Match them.")


def _check_clock(schema: Schema, where: str, issues: Issues) -> None:
    grid = schema.grid or []
    if schema.visit is None and schema.time is None:
        issues.add(
            where,
            "it names no visit or time column.",
            'Add visit = "..." for slot numbers, or time = "..." with grid = [...].',
        )
    if schema.visit is not None and schema.time is not None:
        issues.add(where, "it has both visit and time.", "Keep one of them.")
    elif schema.time is not None and schema.grid is None:
        issues.add(where, "time needs a grid.", f"Add grid = [...], {_EXPECTED['grid']}.", "time")
    elif schema.visit is not None and schema.grid is not None:
        issues.add(where, "grid goes with time, not with visit.", "Remove one of them.", "time")
    if any(b <= a for a, b in pairwise(grid)):
        issues.add(where, f"grid is {grid}.", "List every time once, in increasing order.", "time")
    elif grid and schema.end is not None and schema.end <= grid[-1]:
        issues.add(where, f"end is {schema.end}, not after the grid.", "Give a later end.", "time")
