"""What `DATA` means on the command line: a built-in data set, or a table and its schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from nocta.cli.options import parse_options
from nocta.cli.outputs import say, say_notes
from nocta.core.errors import ConfigError, DataFileMissing

if TYPE_CHECKING:
    from nocta.runs.setup import DataSource

TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")

DataArgument = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A data set (see `nocta datasets`), a CSV or Parquet file, or a folder of Parquet "
        "files.",
    ),
]
SchemaOption = Annotated[
    Path | None,
    Option(
        "--schema", help="Schema of a file. Default: STEM.schema.toml or schema.toml beside it."
    ),
]
PathOption = Annotated[
    Path | None, Option("--path", help="Folder or file with the data of a built-in data set.")
]
DataOptions = Annotated[
    list[str] | None,
    Option(
        "--data-option",
        metavar="NAME=VALUE",
        help="Set an option of a built-in data set, such as min_labels=3. Repeatable. "
        "`nocta datasets DATA` lists the options.",
    ),
]


def is_table(data: str) -> bool:
    """Whether `DATA` names a file or a folder of files rather than a built-in data set."""
    path = Path(data)
    named = data.lower().endswith(TABLE_SUFFIXES) or len(path.parts) > 1
    return named or path.is_file() or is_folder(data)


def is_folder(data: str) -> bool:
    """Whether `DATA` names a folder of Parquet files: a cohort that may not fit in memory."""
    return any(Path(data).glob("*.parquet")) or any(Path(data).glob("*.pq"))


def find_schema(data: str | Path, schema: Path | None = None) -> Path:
    """The schema of a table file: the one given, or the one found beside it."""
    path = Path(data)
    if schema is not None:
        if not schema.is_file():
            raise DataFileMissing(f"Schema file '{schema}' does not exist.")
        return schema
    beside = [path.parent / f"{table_stem(path)}.schema.toml", path.parent / "schema.toml"]
    if path.is_dir():
        beside.insert(0, path / "schema.toml")
    for candidate in beside:
        if candidate.is_file():
            return candidate
    raise DataFileMissing(
        f"'{path}' has no schema: neither '{beside[0]}' nor '{beside[1]}' exists. "
        f"Draft one with `nocta init {path}`, or give one with --schema."
    )


def table_stem(path: Path) -> str:
    """The file's name without its table suffix: `clinic.csv.gz` becomes `clinic`."""
    name = path.name
    for suffix in sorted(TABLE_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem


def data_source(
    data: str,
    schema: Path | None = None,
    path: Path | None = None,
    options: Sequence[str] | None = None,
    split_column: str | None = None,
    fractions: str | None = None,
    constraints: Sequence[str] | None = None,
) -> DataSource:
    """The data that `DATA` and its options name, checked before anything is read."""
    from nocta import datasets
    from nocta.runs.setup import DataSource

    chosen = parse_data_options(data, options)
    if is_table(data):
        _check_table(data, path)
    elif Path(data).is_dir() and data not in datasets.names():
        raise DataFileMissing(
            f"'{data}' is a folder without Parquet files (names that end in .parquet). Give a "
            f"table file, or a name that `nocta datasets` lists."
        )
    elif schema is not None:
        raise ConfigError(
            f"--schema is for table files; '{data}' is a built-in data set and has its own "
            f"schema. If you mean a file, give its full path."
        )
    source = DataSource(
        data=data,
        schema=str(find_schema(data, schema)) if is_table(data) else None,
        path=None if path is None else str(path),
        split_column=split_column,
        fractions=parse_numbers("--fractions", fractions) or None,
        data_options=chosen,
        constraints=constraints,
    )
    source.check_split_column()
    return source


def parse_data_options(data: str, pairs: Sequence[str] | None) -> dict[str, Any]:
    """The values of `--data-option`, checked against the options of the data set's loader."""
    from nocta import datasets

    if not pairs:
        return {}
    if is_table(data):
        raise ConfigError(
            f"--data-option is for built-in data sets; '{data}' is a table, and its schema says "
            f"how to read it."
        )
    dataset = datasets.get(data)
    options = parse_options(pairs, dataset.text_options)
    if "path" in options:
        raise ConfigError("'path' is not a data option; give the files with --path.")
    return dataset.check(options)


def _check_table(data: str, path: Path | None) -> None:
    if path is not None:
        raise ConfigError(f"--path is for built-in data sets; '{data}' is a table.")
    if not Path(data).is_file() and not is_folder(data):
        raise DataFileMissing(
            f"'{data}' does not exist. Give a CSV or Parquet file, a folder of Parquet files, or "
            f"a name that `nocta datasets` lists."
        )


def say_what_was_read(source: DataSource, seed: int = 0) -> None:
    """Read the data of a seed, and tell the user what was found, left out, and wrong.

    A folder of Parquet files is skipped: a description would have to read all of it.
    """
    if is_folder(source.data):
        return
    summary = source.summary(seed)
    say(summary.short())
    say_notes(summary.remarks, summary.warnings)


def parse_numbers(option: str, text: str | None) -> tuple[float, ...]:
    """The value of an option that takes numbers separated by commas."""
    if text is None:
        return ()
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise typer.BadParameter(
            f"'{text}' is not a list of numbers such as 0.1,0.3,1", param_hint=option
        )
    return found
