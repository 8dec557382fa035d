"""`nocta protocol`: a model's policy as a fixed schedule and short trees, to read and approve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from nocta.cli import running
from nocta.cli.data import PathOption, SchemaOption, is_table
from nocta.cli.outputs import make_table, say
from nocta.core.errors import ConfigError

if TYPE_CHECKING:
    from nocta.runs.protocol_run import ProtocolDocument


def protocol(
    model: running.ModelArgument,
    data: Annotated[
        str | None,
        Argument(
            metavar="[DATA]", help="A data set or table. Default: the data that the fit named."
        ),
    ] = None,
    out: Annotated[
        Path, Option("--out", help="Folder for protocol.md, protocol.html and protocol.json.")
    ] = Path("protocol"),
    depth: Annotated[
        int, Option("--depth", min=1, max=5, help="Maximum number of questions of a tree.")
    ] = 2,
    cost_weight: Annotated[
        float | None,
        Option(
            "--cost-weight",
            min=0.0,
            help="Loss that one unit of cost is worth. Default: the model's default point.",
        ),
    ] = None,
    constraint: running.ConstraintOption = None,
    schema: SchemaOption = None,
    path: PathOption = None,
) -> None:
    """Write a model's policy as a protocol that a person can follow, and what it loses.

    Two forms: the best fixed schedule of about the same cost, and a short tree of questions for
    each visit, learned from the model's decisions on training and validation subjects. Cost and
    quality of both are measured on the subjects kept aside, beside those of the model itself and
    of the protocols in the schema.
    """
    from nocta.methods.saving import load_saved
    from nocta.model.choice.default import DefaultPoint
    from nocta.report.protocol import summary, write_protocol
    from nocta.runs.protocol_run import make_protocol, parts_of

    if out.is_file():
        raise ConfigError(f"'{out}' is a file; --out names a folder.")
    saved = load_saved(model)
    table = data is not None and is_table(data)
    parts = parts_of(saved, data, table=table, schema=schema, path=path, constraints=constraint)
    point = saved.default_point
    if cost_weight is not None:
        if not saved.method.has_cost_weight:
            raise ConfigError(f"Method '{saved.name}' has no cost weight; leave out --cost-weight.")
        point = DefaultPoint({"cost_weight": cost_weight}, "as given")
    sizes = f"{len(parts.train) + len(parts.val)} subjects to make it with"
    say(f"{parts.test.name}: {sizes}, {len(parts.test)} {parts.note}.")
    document = make_protocol(saved, parts, point, depth)
    written = write_protocol(document, out)
    _print(document)
    for line in summary(document):
        typer.echo(line)
    typer.echo(f"Wrote {', '.join(map(str, written))}.")


def _print(document: ProtocolDocument) -> None:
    from nocta.report.protocol import loss_rows

    head, rows = loss_rows(document)
    table = make_table(*head, n_text=1, wrap=True)
    for row in rows:  # without intervals, which are in the files
        table.add_row(*(cell.partition(" (")[0] for cell in row))
    Console(highlight=False).print(table)
