"""Every error a user can meet, in one tree below `NoctaError`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, Self


class NoctaError(Exception):
    """Base of all errors that `nocta` raises on purpose."""


Kind = Literal["data", "cost", "time"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what was found, where, what to do, and what it is about."""

    what: str
    where: str = ""
    remedy: str = ""
    kind: Kind = "data"

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what} {self.remedy}".rstrip()


class DataError(NoctaError, ValueError):
    """The data cannot be used as it is; the message lists every problem found."""

    problems: tuple[Problem, ...] = ()


class CostError(DataError):
    """A cost is missing, negative or not a number."""


class TimeError(DataError):
    """A time does not fit the visit grid."""


class DataFileMissing(DataError, FileNotFoundError):
    """A file the user has to download was not found (also a `FileNotFoundError`)."""


class LeakageError(NoctaError, ValueError):
    """A decision or a prediction depends on something that was never acquired."""


class PlanError(NoctaError, ValueError):
    """A decision goes back in time, or acquires a closed slot or the same slot twice."""


class BudgetTooSmall(PlanError):
    """A decision costs more than the remaining budget."""


class ConfigError(NoctaError, ValueError):
    """An option has a value that cannot work."""


class ModelError(NoctaError, ValueError):
    """A saved model is damaged, from a newer version, or of another kind."""


class ProcessKilled(NoctaError, RuntimeError):
    """A process or a cluster worker died more than once on the same work."""


class NotFittedError(NoctaError, ValueError, AttributeError):
    """The object was used before `fit`.

    Every instance is also a `sklearn.exceptions.NotFittedError`. scikit-learn takes a second to
    import, so that class becomes a base only when an error is created.
    """

    def __new__(cls, *args: Any) -> Self:
        made: Self = super().__new__(_also_sklearns() if cls is NotFittedError else cls, *args)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return NotFittedError, self.args  # the class made below cannot be found by its name


@cache
def _also_sklearns() -> type[Any]:
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    return type("NotFittedError", (NotFittedError, SklearnNotFittedError), {"__module__": __name__})


class MissingExtraError(NoctaError, ImportError):
    """An optional dependency is not installed (also an `ImportError`)."""


def problems_error(problems: Sequence[Problem], message: str = "") -> DataError:
    """The error for these problems: a `CostError` or `TimeError` if all are of that kind."""
    kinds = {problem.kind for problem in problems}
    by_kind = {"cost": CostError, "time": TimeError}
    found = by_kind.get(kinds.pop(), DataError) if len(kinds) == 1 else DataError
    error = found(message or "\n".join(map(str, problems)))
    error.problems = tuple(problems)
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint such as ``" Did you mean 'age'?"``, or an empty string if no name is close."""
    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    if not close:
        lower = {k.lower(): k for k in known}
        close = [lower[name.lower()]] if name.lower() in lower else []
    if not close:  # `crp` for `CRP [mg/L]`, or the other way round
        close = [k for k in known if _without_unit(k) == _without_unit(name)]
    return f" Did you mean '{close[0]}'?" if close else ""


def _without_unit(name: str) -> str:
    return re.split(r"\s*[\[(]", name.strip(), maxsplit=1)[0].lower()
