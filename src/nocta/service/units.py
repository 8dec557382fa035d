"""Units of laboratory values (UCUM): converted if both are of one kind, otherwise refused.

Amount of substance and mass are different kinds: mmol/L does not become mg/dL, because that needs
the molar mass.
"""

from __future__ import annotations

import re

_PREFIXES = {
    "": 1.0,
    "k": 1e3,
    "h": 1e2,
    "d": 1e-1,
    "c": 1e-2,
    "m": 1e-3,
    "u": 1e-6,
    "n": 1e-9,
    "p": 1e-12,
    "f": 1e-15,
}
#: Base units, and what one is in units of its kind.
_BASES = {
    "g": ("mass", 1.0),
    "mol": ("substance", 1.0),
    "eq": ("charge", 1.0),
    "L": ("volume", 1.0),
    "l": ("volume", 1.0),
    "m": ("length", 1.0),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
    "d": ("time", 86400.0),
    "Pa": ("pressure", 1.0),
    "m[Hg]": ("pressure", 133_322.0),
    "[IU]": ("units", 1.0),
    "U": ("activity", 1.0),
    "kat": ("activity", 6e7),
    "Hz": ("frequency", 1.0),
    "1": ("number", 1.0),
    "%": ("number", 0.01),
}
_SAME = {
    "µ": "u",
    "μ": "u",
    "mcg": "ug",
    "IU": "[IU]",
    "mmHg": "mm[Hg]",
    "x10^": "10*",
    "10^": "10*",
}
_POWER = re.compile(r"10\*(-?\d{1,2})")


def convert(value: float, unit: str, wanted: str) -> float | None:
    """A value in another unit; `None` if the two are of different kinds or not known.

    Example:
        >>> convert(16.0, "mg/L", "mg/dL"), convert(210.0, "10*9/L", "10*3/uL")
        (1.6, 210.0)
        >>> convert(88.0, "umol/L", "mg/dL") is None
        True
    """
    if _normal(unit) == _normal(wanted):
        return value
    here, there = _parse(unit), _parse(wanted)
    if here is None or there is None or here[0] != there[0]:
        return None
    return float(f"{value * here[1] / there[1]:.12g}")


def _normal(unit: str) -> str:
    text = unit.strip()
    for written, meant in _SAME.items():
        text = text if meant in text else text.replace(written, meant)
    return text


def _parse(unit: str) -> tuple[tuple[str, ...], float] | None:
    """The kinds above and below the line, and the factor to their base units."""
    above, *below = _normal(unit).split("/")
    parts = [_factor(part) for part in (above or "1", *below)]
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    scale = known[0][1]
    for _, factor in known[1:]:
        scale /= factor
    return tuple(kind for kind, _ in known), scale


def _factor(part: str) -> tuple[str, float] | None:
    """One unit with its prefix, such as `dL`."""
    power = _POWER.fullmatch(part)
    if power is not None:
        return "number", 10.0 ** int(power[1])
    if part in _BASES:
        return _BASES[part]
    prefix, rest = part[:1], part[1:]
    if prefix in _PREFIXES and rest in _BASES and rest not in ("1", "%"):
        kind, size = _BASES[rest]
        return kind, _PREFIXES[prefix] * size
    return None
