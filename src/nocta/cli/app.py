"""The `nocta` command: the table of sub-commands, and how errors are shown.

Each sub-command is the function `NAME` of `cli/NAME.py`. It is imported when it is called, so
`nocta --help` answers at once. To add a command, write that file and add a row to `COMMANDS`.
"""

from __future__ import annotations

import errno
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from nocta.core.errors import NoctaError

_DEBUG = "nocta.debug"


class Row(NamedTuple):
    """A line of `nocta --help`, and the example at the end of the command's own help."""

    help: str
    example: str


COMMANDS: dict[str, Row] = {
    "demo": Row(
        "Train on the synthetic task and write a report, in about 5 minutes.",
        "nocta demo --out demo",
    ),
    "datasets": Row("List the data sets, or show the card of one.", "nocta datasets pbc-event"),
    "init": Row("Draft schema.toml from a long table.", "nocta init clinic.csv --costs prices.csv"),
    "describe": Row(
        "Show the data card of a cohort; draw it with --figure.",
        "nocta describe clinic.csv --figure card.png",
    ),
    "fit": Row("Train a method and save it in a folder.", "nocta fit clinic.csv --out model"),
    "evaluate": Row(
        "Evaluate a saved model on a cohort and write results.csv.",
        "nocta evaluate model clinic.csv --out results.csv",
    ),
    "compare": Row(
        "Compare methods over seeds, from cheap to expensive.",
        "nocta compare pbc-event --methods nocta-amortized,static --out run",
    ),
    "methods": Row("List the methods, or the options of one.", "nocta methods nocta-amortized"),
    "reproduce": Row(
        "Reproduce a table or figure of the paper.",
        "nocta reproduce table-synthetic --out reproduced",
    ),
    "optimum": Row(
        "Compute the exact cost-accuracy frontier of a finite task.",
        "nocta optimum synthetic --out optimum.csv",
    ),
    "choose": Row(
        "Choose a model's default operating point in your own terms, or with a guarantee.",
        "nocta choose model --sensitivity 0.9 --specificity 0.8",
    ),
    "plan": Row(
        "Say what to acquire next for one subject, and why.",
        "nocta plan model one-patient.csv --budget 100",
    ),
    "protocol": Row(
        "Write the policy as a fixed schedule and short trees, and what each loses.",
        "nocta protocol model --out protocol",
    ),
    "score": Row(
        "Write the next decision for every subject of a large cohort.",
        "nocta score model cohort.parquet --out decisions.parquet",
    ),
    "serve": Row(
        "Serve the planner: a page and a REST API, for one subject at a time.",
        "nocta serve model --store cases.db",
    ),
    "token": Row(
        "Make, list or revoke the tokens of a service.",
        "nocta token cases.db --name ward-3 --role write --days 90",
    ),
    "backup": Row(
        "Copy the cases of a service while it runs.", "nocta backup cases.db --out copy.db"
    ),
}


def load_command(name: str) -> Any:
    """Import a sub-command and turn it into something Typer can run."""
    function = getattr(import_module(f"nocta.cli.{name}"), name)
    # One line per paragraph: Typer would keep the line breaks of the source file.
    text = "\n\n".join(" ".join(p.split()) for p in (function.__doc__ or "").split("\n\n"))
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name, help=text, epilog=f"Example: {COMMANDS[name].example}")(function)
    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """Lists commands from the table, imports the one that is called, shows its errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, row in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=row.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Swap the placeholder for the real command; `--debug` may be anywhere."""
        if "--debug" in args:
            ctx.meta[_DEBUG] = True
            args = [a for a in args if a != "--debug"]
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Turn an error into a message and an exit status: 2 for user input, 1 otherwise."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            # Usage errors have their own exit status; a closed pipe (`nocta … | head`) is fine.
            if hasattr(error, "exit_code") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            raise typer.Exit(_report(error, debug=ctx.meta.get(_DEBUG, False))) from None


def _report(error: Exception, *, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, NoctaError):
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        return 2
    said = _what_the_user_can_change(error)
    if said:
        typer.secho(f"Error: {said}", err=True, fg=typer.colors.RED)
        return 2
    typer.secho(f"Unexpected {type(error).__name__}: {error}", err=True, fg=typer.colors.RED)
    if not debug:
        typer.echo("Run the same command with --debug to see the traceback.", err=True)
    return 1


def _what_the_user_can_change(error: Exception) -> str:
    """A sentence for errors of the machine: a full disk, a read-only folder, too little memory."""
    if isinstance(error, OSError):
        place = f"'{error.filename}': " if error.filename else ""
        what = error.strerror or str(error)
        return (
            f"{place}{what}. What was written before is as it was. Free space or choose another "
            f"path, then run the same command again."
        )
    if isinstance(error, RecursionError):
        return "An input file is nested too deeply to be read; write it with fewer levels."
    if isinstance(error, MemoryError):
        return (
            "There is not enough memory for this. Use fewer subjects at once, or --jobs 1. "
            + str(error)
        ).rstrip()
    return ""


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`nocta COMMAND --help` shows the options of a command and an example.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"nocta {metadata.version('nocta')}")
        raise typer.Exit()


@app.callback()
def nocta(
    ctx: typer.Context,
    debug: Annotated[bool, Option("--debug", help="Show the traceback of errors.")] = False,
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Decide what to acquire next, and when: longitudinal active feature acquisition."""
    ctx.meta[_DEBUG] = debug or ctx.meta.get(_DEBUG, False)
