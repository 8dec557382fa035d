"""What people do with cases: open, visit, enter, correct, set, close. Each becomes events."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from nocta.service.cases import Case, Visit
from nocta.service.entering import find_feature, find_visit, read_cell, read_context, read_results
from nocta.service.planner import Conditions, ServedModel
from nocta.service.problems import Conflict, ServiceError
from nocta.service.schemas import (
    CaseIn,
    CloseIn,
    CorrectionIn,
    PlanIn,
    ResultsIn,
    SettingsIn,
    VisitIn,
    WhatIfIn,
)
from nocta.service.store import Event, Request, Store
from nocta.service.view import CaseView, Recommended, recommend, view_case, why_read_only

#: Kinds and bodies of new events.
Changes = list[tuple[str, dict[str, Any]]]


class Desk:
    """Cases in a store, planned for by one model."""

    def __init__(self, store: Store, served: ServedModel) -> None:
        self.store, self.served = store, served

    # -- reading --------------------------------------------------------------------

    def case(self, case_id: str) -> Case:
        """The case as it is now."""
        return Case.after(case_id, self.store.events(case_id))

    def view(self, case_id: str) -> CaseView:
        """Everything about a case."""
        return view_case(self.case(case_id), self.served, read_only=self.store.read_only)

    def what_if(self, case_id: str, asked: WhatIfIn) -> Recommended:
        """The plan under other conditions; nothing is changed."""
        case = self.case(case_id)
        self._check_model(case)
        return recommend(
            case, self.served, self._conditions(asked, case, self.served.conditions(case))
        )

    def plan(self, asked: PlanIn) -> Recommended:
        """The plan for records that the caller keeps."""
        catalog, schema = self.served.catalog, self.served.schema
        case = Case("", context=read_context(asked.context, catalog, schema))
        for visit in asked.visits:
            slot, _ = find_visit(self.served.schedule, case, visit.slot, None)
            results = read_results(visit.results, catalog, schema, slot)
            case.visits[slot] = Visit(results=results)
        return recommend(
            case, self.served, self._conditions(asked, case, Conditions(self.served.cost_weight))
        )

    def alternatives(self, case_id: str) -> list[Recommended]:
        """What each operating point of the model would do next, cheapest first."""
        case = self.case(case_id)
        self._check_model(case)
        own = self.served.conditions(case)
        weights = [p.cost_weight for p in self.served.points] or [own.cost_weight]
        each = [Conditions(w, own.budget, own.ruled_out) for w in weights]
        return [recommend(case, self.served, conditions) for conditions in each]

    def _conditions(self, asked: WhatIfIn, case: Case, base: Conditions) -> Conditions:
        self.served.check_names([*asked.prices, *(asked.ruled_out or ())])
        for slot in asked.closed_visits:
            self.served.schedule.check_slot(slot)
        if asked.arriving is not None:
            find_visit(self.served.schedule, case, asked.arriving, None)
        ruled_out = base.ruled_out if asked.ruled_out is None else frozenset(asked.ruled_out)
        return Conditions(
            base.cost_weight if asked.cost_weight is None else asked.cost_weight,
            asked.budget if "budget" in asked.model_fields_set else base.budget,
            ruled_out,
            frozenset(asked.closed_visits),
            tuple(sorted(asked.prices.items())),
            asked.arriving,
        )

    # -- changing -------------------------------------------------------------------

    def open(self, asked: CaseIn, request: Request) -> str:
        """Open a case; returns its id."""
        body = {
            "name": asked.name,
            "context": read_context(asked.context, self.served.catalog, self.served.schema),
            "start": None if asked.start is None else asked.start.isoformat(),
            "cost_weight": asked.cost_weight,
            "budget": asked.budget,
        }
        return self.store.add_case(secrets.token_urlsafe(12), asked.name, body, request)

    def open_demo(self, request: Request) -> str:
        """Open a made-up case after its first visit, to try the page with."""
        served = self.served
        made: dict[str, Any] = {
            "name": "Demo",
            "context": served.typical_context(),
            "start": served.schedule.start_before(date.today()),
            "cost_weight": None,
            "budget": None,
        }
        found = served.explain(
            Case("", context=made["context"]), Conditions(served.cost_weight)
        ).recommendation
        case_id = self.store.add_case(secrets.token_urlsafe(12), "Demo", made, request)
        if found.time is None or self.case(case_id).now >= 0:
            return case_id
        results: dict[str, Any] = {f: served.typical_result(f) for f in found.features}
        day = served.schedule.date_of(found.time, made["start"])
        entered = {"slot": found.time, "results": results}
        self.store.add_events(
            case_id,
            replace(request, key=None),
            lambda _: [("visited", {"slot": found.time, "date": day}), ("entered", entered)],
        )
        return case_id

    def visit(self, case_id: str, asked: VisitIn, request: Request, version: int | None) -> bool:
        """Move on to a later visit, with its results if they are known."""

        def changes(case: Case) -> Changes:
            slot, start = find_visit(self.served.schedule, case, asked.slot, asked.date)
            day = None if asked.date is None else asked.date.isoformat()
            body: dict[str, Any] = {"slot": slot, "date": day}
            made: Changes = [("visited", body if start is None else {**body, "start": start})]
            if asked.results:
                made.append(("entered", self._entry(asked.results, slot)))
            return made

        return self._change(case_id, request, version, changes)

    def enter(
        self, case_id: str, slot: int, asked: ResultsIn, request: Request, version: int | None
    ) -> bool:
        """Enter results of a visit that took place."""

        def changes(case: Case) -> Changes:
            self._check_visited(case, slot)
            for name in asked.results:
                if name in case.visits[slot].results:
                    raise Conflict(
                        f"'{name}' has an entry at visit {slot + 1}; correct it instead, so that "
                        f"both stay in the history."
                    )
            return [("entered", self._entry(asked.results, slot))] if asked.results else []

        return self._change(case_id, request, version, changes)

    def correct(
        self, case_id: str, asked: CorrectionIn, request: Request, version: int | None
    ) -> bool:
        """Correct an entry or the context; what was there stays in the history."""

        def changes(case: Case) -> Changes:
            if asked.context is not None:
                return [("context_corrected", self._corrected_context(case, asked))]
            if asked.slot is None or asked.feature is None:
                raise ServiceError("Say what to correct: a slot and a feature, or the context.")
            return [("corrected", self._correction(case, asked.slot, asked.feature, asked))]

        return self._change(case_id, request, version, changes)

    def set(self, case_id: str, asked: SettingsIn, request: Request, version: int | None) -> bool:
        """Change how thrifty to be, the budget, or what is ruled out."""
        self.served.check_names(asked.ruled_out or ())
        given = {name: getattr(asked, name) for name in sorted(asked.model_fields_set)}
        if given.get("ruled_out", []) is None:
            given["ruled_out"] = []
        return self._change(
            case_id, request, version, lambda _: [("settings_changed", given)] if given else []
        )

    def close(self, case_id: str, asked: CloseIn, request: Request, version: int | None) -> bool:
        """Close a case; it can still be read and exported."""
        return self._change(
            case_id, request, version, lambda _: [("closed", {"reason": asked.reason})]
        )

    def _change(
        self,
        case_id: str,
        request: Request,
        version: int | None,
        changes: Callable[[Case], Changes],
    ) -> bool:
        def make(events: list[Event]) -> Changes:
            case = Case.after(case_id, events)
            refused = why_read_only(case, self.served, self.store.read_only)
            if refused is not None:
                raise Conflict(refused)
            return changes(case)

        return self.store.add_events(case_id, request, make, version)

    def _entry(self, results: Any, slot: int) -> dict[str, Any]:
        read = read_results(results, self.served.catalog, self.served.schema, slot)
        return {"slot": slot, "results": read}

    def _correction(self, case: Case, slot: int, name: str, asked: CorrectionIn) -> dict[str, Any]:
        self._check_visited(case, slot)
        find_feature(name, self.served.catalog)
        results = case.visits[slot].results
        if name not in results and asked.result is None:
            raise Conflict(f"'{name}' has no entry at visit {slot + 1} that could be taken back.")
        after = None
        if asked.result is not None:
            after = self._entry({name: asked.result}, slot)["results"][name]
        return {
            "slot": slot,
            "feature": name,
            "had_entry": name in results,
            "before": results.get(name),
            "after": after,
            "removed": asked.result is None,
            "reason": asked.reason,
        }

    def _corrected_context(self, case: Case, asked: CorrectionIn) -> dict[str, Any]:
        assert asked.context is not None
        read_context({asked.context: asked.value}, self.served.catalog, self.served.schema)
        value = asked.value
        after = None if value is None else read_cell(asked.context, value, self.served.schema)
        before = case.context.get(asked.context)
        return {"name": asked.context, "before": before, "after": after, "reason": asked.reason}

    def _check_visited(self, case: Case, slot: int) -> None:
        self.served.schedule.check_slot(slot)
        if slot not in case.visits:
            raise Conflict(
                f"Visit {slot + 1} has not taken place; move on to it before entering results."
            )

    def _check_model(self, case: Case) -> None:
        if case.model != self.served.hash:
            refused = why_read_only(case, self.served, self.store.read_only)
            raise Conflict(refused or "")
