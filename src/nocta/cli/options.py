"""Options of methods and data sets on the command line: `-o NAME=VALUE`, as often as needed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any


def parse_options(pairs: Sequence[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Names and values from `NAME=VALUE` texts.

    Values are read as JSON, else as Python literals, else taken as text.

    Args:
        pairs: As they were typed.
        texts: Options that take text: `00,10` is no pair of numbers there.

    Example:
        >>> parse_options(["hidden=32", "radius=null", "metric=values", "features={'FDG': 1.0}"])
        {'hidden': 32, 'radius': None, 'metric': 'values', 'features': {'FDG': 1.0}}
        >>> parse_options(["visits=00,10", "n=00"], texts=["visits"])
        {'visits': '00,10', 'n': 0}
    """
    from nocta.core.errors import ConfigError

    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"'{pair}' is not an option; write it as NAME=VALUE.")
        parse = _parse_text if name.strip() in texts else parse_value
        found[name.strip()] = parse(value)
    return found


def parse_method_options(pairs: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By method, its options from `METHOD.OPTION=VALUE` texts.

    Args:
        pairs: As they were typed.
        methods: Those that are compared.

    Example:
        >>> parse_method_options(["static.a=1", "static.b=x"], ["static", "random"])
        {'static': {'a': 1, 'b': 'x'}}
    """
    from nocta.core.errors import ConfigError, did_you_mean

    found: dict[str, dict[str, Any]] = {}
    for name, value in parse_options(pairs).items():
        method, dot, option = name.partition(".")
        if not dot or not option:
            raise ConfigError(
                f"'{name}' names no method; write METHOD.OPTION=VALUE, such as "
                f"{methods[0]}.{'OPTION' if name in methods else name}=..."
            )
        if method not in methods:
            hint = did_you_mean(method, methods)
            raise ConfigError(
                f"'{name}' is an option of method '{method}', which is not compared.{hint} "
                f"Compared are: {', '.join(methods)}."
            )
        found.setdefault(method, {})[option] = value
    return found


def parse_value(text: str) -> Any:
    """One value: JSON, else a Python literal, else text."""
    import ast
    import json

    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _parse_text(text: str) -> Any:
    """Text or a list of texts where it is written as such, in quotes; else as it was typed."""
    value = parse_value(text)
    parts = value if isinstance(value, list | tuple) else [value]
    return value if all(isinstance(part, str) for part in parts) else text
