"""What must, may and must not be acquired, whoever decides: the constraints of a study.

`Constraints` says it in the user's words. `nocta.core.rules` translates it for one catalog, and
`nocta.core.enforce` holds every policy to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from nocta.core.errors import ConfigError, did_you_mean

#: Visit slots from 0; `None` means every visit.
Visits = tuple[int, ...] | None
_FORMS = (
    "'always NAME', 'always NAME at 0,2', 'never NAME', 'never NAME at 0', 'at most 2 NAME', "
    "'2 apart NAME', 'at most 3 visits', 'together NAME, NAME' or 'NAME after NAME'"
)


@dataclass(frozen=True)
class Constraints:
    """Rules on acquisitions that every policy obeys.

    What counts is what was acquired: a request that turns out to be unavailable does not.

    Args:
        always: Features acquired for everybody, at some visits or at every visit at which they can
            be acquired. They are acquired as far as the other constraints allow.
        never: Features that are not acquired, at some visits or at all.
        at_most: Maximum number of times that a feature is acquired.
        apart: Minimum distance, in visits, between two acquisitions of a feature.
        max_visits: Maximum number of visits at which anything is acquired.
        together: Features that are requested at the same visit or not at all.
        after: Features that must have been acquired at an earlier visit.

    Example:
        >>> Constraints.read(["never scan at 0", "at most 2 scan", "at most 3 visits"])
        Constraints(never={'scan': (0,)}, at_most={'scan': 2}, max_visits=3)
    """

    always: Mapping[str, Visits] = field(default_factory=dict)
    never: Mapping[str, Visits] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    apart: Mapping[str, int] = field(default_factory=dict)
    max_visits: int | None = None
    together: tuple[tuple[str, ...], ...] = ()
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._given())

    def __repr__(self) -> str:
        return f"Constraints({', '.join(f'{k}={v!r}' for k, v in self._given().items())})"

    def _given(self) -> dict[str, Any]:
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v for k, v in found.items() if v is not None and v != {} and v != ()}

    @classmethod
    def read(cls, given: Constraints | Mapping[str, Any] | str | Iterable[str] | None) -> Self:
        """Constraints from the tables of `schema.toml`, or from sentences; see `parse`."""
        if isinstance(given, Constraints):
            return cls(**given._given())
        if given is None:
            return cls()
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        texts = [given] if isinstance(given, str) else list(given)
        out = cls()
        for text in texts:
            out = out.also(cls.from_dict(parse(text)))
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; also reads the tables of `schema.toml`."""
        known = {f.name for f in fields(cls)}
        for key in data.keys() - known:
            raise ConfigError(
                f"There is no constraint '{key}'.{did_you_mean(key, known)} Known: "
                f"{', '.join(sorted(known))}."
            )
        found: dict[str, Any] = dict(data)
        for name in ("always", "never"):
            rows = {k: _visits(name, k, v) for k, v in dict(found.get(name, {})).items()}
            found[name] = {k: v for k, v in rows.items() if v != ()}
        for name in ("at_most", "apart"):
            found[name] = {k: _whole(name, k, v) for k, v in dict(found.get(name, {})).items()}
        if found.get("max_visits") is not None:
            found["max_visits"] = _whole("max_visits", "", found["max_visits"])
        found["together"] = tuple(_names("together", g) for g in found.get("together", ()))
        after = dict(found.get("after", {}))
        found["after"] = {
            k: _names("after", [v] if isinstance(v, str) else v) for k, v in after.items()
        }
        return cls(**found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as in `schema.toml`; only what is constrained."""
        out = self._given()
        for name in ("always", "never"):
            if name in out:
                out[name] = {k: True if v is None else list(v) for k, v in out[name].items()}
        for name in ("at_most", "apart"):
            if name in out:
                out[name] = dict(out[name])
        if self.together:
            out["together"] = [list(group) for group in self.together]
        if self.after:
            out["after"] = {k: list(v) for k, v in self.after.items()}
        return out

    def also(self, other: Constraints) -> Self:
        """Both of them hold."""
        limits = [n for n in (self.max_visits, other.max_visits) if n is not None]
        return type(self)(
            always=_joined(self.always, other.always),
            never=_joined(self.never, other.never),
            at_most=_extreme(min, self.at_most, other.at_most),
            apart=_extreme(max, self.apart, other.apart),
            max_visits=min(limits, default=None),
            together=tuple(dict.fromkeys([*self.together, *other.together])),
            after={
                k: tuple(dict.fromkeys([*self.after.get(k, ()), *other.after.get(k, ())]))
                for k in [*self.after, *(k for k in other.after if k not in self.after)]
            },
        )

    def sentences(self) -> list[str]:
        """One plain sentence for each constraint.

        Example:
            >>> Constraints.read("scan after blood").sentences()
            ["'scan' is acquired only after 'blood'."]
        """
        out = [f"'{k}' is always acquired{_at(v)}." for k, v in self.always.items()]
        out += [f"'{k}' is never acquired{_at(v)}." for k, v in self.never.items()]
        out += [f"'{k}' is acquired at most {_times(n)}." for k, n in self.at_most.items()]
        out += [f"'{k}' is acquired at least {n} visits apart." for k, n in self.apart.items()]
        if self.max_visits is not None:
            visits = "visit" if self.max_visits == 1 else "visits"
            out.append(f"Anything is acquired at no more than {self.max_visits} {visits}.")
        out += [f"{_quoted(g)} are acquired together or not at all." for g in self.together]
        out += [f"'{k}' is acquired only after {_quoted(v)}." for k, v in self.after.items()]
        return out


def parse(text: str) -> dict[str, Any]:
    """One constraint in words, as plain data.

    Example:
        >>> parse("always blood pressure at 0,2"), parse("2 apart scan"), parse("together a, b")
        ({'always': {'blood pressure': [0, 2]}}, {'apart': {'scan': 2}}, {'together': [['a', 'b']]})
    """
    words = " ".join(text.split())
    for pattern, make in _GRAMMAR:
        found = re.fullmatch(pattern, words)
        if found:
            out: dict[str, Any] = make(*found.groups())
            return out
    raise ConfigError(f"'{text}' is not a constraint. Write {_FORMS}.")


def _slots(text: str | None) -> Any:
    if text is None or text == "first":
        return True if text is None else [0]
    return [int(part) for part in text.split(",")]


_AT = r"(?: at (first|\d+(?: ?, ?\d+)*))?"
#: Each way to say a constraint, and the plain data it stands for.
_GRAMMAR: list[tuple[str, Any]] = [
    (rf"always (.+?){_AT}", lambda name, at: {"always": {name: _slots(at)}}),
    (rf"never (.+?){_AT}", lambda name, at: {"never": {name: _slots(at)}}),
    (r"at[ -]most (\d+) visits?", lambda n: {"max_visits": int(n)}),
    (r"at[ -]most (\d+) (?:times )?(.+)", lambda n, name: {"at_most": {name: int(n)}}),
    (r"(?:at least )?(\d+) (?:visits )?apart (.+)", lambda n, name: {"apart": {name: int(n)}}),
    (r"together (.+)", lambda names: {"together": [[n.strip() for n in names.split(",")]]}),
    (r"(.+) (?:only )?after (.+)", lambda name, first: {"after": {name: [first]}}),
]


def _visits(kind: str, name: str, value: Any) -> Visits:
    if isinstance(value, bool):
        return None if value else ()
    if value is None:
        return None
    if value == "first":
        return (0,)
    if isinstance(value, Sequence) and all(type(v) is int for v in value) and value:
        return tuple(value)
    raise ConfigError(
        f"{kind} '{name}' is {value!r}; use true, \"first\", or a list of visit slots such as "
        f"[0, 2]."
    )


def _whole(kind: str, name: str, value: Any) -> int:
    if type(value) is int and value >= 1:
        return value
    what = f"{kind} '{name}'" if name else kind
    raise ConfigError(f"{what} is {value!r}; use a whole number of at least 1.")


def _names(kind: str, value: Any) -> tuple[str, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    least = 2 if kind == "together" else 1
    if listed and len(value) >= least and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise ConfigError(f"{kind} has {value!r}; expected a list of at least {least} features.")


def _joined(a: Mapping[str, Visits], b: Mapping[str, Visits]) -> dict[str, Visits]:
    out = dict(a)
    for name, visits in b.items():
        known = out.get(name, ())
        whole = visits is None or known is None
        out[name] = None if whole else tuple(sorted({*(known or ()), *(visits or ())}))
    return out


def _extreme(choose: Any, a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {k: choose(a.get(k, b.get(k)), b.get(k, a.get(k))) for k in dict.fromkeys([*a, *b])}


def _at(visits: Visits) -> str:
    if visits is None:
        return ""
    return f" at slot{'s' * (len(visits) > 1)} {', '.join(map(str, visits))}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _quoted(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
