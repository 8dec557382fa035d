"""From names and values to a method: what `nocta compare -o` and tuning may set, and how.

Options are those of the method's constructor and, where a method has a bundle of them (the
preset's, for the `nocta-…` methods), the fields of that bundle under their own names.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.options import read_options
from nocta.methods.contract import Method
from nocta.methods.registry import method_class

#: Arguments that the comparison gives to every method that knows them.
OFFERED = ("preset", "quick")
#: The argument that takes a bundle.
BUNDLE = "options"


def make_method(
    name: str, options: Mapping[str, Any], *, preset: str = "default", quick: bool = False
) -> Method:
    """A method with its options, not fitted yet; preset and quickness where it knows them.

    Args:
        name: Of the method.
        options: By name; those not given have their default.
        preset: Of methods that have presets.
        quick: A rehearsal, for methods that know one.

    Raises:
        ConfigError: There is no such option, or its value cannot work.

    Example:
        >>> make_method("nocta-amortized", {"hidden": 32}).options
        {'hidden': 32}
    """
    cls = method_class(name)
    arguments = inspect.signature(cls).parameters
    offered = {"preset": preset, "quick": quick}
    given = {**{k: v for k, v in offered.items() if k in arguments}, **options}
    bundle = cls.option_bundle(str(given.get("preset", preset)))
    bundled = {f.name for f in fields(bundle)} if bundle is not None else set()
    known = [*arguments, *sorted(bundled)]
    for option in options:
        if option not in known:
            names = ", ".join(n for n in known if n not in (*OFFERED, BUNDLE)) or "none"
            raise ConfigError(
                f"Method '{name}' has no option '{option}'.{did_you_mean(option, known)} "
                f"It has: {names}."
            )
    inside = {k: v for k, v in given.items() if k in bundled and k not in arguments}
    outside = {k: v for k, v in given.items() if k not in inside}
    if bundle is not None and (inside or outside.get(BUNDLE)):
        outside[BUNDLE] = {**(outside.get(BUNDLE) or {}), **inside}
        read_options(bundle, outside[BUNDLE])  # reports impossible values before anything is fitted
    method = cls(**outside)
    method.check_options()
    return method


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by name, those inside a bundle that is a plain dictionary among them.

    Example:
        >>> given_options({"grid": [1], "options": {"hidden": 32}})
        {'grid': [1], 'hidden': 32}
    """
    bundle = options.get(BUNDLE)
    inside = dict(bundle) if isinstance(bundle, Mapping) else {}
    return {**{k: v for k, v in options.items() if k != BUNDLE}, **inside}


def option_defaults(name: str, preset: str = "default") -> dict[str, Any]:
    """Every option of a method that has a default, with it.

    Example:
        >>> option_defaults("nocta-amortized")["hidden"]
        64
    """
    cls = method_class(name)
    found = {
        p.name: p.default
        for p in inspect.signature(cls).parameters.values()
        if p.default is not p.empty and p.name not in (*OFFERED, BUNDLE)
    }
    bundle = cls.option_bundle(preset)
    if bundle is not None:
        found |= {f.name: f.default for f in fields(bundle) if f.default is not MISSING}
    return found


def typed(value: Any) -> str:
    """The value of an option as one would type it.

    Example:
        >>> typed([1, 2]), typed("beam")
        ('[1, 2]', 'beam')
    """
    return value if isinstance(value, str) else json.dumps(value)
