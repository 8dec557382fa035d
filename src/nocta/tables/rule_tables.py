"""The tables `[constraints]` and `[protocols.NAME]` of `schema.toml`.

A protocol may also be a CSV file with a row per visit and a column per feature; it is read with
the schema, so that the schema of a model holds all of it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nocta.tables.problems import Issues

At = Literal["first"] | list[int] | bool
Least = Annotated[int, Field(ge=1)]
#: Feature to the slots at which a protocol acquires it.
ProtocolTable = dict[str, At]

_SLOTS = 'true (every visit), "first", or a list of slot numbers such as [0, 2]'
#: What the entries of each table should be, for messages.
EXPECTED = {
    "constraints": "a table such as [constraints]",
    "constraints.always": _SLOTS,
    "constraints.never": _SLOTS,
    "constraints.at_most": "a whole number of at least 1",
    "constraints.apart": "a whole number of at least 1",
    "constraints.after": 'the name of a feature, or a list such as ["blood", "scan"]',
    "constraints.max_visits": "a whole number of at least 1",
    "constraints.together": 'lists of features, such as [["left", "right"]]',
    "protocols": "a table per protocol, such as [protocols.current], or the name of a CSV file",
}
_YES, _NO = {"x", "1", "yes", "true", "y"}, {"", "0", "no", "false", "n", "-"}


class ConstraintTable(BaseModel):
    """`[constraints]`: what every policy must and must not acquire; see `nocta.Constraints`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    always: dict[str, At] | None = None
    never: dict[str, At] | None = None
    at_most: dict[str, Least] | None = None
    apart: dict[str, Least] | None = None
    max_visits: Least | None = None
    together: list[list[str]] | None = None
    after: dict[str, str | list[str]] | None = None

    def given(self) -> dict[str, Any]:
        """Only what is constrained."""
        return self.model_dump(exclude_none=True)


def expected(path: tuple[str, ...]) -> str | None:
    """What the entry at a path of these tables should be; `None` for other tables."""
    if path[0] == "protocols" and len(path) == 3:
        return _SLOTS
    return EXPECTED.get(".".join(path[:2])) or EXPECTED.get(path[0])


def highest_slot(data: Mapping[str, Any]) -> int:
    """The highest slot that is named in tables of constraints or protocols, or -1."""
    found = [-1]
    for value in data.values():
        if isinstance(value, Mapping):
            found.append(highest_slot(value))
        elif isinstance(value, list):
            found += [v for v in value if type(v) is int]
    return max(found)


def inline_protocols(data: dict[str, Any], folder: Path, issues: Issues) -> None:
    """Replace the name of a CSV file by the protocol in it; paths are relative to the schema."""
    tables = data.get("protocols")
    if not isinstance(tables, dict):
        return
    first = data.get("first_visit", 0)
    for name, table in tables.items():
        if isinstance(table, str):
            tables[name] = _read_csv(folder / table, first if type(first) is int else 0, issues)


def _read_csv(path: Path, first_visit: int, issues: Issues) -> ProtocolTable:
    """A protocol from a table with the visits in its first column and a column per feature."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        issues.add(path.name, f"the protocol cannot be read ({why}).", "Check its path.")
        return {}
    lines = [line for line in text.splitlines() if line.strip()]
    marks = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=marks)]
    out: dict[str, list[int]] = {name: [] for name in (rows[0][1:] if rows else [])}
    for number, row in enumerate(rows[1:], start=2):
        slot = int(row[0]) - first_visit if row[0].isdecimal() else None
        if slot is None:
            issues.add(f"{path.name}, line {number}", f"'{row[0]}' is not the number of a visit.")
            continue
        for name, cell in zip(out, row[1:], strict=False):
            if cell.lower() in _YES:
                out[name].append(slot)
            elif cell.lower() not in _NO:
                where = f"{path.name}, line {number}, column '{name}'"
                issues.add(where, f"'{cell}' is not clear.", "Write x to acquire, or nothing.")
    return {name: slots for name, slots in out.items() if slots}
