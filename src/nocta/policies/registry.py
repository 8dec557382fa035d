"""Every method by its name, imported only when asked for."""

from __future__ import annotations

from importlib import import_module

from nocta.exceptions import ConfigError, did_you_mean
from nocta.policies.method import Method

#: Name on the command line -> where the class lives. Strings, so that `--help` stays quick.
METHODS: dict[str, str] = {
    "nocta-contrastive": "nocta.policies.nocta:NoctaContrastive",
    "nocta-amortized": "nocta.policies.nocta:NoctaAmortized",
    "nocta-ensemble": "nocta.policies.nocta:NoctaEnsemble",
    "asac": "nocta.policies.asac:Asac",
    "ras": "nocta.policies.ras:Ras",
    "as": "nocta.policies.ras:As",
    "dime": "nocta.policies.dime:Dime",
    "difa": "nocta.policies.difa:Difa",
    "nothing": "nocta.policies.simple:Nothing",
    "everything": "nocta.policies.simple:Everything",
    "first-visit": "nocta.policies.simple:FirstVisit",
    "periodic": "nocta.policies.simple:Periodic",
    "random": "nocta.policies.simple:Random",
    "static": "nocta.policies.simple:Static",
}


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
