"""A case is what its events add up to; nothing that was entered is ever overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nocta.service.store import Event

#: Values of a result by column; `None` if it was requested but is not available.
Result = dict[str, float] | None


@dataclass
class Visit:
    """One visit that took place."""

    date: str | None = None
    results: dict[str, Result] = field(default_factory=dict)  # by feature
    corrected: set[str] = field(default_factory=set)  # features whose entry was corrected


@dataclass
class Case:
    """A case as it is after some events."""

    id: str
    name: str = ""
    model: str = ""  # hash of the model the case was made with
    version: int = 0
    open: bool = True
    context: dict[str, float | None] = field(default_factory=dict)
    start: str | None = None  # date of the first slot
    cost_weight: float | None = None  # `None`: the model's default
    budget: float | None = None  # for the whole case
    ruled_out: list[str] = field(default_factory=list)  # features that are not acquired any more
    visits: dict[int, Visit] = field(default_factory=dict)  # by slot, in order

    @property
    def now(self) -> int:
        """The slot of the last visit; -1 before the first."""
        return max(self.visits, default=-1)

    @classmethod
    def after(cls, case_id: str, events: Iterable[Event]) -> Case:
        """The case after these events."""
        case = cls(case_id)
        for event in events:
            getattr(case, f"_{event.kind}")(event.body)
            case.version = event.version
            case.model = case.model or event.model
        return case

    def _opened(self, body: dict[str, Any]) -> None:
        self.name, self.context, self.start = body["name"], body["context"], body["start"]
        self.cost_weight, self.budget = body["cost_weight"], body["budget"]

    def _visited(self, body: dict[str, Any]) -> None:
        self.visits[body["slot"]] = Visit(body["date"])
        self.start = self.start or body.get("start")

    def _entered(self, body: dict[str, Any]) -> None:
        self.visits[body["slot"]].results |= body["results"]

    def _corrected(self, body: dict[str, Any]) -> None:
        visit, feature = self.visits[body["slot"]], body["feature"]
        visit.corrected.add(feature)
        if body["removed"]:
            visit.results.pop(feature, None)
        else:
            visit.results[feature] = body["after"]

    def _context_corrected(self, body: dict[str, Any]) -> None:
        self.context[body["name"]] = body["after"]

    def _settings_changed(self, body: dict[str, Any]) -> None:
        for name in ("cost_weight", "budget", "ruled_out"):
            if name in body:
                setattr(self, name, body[name])

    def _closed(self, body: dict[str, Any]) -> None:
        self.open = False
