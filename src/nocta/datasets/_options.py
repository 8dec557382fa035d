"""Checks the options of a loader against its signature, before anything is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_type_hints

import numpy as np

from nocta.core.errors import ConfigError, did_you_mean

Loader = Callable[..., Any]


def option_defaults(loader: Loader) -> dict[str, Any]:
    """The options of a loader with their defaults; what a `partial` fixes is not an option."""
    fixed = loader.keywords if isinstance(loader, partial) else {}
    parameters = list(inspect.signature(loader).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.name not in fixed}


def text_options(loader: Loader) -> set[str]:
    """Options whose value is text, or a list of texts."""
    kinds = _kinds(loader)
    return {o for o in option_defaults(loader) if kinds.get(o) in (str, Sequence[str])}


def check_options(
    name: str, loader: Loader, options: Mapping[str, Any], about: Mapping[str, str]
) -> dict[str, Any]:
    """The options with the types of the loader's signature, so that `"3"` becomes 3.

    An option without a type is not checked; a list of texts may be one text with commas. The name
    of the data set and what its options are `about` are for messages.

    Raises:
        ConfigError: An option is unknown or its value has the wrong type.
    """
    known, kinds = option_defaults(loader), _kinds(loader)
    for option in options:
        if option not in known:
            raise ConfigError(
                f"'{name}' has no option '{option}'.{did_you_mean(option, known)} "
                f"Its options: {', '.join(sorted(known)) or 'none'}."
            )
    return {
        option: _read(name, option, value, kinds.get(option, Any), about.get(option, ""))
        for option, value in options.items()
    }


def _read(name: str, option: str, value: Any, kind: Any, about: str) -> Any:
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and kind == Sequence[str]:
        value = [item.strip() for item in value.split(",")]
    adapter: TypeAdapter[Any] = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"at {key!r}, " for key in first["loc"])
        said = first["msg"][:1].lower() + first["msg"][1:]
        meaning = f" {option}: {about}." if about else ""
        raise ConfigError(
            f"{option} is {value!r}, which '{name}' cannot use: {place}{said}.{meaning}"
        ) from error


def _kinds(loader: Loader) -> dict[str, Any]:
    """Types of the options; none if an annotation is only imported for type checkers."""
    try:
        return get_type_hints(loader.func if isinstance(loader, partial) else loader)
    except NameError:
        return {}
