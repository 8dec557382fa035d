"""The next acquisition of every subject as a CSV file that people can work with."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nocta.core.errors import ConfigError
from nocta.tables.schema import Schema

SUFFIX = ".csv"
_LAST = ["features", "cost", "prediction", "probability"]


def check_target(out: Path, force: bool) -> None:
    """Refuse to replace a file, unless it is an order list and `force` is given."""
    if out.is_dir():
        raise ConfigError(f"'{out}' is a folder; remove it, or choose another --out.")
    if not out.exists():
        return
    if not force:
        raise ConfigError(f"'{out}' exists. Replace it with --force, or choose another --out.")
    with open(out, encoding="utf-8", errors="replace", newline="") as file:
        header = next(csv.reader(file), [])
    if header[:2] != ["subject", "visit"] or header[-len(_LAST) :] != _LAST:
        raise ConfigError(f"'{out}' was not made by nocta score; choose another --out.")


def write(path: Path, files: Iterable[Path], schema: Schema) -> None:
    """Write the decisions in Parquet files of scores as one list."""
    from pyarrow import parquet

    with open(path, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        for i, file in enumerate(files):
            table = parquet.read_table(file, partitioning=None)
            dated = "date" in table.column_names
            if i == 0:
                writer.writerow(_header(schema, dated))
            writer.writerows(_line(row, schema, dated) for row in table.to_pylist())


def _header(schema: Schema, dated: bool) -> list[str]:
    time = [schema.time_unit or "time"] if schema.grid else []
    return ["subject", "visit", *time, *(["date"] if dated else []), *_LAST]


def _line(row: dict[str, Any], schema: Schema, dated: bool) -> Sequence[object]:
    slot = row["time"]
    when: list[object] = [_visit(slot, schema)]
    if schema.grid:
        when.append("" if slot is None else f"{schema.grid[slot]:.10g}")
    if dated:
        when.append(row["date"] or "")
    features, cost = "; ".join(row["features"]), f"{row['cost']:.2f}"
    return [
        row["subject"], *when, features, cost, row["predicted"], f"{max(row['probability']):.3f}",
    ]  # fmt: skip


def _visit(slot: int | None, schema: Schema) -> str:
    """A visit as the table names it; on a grid, its number from 1."""
    if slot is None:
        return ""
    return f"{schema.visit_prefix or ''}{slot + (1 if schema.grid else schema.first_visit)}"
