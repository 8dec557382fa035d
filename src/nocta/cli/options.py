"""Options of methods and data sets on the command line: `-o NAME=VALUE`, repeatable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from nocta.core.errors import ConfigError, did_you_mean


def parse_options(pairs: Sequence[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Names and values from `NAME=VALUE` texts: JSON, else Python literals, else text.

    Options in `texts` take text, so that `00,10` does not become two numbers.

    Example:
        >>> parse_options(["hidden=32", "radius=null", "metric=values", "features={'FDG': 1.0}"])
        {'hidden': 32, 'radius': None, 'metric': 'values', 'features': {'FDG': 1.0}}
        >>> parse_options(["visits=00,10", "n=00"], texts=["visits"])
        {'visits': '00,10', 'n': 0}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"'{pair}' is not an option; write it as NAME=VALUE.")
        parse = _parse_text if name.strip() in texts else parse_value
        found[name.strip()] = parse(value)
    return found


def parse_method_options(pairs: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options of each method, from `METHOD.OPTION=VALUE` texts.

    Example:
        >>> parse_method_options(["static.a=1", "static.b=x"], ["static", "random"])
        {'static': {'a': 1, 'b': 'x'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for name, value in parse_options(pairs).items():
        method, dot, option = name.partition(".")
        if not dot or not option:
            raise ConfigError(
                f"'{name}' does not name a method; write METHOD.OPTION=VALUE, such as "
                f"{methods[0]}.{'OPTION' if name in methods else name}=..."
            )
        if method not in methods:
            hint = did_you_mean(method, methods)
            raise ConfigError(
                f"'{name}' sets an option of '{method}', which is not in --methods.{hint} "
                f"In --methods: {', '.join(methods)}."
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
    """A quoted text or a list of quoted texts; anything else as typed."""
    value = parse_value(text)
    parts = value if isinstance(value, list | tuple) else [value]
    return value if all(isinstance(part, str) for part in parts) else text
