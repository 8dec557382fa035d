"""Dataclasses of options from plain values, and checks shared by many options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from nocta.core.errors import ConfigError, did_you_mean

B = TypeVar("B")


def read_options(bundle: type[B], values: Mapping[str, Any]) -> B:
    """Build a dataclass of options from names and values; unknown names get a suggestion.

    Raises:
        ConfigError: An option does not exist, or a value is impossible.
    """
    known = [f.name for f in fields(bundle)]  # type: ignore[arg-type]
    unknown = [name for name in values if name not in known]
    if unknown:
        hints = " ".join(f"There is no option '{n}'.{did_you_mean(n, known)}" for n in unknown)
        raise ConfigError(f"{hints} Known: {', '.join(known)}.")
    try:
        return bundle(**values)
    except TypeError as error:
        shown = ", ".join(f"{k} = {v!r}" for k, v in values.items())
        raise ConfigError(f"The options cannot use {shown}: {error}.") from None


def require_whole_number(name: str, value: Any, least: int = 1) -> None:
    """Raise `ConfigError` unless the value of an option is a whole number of at least `least`.

    Example:
        >>> require_whole_number("hidden", 64)
    """
    if not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}; use a whole number of at least {least}.")
