"""What `DATA` means on the command line: a built-in data set, or a table and its schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nocta.cohort.cohort import Cohort
    from nocta.datasets import LoadReport

TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A built-in data set (see `nocta datasets`), a CSV or Parquet file, or a folder of "
        "Parquet parts.",
        show_default=False,
    ),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="Schema of a file; by default STEM.schema.toml or schema.toml beside it.",
        show_default=False,
    ),
]
PathOption = Annotated[
    Path | None,
    typer.Option(
        "--path",
        help="Folder or file with the downloaded data of a built-in data set.",
        show_default=False,
    ),
]


def is_table(data: str) -> bool:
    """Whether `DATA` names a file, or a folder of parts, rather than a built-in data set."""
    path = Path(data)
    named = data.lower().endswith(TABLE_SUFFIXES) or len(path.parts) > 1
    return named or path.is_file() or is_folder(data)


def is_folder(data: str) -> bool:
    """Whether `DATA` names a folder of Parquet parts: a cohort that may be too large to hold."""
    return any(Path(data).glob("*.parquet")) or any(Path(data).glob("*.pq"))


def find_schema(data: str | Path, schema: Path | None = None) -> Path:
    """The schema of a table file: the one given, or the one that lies beside it."""
    from nocta.exceptions import DataFileMissing

    path = Path(data)
    if schema is not None:
        if not schema.is_file():
            raise DataFileMissing(f"There is no schema file '{schema}'.")
        return schema
    beside = [path.with_name(f"{table_stem(path)}.schema.toml"), path.with_name("schema.toml")]
    if path.is_dir():
        beside.insert(0, path / "schema.toml")
    for candidate in beside:
        if candidate.is_file():
            return candidate
    raise DataFileMissing(
        f"'{path}' has no schema: neither '{beside[0]}' nor '{beside[1]}' exists. "
        f"Draft one with `nocta init {path}`, or name one with --schema."
    )


def table_stem(path: Path) -> str:
    """The file's name without what says it is a table: `clinic.csv.gz` becomes `clinic`."""
    name = path.name
    for suffix in sorted(TABLE_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem


def load_data(data: str, schema: Path | None = None, **options: Any) -> Cohort:
    """The cohort that `DATA` names; what was read and what was left out goes to the error stream.

    Args:
        data: Name of a built-in data set, or path of a table.
        schema: Schema of a table; looked for beside it by default.
        options: Passed on to the loader of a built-in data set (`path`, `seed`, ...); those
            that are `None` are not.
    """
    cohort, report = load_with_report(data, schema, **options)
    typer.echo(report.short(), err=True)
    for note in _notes(report):
        typer.echo(f"Note: {note}", err=True)
    return cohort


def load_with_notes(
    data: str, schema: Path | None = None, **options: Any
) -> tuple[Cohort, tuple[str, ...]]:
    """Like `load_data`, with what was left out and decided on the way, and nothing printed."""
    cohort, report = load_with_report(data, schema, **options)
    return cohort, _notes(report)


def _notes(report: LoadReport) -> tuple[str, ...]:
    return (*(f"left out {d}" for d in report.dropped), *report.notes)


def load_with_report(
    data: str, schema: Path | None = None, **options: Any
) -> tuple[Cohort, LoadReport]:
    """The cohort that `DATA` names and a report on how it was read."""
    options = {name: value for name, value in options.items() if value is not None}
    if is_table(data):
        return _load_table(Path(data), schema, options)
    from nocta import datasets
    from nocta.exceptions import ConfigError

    if schema is not None:
        raise ConfigError(
            f"--schema belongs to a table file; '{data}' names a built-in data set, which has "
            f"its own. If '{data}' is a file, write its path in full."
        )
    return datasets.load_with_report(data, **options)


def _load_table(
    path: Path, schema: Path | None, options: dict[str, Any]
) -> tuple[Cohort, LoadReport]:
    from nocta.cohort.table import read_table
    from nocta.datasets import LoadLog, LoadReport
    from nocta.exceptions import ConfigError, DataFileMissing

    if options.get("path") is not None:
        raise ConfigError(f"--path belongs to a built-in data set; '{path}' is a table of its own.")
    if not path.is_file() and not is_folder(str(path)):
        raise DataFileMissing(f"There is no file '{path}', nor a folder with Parquet files.")
    reading = read_table(path, find_schema(path, schema))
    log = LoadLog(sources=[str(path)], notes=list(reading.notes))
    return reading.cohort, LoadReport.of(reading.cohort, log)


def parse_numbers(option: str, text: str | None) -> tuple[float, ...]:
    """The value of an option that takes numbers separated by commas."""
    if text is None:
        return ()
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found:
        raise typer.BadParameter(
            f"'{text}' is not a list of numbers such as 0.1,0.3,1", param_hint=option
        )
    return found
