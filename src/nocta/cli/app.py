"""The `nocta` command: a table of sub-commands, and what happens to errors.

Each sub-command is one function in a file of its own, imported when it is called, so that
`nocta --help` answers at once. To add a command, write `cli/<name>.py` and add a row below;
a row whose file does not exist is not listed.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

_DEBUG = "nocta.debug"


@dataclass(frozen=True)
class LazyCommand:
    """Where a sub-command lives and the line it has in `nocta --help`."""

    target: str
    help: str

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def exists(self) -> bool:
        return find_spec(self.module) is not None

    def load(self, name: str) -> Any:
        """Import the function and turn it into a command."""
        function = getattr(import_module(self.module), self.target.partition(":")[2])
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name, no_args_is_help=False)(function)
        return typer.main.get_command(single)


COMMANDS: dict[str, LazyCommand] = {
    "demo": LazyCommand(
        "nocta.cli.demo:demo", "Train on the synthetic task and write a report, in about 5 minutes."
    ),
    "datasets": LazyCommand(
        "nocta.cli.datasets:datasets", "List the built-in data sets, or show the card of one."
    ),
    "init": LazyCommand("nocta.cli.init:init", "Draft schema.toml from a long table."),
    "describe": LazyCommand(
        "nocta.cli.describe:describe", "Show the data card of a cohort; draw it with --figure."
    ),
    "fit": LazyCommand("nocta.cli.fit:fit", "Train a method and save it in a folder."),
    "evaluate": LazyCommand(
        "nocta.cli.evaluate:evaluate", "Roll a saved model out over a cohort, into results.csv."
    ),
    "compare": LazyCommand(
        "nocta.cli.compare:compare", "Compare methods over seeds and their whole trade-off."
    ),
    "methods": LazyCommand("nocta.cli.methods:methods", "List the methods, or the options of one."),
    "reproduce": LazyCommand(
        "nocta.cli.reproduce:reproduce", "Reproduce a table or figure of the paper."
    ),
    "optimum": LazyCommand(
        "nocta.cli.optimum:optimum", "Compute the exact cost-accuracy frontier of a finite task."
    ),
    "plan": LazyCommand(
        "nocta.cli.plan:plan", "Say what to acquire next for one subject, and why."
    ),
    "score": LazyCommand(
        "nocta.cli.score:score", "Write the next decision of every subject of a large cohort."
    ),
    "serve": LazyCommand(
        "nocta.cli.serve:serve", "Serve a saved model: REST API and planner page."
    ),
}


class LazyGroup(TyperGroup):
    """Lists commands from the table, imports the one that is called, reports its errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, command in COMMANDS.items():
            if command.exists:
                self.commands[name] = TyperCommand(name, help=command.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Swap the placeholder for the real command; `--debug` may stand anywhere."""
        if "--debug" in args:
            ctx.meta[_DEBUG] = True
            args = [a for a in args if a != "--debug"]
        name, command, rest = super().resolve_command(ctx, args)
        return name, COMMANDS[name].load(name) if name in COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Turn an error into a message and an exit status: 2 for user input, 1 otherwise."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            # A usage error knows its own exit status; a closed pipe (`nocta … | head`) is no error.
            if hasattr(error, "exit_code") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            raise typer.Exit(_report(error, debug=ctx.meta.get(_DEBUG, False))) from None


def _report(error: Exception, *, debug: bool) -> int:
    from nocta.core.errors import NoctaError

    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, NoctaError):
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        return 2
    typer.secho(f"Unexpected {type(error).__name__}: {error}", err=True, fg=typer.colors.RED)
    if not debug:
        typer.echo("Run the same command with --debug to see where it happened.", err=True)
    return 1


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"nocta {metadata.version('nocta')}")
        raise typer.Exit()


@app.callback()
def nocta(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Decide what to acquire next, and when: longitudinal active feature acquisition."""
    ctx.meta[_DEBUG] = debug or ctx.meta.get(_DEBUG, False)
