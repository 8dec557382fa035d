"""Every method by its name, imported only when it is used.

Beside the built-in methods: those of installed packages (entry point `nocta.methods`), a method
`nocta-NAME` for every installed estimator (`nocta.estimators`), and those registered here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TypeVar

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.plugins import load_plugin, plugins
from nocta.methods.contract import Method

#: Name on the command line -> where the class lives. Strings, so that `--help` stays quick.
METHODS: dict[str, str] = {
    "nocta-auto": "nocta.methods.nocta:NoctaAuto",
    "nocta-direct": "nocta.methods.nocta:NoctaDirect",
    "nocta-contrastive": "nocta.methods.nocta:NoctaContrastive",
    "nocta-amortized": "nocta.methods.nocta:NoctaAmortized",
    "nocta-ensemble": "nocta.methods.nocta:NoctaEnsemble",
    "asac": "nocta.methods.asac.method:Asac",
    "ras": "nocta.methods.ras.method:Ras",
    "as": "nocta.methods.ras.method:As",
    "dime": "nocta.methods.dime.method:Dime",
    "difa": "nocta.methods.difa.method:Difa",
    "nothing": "nocta.methods.reference.method:Nothing",
    "everything": "nocta.methods.reference.method:Everything",
    "first-visit": "nocta.methods.reference.method:FirstVisit",
    "periodic": "nocta.methods.reference.periodic:Periodic",
    "random": "nocta.methods.reference.method:Random",
    "static": "nocta.methods.reference.method:Static",
}
_BUILT_IN = frozenset(METHODS)
#: Added to the name of a method, it adapts the shared predictor to it (`nocta.methods.adapted`).
SUFFIX = "+adapt"
_LOCAL: dict[str, type[Method]] = {}
M = TypeVar("M", bound=type[Method])


def method_names() -> list[str]:
    """Every name that `method_class` knows: built in, then installed, then registered."""
    return list(dict.fromkeys([*METHODS, *_installed(), *_LOCAL]))


def method_class(name: str) -> type[Method]:
    """The class of a method; raises `ConfigError` if there is none that keeps the contract."""
    known = method_names()
    if name.endswith(SUFFIX) and name not in known:
        return _adapted(method_class(name.removesuffix(SUFFIX)))
    if _is_protocol(name):
        return _protocol_class(name)
    if name not in known:
        raise ConfigError(
            f"There is no method '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}."
        )
    if name in _LOCAL:
        return _LOCAL[name]
    installed = name in _installed()
    if installed and name in METHODS:
        raise ConfigError(
            f"An installed package provides the method '{name}', but that name is built in. "
            f"Rename it there, or uninstall the package."
        )
    if installed:
        return _installed_class(name)
    module, _, attribute = METHODS[name].partition(":")
    found: type[Method] = getattr(import_module(module), attribute)
    return found


def register_method(cls: M) -> M:
    """Make a method known to this process, under its `name`; may be used as a decorator.

    Other processes do not see it: for `--jobs` and clusters, install it as an entry point.
    """
    name = getattr(cls, "name", None)
    if not isinstance(cls, type) or not issubclass(cls, Method) or not isinstance(name, str):
        raise ConfigError(f"{cls!r} is not a class derived from nocta.Method with a `name`.")
    if name in (*METHODS, *_installed()):
        raise ConfigError(f"The name '{name}' belongs to another method; choose another `name`.")
    _LOCAL[name] = cls
    return cls


def is_local(name: str) -> bool:
    """Whether a method is known to this process only."""
    return name in _LOCAL or (name in METHODS and name not in _BUILT_IN)


def local_methods() -> dict[str, type[Method]]:
    """Methods that are known to this process only, to be sent to another (`add_methods`)."""
    return {name: method_class(name) for name in (*METHODS, *_LOCAL) if is_local(name)}


def add_methods(classes: Mapping[str, type[Method]]) -> None:
    """Make methods of another process known to this one."""
    _LOCAL.update(classes)


def parse_methods(text: str) -> list[str]:
    """Names from `"a, b"`, checked at once; `"all"` means every built-in method."""
    if text.strip() == "all":
        return list(METHODS)
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    known = method_names()
    unknown = [
        name for name in names if name.removesuffix(SUFFIX) not in known and not _is_protocol(name)
    ]
    if unknown or not names:
        hints = " ".join(f"There is no method '{n}'.{did_you_mean(n, known)}" for n in unknown)
        raise ConfigError(f"{hints or 'No method was named.'} Known: {', '.join(known)}.")
    return names


def _is_protocol(name: str) -> bool:
    """Whether the schema has to say what it is; see `nocta.methods.reference.protocol`."""
    return name.partition("-")[0] == "protocol" and name not in (*_LOCAL, *_installed())


def _protocol_class(name: str) -> type[Method]:
    from nocta.methods.reference.protocol import protocol_class

    return protocol_class(name)


@cache
def _adapted(cls: type[Method]) -> type[Method]:
    from nocta.methods.adapted import adapted_class

    return adapted_class(cls)


def _installed() -> dict[str, str | None]:
    """Names from entry points; the value is the estimator, if it is one."""
    found: dict[str, str | None] = dict.fromkeys(plugins("nocta.methods"))
    for estimator in plugins("nocta.estimators"):
        found.setdefault(f"nocta-{estimator}", estimator)
    return found


@cache
def _installed_class(name: str) -> type[Method]:
    estimator = _installed()[name]
    if estimator is not None:
        from nocta.methods.nocta import NoctaMethod
        from nocta.model.presets.plugin import estimator_class

        doc = inspect.getdoc(estimator_class(estimator)) or f"NOCTA with '{estimator}'."
        named = {"name": name, "estimator": estimator, "__doc__": doc.split("\n\n")[0]}
        return type(f"Nocta{estimator.title()}", (NoctaMethod,), named)
    cls: type[Method] = load_plugin("nocta.methods", name, Method)
    if not isinstance(cls, type) or getattr(cls, "name", None) != name:
        raise ConfigError(
            f"'{name}' of 'nocta.methods' is {cls!r}; expected a class whose `name` is '{name}'."
        )
    return cls
