"""Every method by its name, imported only when asked for."""

from __future__ import annotations

from importlib import import_module

from nocta.core.errors import ConfigError, did_you_mean
from nocta.methods.contract import Method

#: Name on the command line -> where the class lives. Strings, so that `--help` stays quick.
METHODS: dict[str, str] = {
    "nocta-contrastive": "nocta.methods.nocta:NoctaContrastive",
    "nocta-amortized": "nocta.methods.nocta:NoctaAmortized",
    "nocta-ensemble": "nocta.methods.nocta:NoctaEnsemble",
    "asac": "nocta.methods.asac.method:Asac",
    "ras": "nocta.methods.ras.method:Ras",
    "as": "nocta.methods.ras.method:As",
    "dime": "nocta.methods.dime.method:Dime",
    "difa": "nocta.methods.difa.method:Difa",
    "nothing": "nocta.methods.reference.simple:Nothing",
    "everything": "nocta.methods.reference.simple:Everything",
    "first-visit": "nocta.methods.reference.simple:FirstVisit",
    "periodic": "nocta.methods.reference.simple:Periodic",
    "random": "nocta.methods.reference.simple:Random",
    "static": "nocta.methods.reference.simple:Static",
}
_BUILT_IN = frozenset(METHODS)


def method_class(name: str) -> type[Method]:
    """The class of a method.

    Example:
        >>> method_class("static").name
        'static'
    """
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise ConfigError(
            f"There is no method '{name}'.{did_you_mean(name, METHODS)} Known: {known}."
        )
    module, _, attribute = METHODS[name].partition(":")
    found: type[Method] = getattr(import_module(module), attribute)
    return found


def is_local(name: str) -> bool:
    """Whether a method is known to this process only."""
    return name in METHODS and name not in _BUILT_IN


def parse_methods(text: str) -> list[str]:
    """Names from `"a,b"`; `"all"` means every method. Unknown names are reported at once.

    Example:
        >>> parse_methods("static, random")
        ['static', 'random']
    """
    if text.strip() == "all":
        return list(METHODS)
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        hints = " ".join(f"There is no method '{n}'.{did_you_mean(n, METHODS)}" for n in unknown)
        raise ConfigError(f"{hints or 'No method was named.'} Known: {', '.join(METHODS)}.")
    return names
