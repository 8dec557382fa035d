"""What `DATA` means on the command line: a built-in data set, or a table and its schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nocta.cli.options import parse_options

if TYPE_CHECKING:
    from nocta.runs.setup import DataSource

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
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--data-option",
        metavar="NAME=VALUE",
        help="Option of a built-in data set, such as min_labels=3; may be repeated. "
        "`nocta datasets DATA` lists them.",
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
    from nocta.core.errors import DataFileMissing

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


def keep_inputs(targets: Sequence[Path | None], *inputs: str | Path | None) -> None:
    """Refuse to write over what is read, whatever else is asked for."""
    from nocta.core.errors import ConfigError

    read = [Path(given) for given in inputs if given is not None]
    for target in targets:
        if target is not None and target.exists():
            if any(given.exists() and target.samefile(given) for given in read):
                raise ConfigError(f"'{target}' is what is read; choose another --out.")


def refuse_folders(targets: Sequence[Path | None]) -> None:
    """Refuse to write a file where there is a folder, or below what is a file."""
    from nocta.core.errors import ConfigError

    for target in targets:
        if target is not None and target.is_dir():
            raise ConfigError(f"'{target}' is a folder; name a file in it.")
        above = () if target is None else [p for p in target.parents if p.is_file()]
        if above:
            raise ConfigError(f"'{above[0]}' is a file; '{target}' cannot be written below it.")


def table_stem(path: Path) -> str:
    """The file's name without what says it is a table: `clinic.csv.gz` becomes `clinic`."""
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
) -> DataSource:
    """What `DATA` and its options name; what cannot be is refused before anything is read.

    Args:
        data: Name of a built-in data set, or path of a table.
        schema: Schema of a table; looked for beside it by default.
        path: Files of a built-in data set.
        options: Options of its loader, as they were typed.
        split_column: See `DataSource`.
        fractions: See `DataSource`; as typed.
    """
    from nocta import datasets
    from nocta.core.errors import ConfigError, DataFileMissing
    from nocta.runs.setup import DataSource

    chosen = parse_data_options(data, options)
    if is_table(data):
        _check_table(data, path)
    elif Path(data).is_dir() and data not in datasets.names():
        raise DataFileMissing(
            f"'{data}' is a folder without Parquet files (names that end in .parquet). Name one "
            f"table file; `nocta datasets` lists the data sets that are built in."
        )
    elif schema is not None:
        raise ConfigError(
            f"--schema belongs to a table file; '{data}' names a built-in data set, which has "
            f"its own. If '{data}' is a file, write its path in full."
        )
    source = DataSource(
        data=data,
        schema=str(find_schema(data, schema)) if is_table(data) else None,
        path=None if path is None else str(path),
        split_column=split_column,
        fractions=parse_numbers("--fractions", fractions) or None,
        data_options=chosen,
    )
    source.check_split_column()
    return source


def parse_data_options(data: str, pairs: Sequence[str] | None) -> dict[str, Any]:
    """The values of `--data-option`, checked against what the data set's loader takes."""
    from nocta import datasets
    from nocta.core.errors import ConfigError

    if not pairs:
        return {}
    if is_table(data):
        raise ConfigError(
            f"--data-option belongs to a built-in data set; '{data}' is a table, which is read "
            f"as its schema says."
        )
    dataset = datasets.get(data)
    options = parse_options(pairs, dataset.text_options)
    if "path" in options:
        raise ConfigError("The files of a data set are named with --path, not as an option.")
    return dataset.check(options)


def _check_table(data: str, path: Path | None) -> None:
    from nocta.core.errors import ConfigError, DataFileMissing

    if path is not None:
        raise ConfigError(f"--path belongs to a built-in data set; '{data}' is a table of its own.")
    if not Path(data).is_file() and not is_folder(data):
        raise DataFileMissing(f"There is no file '{data}', nor a folder with Parquet files.")


def say_what_was_read(source: DataSource, seed: int = 0) -> None:
    """Read the data of a seed, and tell the error stream what is in them and was left out.

    What is wrong with the data is said here, too. A cohort of many parts is passed over: to
    describe it is to go through all of it.
    """
    if is_folder(source.data):
        return
    summary = source.summary(seed)
    typer.echo(summary.short(), err=True)
    say_remarks(summary.remarks, summary.warnings)


def say_remarks(notes: Sequence[str], warnings: Sequence[str] = ()) -> None:
    """Tell the error stream what was noticed while data were read."""
    for warning in warnings:
        typer.echo(f"Warning: {warning}", err=True)
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


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
