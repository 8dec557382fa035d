"""Options of a loader: names and values are checked before anything is read.

The loader's signature says what it takes, so a data set declares its options once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np

from nocta.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Loader = Callable[..., Any]


def option_defaults(loader: Loader) -> dict[str, Any]:
    """What a loader accepts after its log, with default values; what is fixed is no option."""
    fixed = loader.keywords if isinstance(loader, partial) else {}
    parameters = list(inspect.signature(loader).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.name not in fixed}


def text_options(loader: Loader) -> set[str]:
    """Options that take text, or a list of texts."""
    kinds = _kinds(loader)
    return {o for o in option_defaults(loader) if kinds.get(o) is str or _is_texts(kinds.get(o))}


def check_options(
    name: str, loader: Loader, options: Mapping[str, Any], about: Mapping[str, str]
) -> dict[str, Any]:
    """The options as the loader takes them: `"3"` becomes 3 where a number is wanted.

    Args:
        name: The data set, for messages.
        loader: Its signature decides. An option without a type is passed on as it is.
        options: By name. A list of texts may be given as one text, with commas.
        about: What the options mean, for messages.

    Raises:
        ConfigError: There is no such option, or its value is of another kind.
    """
    known = option_defaults(loader)
    for option in options:
        if option not in known:
            raise ConfigError(
                f"'{name}' has no option '{option}'.{did_you_mean(option, known)} "
                f"It has: {', '.join(sorted(known)) or 'none'}."
            )
    kinds = _kinds(loader)
    return {
        option: _read(name, option, value, kinds.get(option), about.get(option, ""))
        for option, value in options.items()
    }


def _read(name: str, option: str, value: Any, kind: Any, about: str) -> Any:
    from pydantic import ValidationError

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and _is_texts(kind):
        value = [part.strip() for part in value.split(",")]
    adapter = _adapter(kind)
    if adapter is None:
        return value
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


def _is_texts(kind: Any) -> bool:
    return get_origin(kind) is Sequence and get_args(kind) == (str,)


def _kinds(loader: Loader) -> dict[str, Any]:
    """Types of the options; none where they cannot be told."""
    try:
        return get_type_hints(loader.func if isinstance(loader, partial) else loader)
    except NameError:  # imported for type checkers only
        return {}


def _adapter(kind: Any) -> TypeAdapter[Any] | None:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        return None if kind is None else TypeAdapter(kind)
    except PydanticSchemaGenerationError:  # a class of the loader's own
        return None
