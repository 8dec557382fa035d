"""From names and values to a method: what `nocta compare -o` and tuning may set, and how.

Options are the arguments of the method's constructor and, if it has a bundle (`option_bundle`),
the fields of that bundle under their own names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.options import constructor_options, given_values
from nocta.methods.contract import Method
from nocta.methods.registry import method_class

#: Arguments that the comparison passes to every method that has them.
OFFERED = ("preset", "quick")
#: The argument that takes a bundle.
BUNDLE = "options"


def make_method(
    name: str, options: Mapping[str, Any], *, preset: str = "default", quick: bool = False
) -> Method:
    """A method with its options, not fitted yet; preset and quick are for methods that know them.

    Example:
        >>> make_method("nocta-amortized", {"hidden": 32}).options
        {'hidden': 32}
    """
    cls = method_class(name)
    arguments = constructor_options(cls).model_fields
    offered = {"preset": preset, "quick": quick}
    given = {**{k: v for k, v in offered.items() if k in arguments}, **options}
    bundle = cls.option_bundle(str(given.get("preset", preset)))
    bundled = set() if bundle is None else set(bundle.model_fields)
    known = [*arguments, *sorted(bundled - set(arguments))]
    for option in options:
        if option not in known:
            names = ", ".join(n for n in known if n not in (*OFFERED, BUNDLE)) or "none"
            raise ConfigError(
                f"Method '{name}' has no option '{option}'.{did_you_mean(option, known)} "
                f"It has: {names}."
            )
    inside = {k: v for k, v in given.items() if k not in arguments}
    outside = {k: v for k, v in given.items() if k in arguments}
    if inside:
        outside[BUNDLE] = {**given_values(outside.get(BUNDLE)), **inside}
    method = cls(**outside)
    method.check_options()  # before anything is fitted
    return method


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by name, including those inside a bundle.

    Example:
        >>> given_options({"grid": [1], "options": {"hidden": 32}})
        {'grid': [1], 'hidden': 32}
    """
    bundled = given_values(options.get(BUNDLE))
    return {**{k: v for k, v in options.items() if k != BUNDLE}, **bundled}


def option_defaults(name: str, preset: str = "default") -> dict[str, Any]:
    """Every option of a method that has a default, with it."""
    cls = method_class(name)
    fields = dict(constructor_options(cls).model_fields)
    bundle = cls.option_bundle(preset)
    if bundle is not None:
        fields |= bundle.model_fields
    skipped = (*OFFERED, BUNDLE)
    return {n: f.default for n, f in fields.items() if not f.is_required() and n not in skipped}


def typed(value: Any) -> str:
    """The value of an option as one would type it."""
    return value if isinstance(value, str) else json.dumps(value)
