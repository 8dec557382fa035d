"""The model behind the service: from a case to a plan, one decision at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.history import History
from nocta.model.archive import folder_hash
from nocta.model.explaining import explain, likely_context, likely_values
from nocta.model.nocta import NOCTA
from nocta.model.persistence import load
from nocta.model.wording import Words
from nocta.planning.explanation import Explanation
from nocta.service.cases import Case, Result
from nocta.service.entering import Schedule, find_feature
from nocta.service.problems import ServiceError
from nocta.tables.schema import Schema

#: Explanations kept, so that the same question is answered at once.
_MOST_REMEMBERED = 4096
#: How many times the distance from the middle to a likely value a value may lie off, unremarked.
_FAR = 4.0


@dataclass(frozen=True)
class Conditions:
    """What a plan depends on besides what is known of the subject."""

    cost_weight: float
    budget: float | None = None
    ruled_out: frozenset[str] = frozenset()
    closed_visits: frozenset[int] = frozenset()
    prices: tuple[tuple[str, float], ...] = ()
    arriving: int | None = None  # the visit that is happening; by default only later ones count


@dataclass(frozen=True)
class Point:
    """An operating point kept with the model, and what it meant on validation."""

    cost_weight: float
    cost: float | None  # mean cost of a subject
    accuracy: float | None


class ServedModel:
    """A loaded model that plans for cases.

    Args:
        folder: What `nocta fit` wrote.
        cost_weight: Used for cases that do not say otherwise.
    """

    def __init__(self, folder: Path, cost_weight: float) -> None:
        self.folder, self.cost_weight = folder, cost_weight
        self.model: NOCTA = load(folder)
        self.hash = folder_hash(folder)
        self.schema = Schema.model_validate(self.model.schema_)
        self.words = Words.of(self.model)
        self.likely = likely_values(self.model)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[bytes, Explanation] = OrderedDict()
        self._catalogs: OrderedDict[Any, Catalog] = OrderedDict()

    @property
    def catalog(self) -> Catalog:
        """What can be acquired, at the prices of the model."""
        return self.model.catalog_

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What `nocta fit` recorded."""
        return getattr(self.model, "record_", {})

    @cached_property
    def schedule(self) -> Schedule:
        """The visit slots."""
        times = self.record.get("slot_times")
        unit = self.record.get("time_unit") or "visit"
        known = None if not times else tuple(float(t) for t in times)
        return Schedule(self.schema, self.catalog.n_times, known, unit)

    @cached_property
    def points(self) -> list[Point]:
        """The operating points of the model, cheapest first."""
        measured = {p.get("cost_weight"): p for p in self.record.get("validation", [])}
        kept = [w for w in self.record.get("cost_weights", []) if w is not None]
        rows = [(w, measured.get(w, {})) for w in kept]
        return [Point(w, row.get("cost"), row.get("accuracy")) for w, row in rows]

    @property
    def card(self) -> str:
        """The card of the model, in Markdown."""
        file = self.folder / "card.md"
        return file.read_text("utf-8") if file.is_file() else "This model has no card.\n"

    def warm(self) -> None:
        """Plan once, so that the first person does not wait."""
        self.explain(Case("warm", context={}), Conditions(self.cost_weight))

    # -- planning -------------------------------------------------------------------

    def conditions(self, case: Case) -> Conditions:
        """The conditions of a case as they are."""
        weight = self.cost_weight if case.cost_weight is None else case.cost_weight
        return Conditions(weight, case.budget, frozenset(case.ruled_out))

    def explain(self, case: Case, conditions: Conditions) -> Explanation:
        """The next acquisition of a case and why; equal questions are answered from memory."""
        history, catalog = self.history(case), self.catalog_under(conditions)
        spent = float(self.charges(case).sum())
        remaining = None if conditions.budget is None else max(conditions.budget - spent, 0.0)
        parts = (history.values, history.acquired, history.unavailable, history.context)
        key = b"".join(part.tobytes() for part in parts)
        now = case.now if conditions.arriving is None else conditions.arriving - 1
        key += repr((now, remaining, conditions)).encode()
        # One decision at a time: planners keep what they computed last.
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
            found = self._remembered[key] = explain(
                self.model,
                history,
                conditions.cost_weight,
                time=now,
                remaining=remaining,
                catalog=catalog,
            )
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return found

    def history(self, case: Case) -> History:
        """What is known of a case."""
        catalog = self.catalog
        context = [np.nan if (c := case.context.get(n)) is None else c for n in catalog.context]
        empty = History.empty(catalog, np.array([context], dtype=np.float32).reshape(1, -1))
        for slot, visit in case.visits.items():
            for name, result in visit.results.items():
                m = catalog.names.index(name)
                if result is None:
                    empty.unavailable[0, slot, m] = True
                    continue
                empty.acquired[0, slot, m] = True
                for column, value in result.items():
                    empty.values[0, slot, catalog.columns.index(column)] = value
        return empty

    def charges(self, case: Case) -> NDArray[np.float64]:
        """What each visit of a case cost, `(L,)`; what is not available is not charged."""
        return self.catalog.cost_per_visit(self.history(case).acquired[0])

    def catalog_under(self, conditions: Conditions) -> Catalog:
        """Prices and what is open under some conditions; equal ones give the same catalog."""
        key = (conditions.prices, conditions.ruled_out, conditions.closed_visits)
        if not any(key):
            return self.catalog
        with self._lock:
            if key not in self._catalogs:
                self._catalogs[key] = self._changed_catalog(conditions)
                if len(self._catalogs) > _MOST_REMEMBERED:
                    self._catalogs.popitem(last=False)
            return self._catalogs[key]

    def _changed_catalog(self, conditions: Conditions) -> Catalog:
        priced = self.catalog.with_costs(dict(conditions.prices))
        return replace(
            priced,
            features=tuple(
                replace(f, at=self._open_at(m, f.name, conditions))
                for m, f in enumerate(priced.features)
            ),
        )

    def _open_at(self, m: int, name: str, conditions: Conditions) -> tuple[int, ...]:
        if name in conditions.ruled_out:
            return ()
        open_at = np.flatnonzero(self.catalog.open_slots[:, m]).tolist()
        return tuple(t for t in open_at if t not in conditions.closed_visits)

    def typical_context(self) -> dict[str, float | None]:
        """A made-up context: the first text of a category, the middle of a number."""
        middle, categories = likely_context(self.model), self.schema.categories
        return {
            name: 0.0 if name in categories else float(f"{middle[name]:.2g}")
            for name in self.catalog.context
            if name in categories or name in middle
        }

    def typical_result(self, name: str) -> Result:
        """A made-up result: the middle of the likely values; not available if none is known."""
        columns = find_feature(name, self.catalog).columns
        known = {c: self.likely[c] for c in columns if self.likely.get(c)}
        return {c: float(f"{v[len(v) // 2]:.3g}") for c, v in known.items()} or None

    def unit_of(self, name: str) -> str | None:
        """The unit of a feature, if the schema says it."""
        unit = getattr(self.schema.features.get(name), "unit", None)
        return unit if isinstance(unit, str) else None

    def check_names(self, names: Collection[str]) -> None:
        """Raise unless every name is a feature of the model."""
        for name in names:
            find_feature(name, self.catalog)

    # -- remarks --------------------------------------------------------------------

    def remarks(self, case: Case) -> list[str]:
        """Visits far from their slot, and values far outside what was seen in training."""
        early = [self._misplaced(case, slot, visit.date) for slot, visit in case.visits.items()]
        return [text for text in early if text] + [
            self._far(column, value, slot)
            for slot, visit in case.visits.items()
            for result in visit.results.values()
            for column, value in (result or {}).items()
            if self._is_far(column, value)
        ]

    def _misplaced(self, case: Case, slot: int, day: str | None) -> str:
        schedule = self.schedule
        if day is None or case.start is None or not schedule.is_dated:
            return ""
        try:
            nearest = schedule.slot_of(date.fromisoformat(day), case.start)
        except ServiceError:
            nearest = None
        if nearest == slot:
            return ""
        where = "is off the schedule" if nearest is None else f"belongs to visit {nearest + 1}"
        due = schedule.date_of(slot, case.start)
        return f"Visit {slot + 1} took place on {day}, which {where}; it was due around {due}."

    def _is_far(self, column: str, value: float) -> bool:
        likely = self.likely.get(column, [])
        if len(likely) != 3 or column in self.schema.categories:
            return False
        low, middle, high = likely
        reach = _FAR * (high - middle if value > middle else middle - low)
        return reach > 0 and abs(value - middle) > reach

    def _far(self, column: str, value: float, slot: int) -> str:
        low, _, high = self.likely[column]
        return (
            f"{column} is {value:g} at visit {slot + 1}; most training subjects had {low:.3g} to "
            f"{high:.3g}. Check the entry: the plan may not be reliable."
        )
