"""`nocta methods`: what can be compared, and the options of one method."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer import Argument

from nocta.cli.running import PresetOption
from nocta.core.errors import ConfigError


def methods(
    name: Annotated[str | None, Argument(help="Show the options of this method.")] = None,
    preset: PresetOption = "default",
) -> None:
    """List the methods, built in and installed, or the options of one with their defaults.

    `nocta compare --methods all` means the built-in methods; name installed ones explicitly.
    """
    from nocta.core.options import Preset, check_value
    from nocta.methods.registry import method_class, method_names
    from nocta.predictors.registry import predictor_names

    preset = check_value("preset", preset, Preset)
    console = Console(markup=False, highlight=False)
    if name is None:
        console.print(_overview(method_names()))
        typer.echo("`nocta methods NAME` shows the options of a method.")
        typer.echo(f"Predictors: {', '.join(predictor_names())}")
        return
    cls = method_class(name)
    console.print(_summary(cls))
    table = _options(name, preset)
    if table.row_count:
        console.print(table)
        typer.echo(f"Set them with `nocta compare -o {name}.OPTION=VALUE`.")
    else:
        typer.echo("This method has no options.")


def option_meanings(documented: type[Any]) -> dict[str, str]:
    """What the `Args` sections of a class and its bases say about each argument."""
    found: dict[str, str] = {}
    for cls in reversed(documented.__mro__):
        _, _, section = inspect.cleandoc(cls.__doc__ or "").partition("Args:\n")
        section = re.split(r"\n(?=\S)", section)[0]
        entries = re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", section, flags=re.MULTILINE)
        found |= {name: " ".join(text.split()) for name, text in entries}
    return found


def _overview(names: list[str]) -> Table:
    from nocta.methods.registry import METHODS, method_class

    table = Table("method", "what it is", box=None, header_style="bold")
    for name in names:
        try:
            text = _summary(method_class(name))
        except ConfigError as error:  # a broken package must not hide the other methods
            text = str(error)
        table.add_row(name, text if name in METHODS else f"{text} (installed)")
    return table


def _options(name: str, preset: str) -> Table:
    from nocta.core.options import allowed, constructor_options
    from nocta.methods.registry import method_class
    from nocta.runs.method_options import option_defaults, typed

    cls = method_class(name)
    bundle = cls.option_bundle(preset)
    bundled = {} if bundle is None else bundle.model_fields
    meanings = {n: " ".join((f.description or "").split()) for n, f in bundled.items()}
    meanings |= option_meanings(cls)
    table = Table("option", "default", "allowed", "meaning", box=None, header_style="bold")
    for option, default in option_defaults(name, preset).items():
        try:
            shown = "" if default is None else typed(default)
        except TypeError:  # a bundle within the bundle: not for the command line
            continue
        home = bundle if bundle is not None and option in bundled else constructor_options(cls)
        table.add_row(option, shown, allowed(home, option), meanings.get(option, ""))
    return table


def _summary(cls: type[Any]) -> str:
    """The first sentence of a class."""
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").replace("`", "")
