"""Options by name: typed bundles, and one sentence for every value that cannot work.

A bundle derives from `Options`. Constructors, functions and single values are checked by their
annotations. All are read by pydantic, and all report problems as a `ConfigError`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from nocta.core.errors import ConfigError, did_you_mean

Preset = Literal["default", "paper"]
Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
#: What every random number generator accepts.
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Checked(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), arbitrary_types_allowed=True
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_sentence(type(self), values, error)) from None


class Options(_Checked):
    """A frozen bundle of options; the text below a field says what it means.

    Example:
        >>> class Networks(Options):
        ...     hidden: Count = 64
        >>> Networks(hidden=0)
        Traceback (most recent call last):
        nocta.core.errors.ConfigError: hidden is 0; use a whole number of at least 1.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


B = TypeVar("B", bound=Options)


def read_options(bundle: type[B], given: Options | Mapping[str, Any] | None) -> B:
    """A bundle from itself, or from names and values.

    Raises:
        ConfigError: There is no such option, or its value cannot work.
    """
    if isinstance(given, bundle):
        return given
    if isinstance(given, Options):
        raise ConfigError(f"options is a {type(given).__name__}; expected a {bundle.__name__}.")
    return bundle(**(given or {}))


def given_values(options: Options | Mapping[str, Any] | None) -> dict[str, Any]:
    """The options that were given, by name, as plain values."""
    if isinstance(options, Options):
        return options.model_dump(exclude_unset=True)
    return dict(options or {})


@cache
def constructor_options(cls: Any) -> type[BaseModel]:
    """The arguments of a constructor as a bundle; types come from its annotations."""
    return _bundle(cls.__init__, inspect.signature(cls).parameters.values(), required=...)


@cache
def call_options(function: Callable[..., Any]) -> type[BaseModel]:
    """The arguments of a function after its first as a bundle; none is required.

    What a `functools.partial` fixes is not an option.
    """
    fixed = function.keywords if isinstance(function, partial) else {}
    parameters = list(inspect.signature(function).parameters.values())[1:]
    annotated = function.func if isinstance(function, partial) else function
    return _bundle(annotated, (p for p in parameters if p.name not in fixed), required=None)


def _bundle(
    annotated: Any, parameters: Iterable[inspect.Parameter], required: Any
) -> type[BaseModel]:
    """Parameters as a bundle; `required` is the default of those that have none."""
    try:
        hints = get_type_hints(annotated, include_extras=True)
    except NameError:  # imported for type checkers only
        hints = {}
    fields: dict[str, Any] = {
        p.name: (hints.get(p.name, Any), required if p.default is p.empty else p.default)
        for p in parameters
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and not p.name.startswith("_")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an argument may be called as a method of pydantic's
        return create_model("Arguments", __base__=_Checked, **fields)


def check_arguments(built: Any) -> None:
    """Raise `ConfigError` if an argument that was stored by a constructor cannot work."""
    bundle = constructor_options(built.__class__)
    bundle(**{name: getattr(built, name) for name in bundle.model_fields if hasattr(built, name)})


def check_value(name: str, value: Any, kind: Any) -> Any:
    """The value of one option as its type; raises `ConfigError` if it cannot work.

    Example:
        >>> check_value("preset", "best", Preset)
        Traceback (most recent call last):
        nocta.core.errors.ConfigError: preset is 'best'; use 'default' or 'paper'.
    """
    return getattr(_one_value(name, kind)(**{name: value}), name)


@cache
def _one_value(name: str, kind: Any) -> type[BaseModel]:
    fields: dict[str, Any] = {name: (kind, ...)}
    return create_model("Value", __base__=_Checked, **fields)


def allowed(bundle: type[BaseModel], name: str) -> str:
    """What the values of a field may be, in words.

    Example:
        >>> class Networks(Options):
        ...     dropout: Share | None = None
        >>> allowed(Networks, "dropout")
        'a number from 0 to 1 or null'
    """
    field = bundle.model_fields[name]
    annotation: Any = field.annotation
    for constraint in field.metadata:
        annotation = Annotated[annotation, constraint]
    try:
        return _in_words(TypeAdapter(annotation).json_schema())
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return ""


def _sentence(bundle: type[BaseModel], values: dict[str, Any], error: ValidationError) -> str:
    """What is wrong with each value, and what is allowed."""
    found: dict[str, str] = {}
    names = {n: field.validation_alias or n for n, field in bundle.model_fields.items()}
    for problem in error.errors():
        name = str(problem["loc"][0])
        name = next((n for n, alias in names.items() if name in (n, alias)), name)
        if problem["type"] == "extra_forbidden":
            found[name] = f"There is no option '{name}'.{did_you_mean(name, names)}"
        elif problem["type"] == "missing":
            found[name] = f"{name} is missing."
        else:
            use = allowed(bundle, name) if name in names else ""
            hint = did_you_mean(str(values.get(name)), _choices(use))
            use = f"use {use}" if use else problem["msg"]
            found[name] = f"{name} is {values.get(name)!r}; {use}.{hint}"
    unknown = any(text.startswith("There is no option") for text in found.values())
    return " ".join(found.values()) + (f" Known: {', '.join(names)}." if unknown else "")


def _choices(words: str) -> list[str]:
    return words.split("'")[1::2]


def _in_words(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "anyOf" in schema:
        return _either([_in_words(option) for option in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return _either([repr(value) for value in schema.get("enum", [schema.get("const")])])
    kind = schema.get("type", "")
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    if kind == "array":
        each = _in_words(schema.get("items", {}))
        least = " of at least one item" * bool(schema.get("minItems"))
        return f"a list{least}" + (f", each {each}" if each else "")
    if isinstance(schema.get("additionalProperties"), Mapping):
        each = _in_words(schema["additionalProperties"])
        return "options by name" + (f", each {each}" if each else "")
    names = {"boolean": "true or false", "string": "text", "null": "null"}
    return names.get(kind, "options by name" if kind or "$ref" in schema else "")


def _either(words: list[str]) -> str:
    words = list(dict.fromkeys(word for word in words if word))
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    parts = [
        f"of at least {low:g}" if low is not None else "",
        f"above {above:g}" if above is not None else "",
        f"at most {high:g}" if high is not None else "",
        f"below {below:g}" if below is not None else "",
    ]
    return "".join(f" {part}" for part in parts if part)
