"""What the API answers about a case: the timeline, predictions, the plan, the ledger."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel

from nocta.model.wording import headline, reasons, slot_name
from nocta.planning.explain import PlanSummary
from nocta.planning.explanation import Explanation
from nocta.service.cases import Case, Result
from nocta.service.entering import as_typed
from nocta.service.planner import Conditions, ServedModel
from nocta.service.store import Row

CellState = Literal["acquired", "unavailable", "passed over", "planned", "open", "closed"]


class SlotView(BaseModel):
    """A visit of the schedule."""

    slot: int
    name: str
    due: str | None  # date, if the case has one
    date: str | None  # when it took place
    state: Literal["over", "now", "to come", "missed"]


class CellView(BaseModel):
    """One feature at one visit."""

    state: CellState
    values: dict[str, float | str] = {}
    corrected: bool = False


class FeatureView(BaseModel):
    """One feature over all visits."""

    name: str
    columns: list[str]
    group: str | None
    unit: str | None
    cells: list[CellView]


class PlanView(BaseModel):
    """One plan: what to acquire at which visit."""

    label: str
    visits: dict[int, list[str]]
    cost: float
    expected_charge: float
    expected_loss: float
    objective: float


class EffectView(BaseModel):
    """What one feature adds to the next visit."""

    feature: str
    cost: float
    saves: float
    worth: float | None


class ResultEffectView(BaseModel):
    """Predictions after likely results."""

    column: str
    values: list[float | str]
    predictions: list[list[float]]


class EvidenceView(BaseModel):
    """Similar training subjects, without identities."""

    n_subjects: int
    effective_number: float
    classes: list[float]


class TieView(BaseModel):
    """The best plan against the runner-up."""

    difference: float
    standard_error: float
    tied: bool
    switched: bool
    same_next_visit: bool


class Recommended(BaseModel):
    """What to do next, and why."""

    headline: str
    reasons: list[str]
    stop: bool
    stop_reason: str | None
    slot: int | None
    due: str | None  # date of that visit, if the case has one
    features: list[str]
    cost: float
    cost_weight: float
    budget: float | None
    ruled_out: list[str]
    remaining: float | None  # of the budget
    plans: list[PlanView]  # the recommended one, others, and stopping
    adds: list[EffectView]
    passed_over: list[EffectView]
    results: list[ResultEffectView]
    evidence: EvidenceView | None
    tie: TieView | None
    predictions: list[list[float]]  # class probabilities at every visit


class LedgerLine(BaseModel):
    """Costs of one visit."""

    slot: int
    name: str
    items: list[tuple[str, float]]
    total: float


class CaseRow(BaseModel):
    """A case in the list of cases."""

    id: str
    name: str
    created: str
    changed: str
    version: int
    open: bool
    same_model: bool


class CaseView(BaseModel):
    """Everything about a case."""

    id: str
    name: str
    version: int
    open: bool
    read_only: str | None  # why it cannot be changed
    model: str
    start: str | None
    now: int
    context: dict[str, float | str | None]
    slots: list[SlotView]
    features: list[FeatureView]
    next: Recommended | None  # `None` if the case was made with another model
    ledger: list[LedgerLine]
    spent: float
    remarks: list[str]


def case_row(row: Row, served: ServedModel) -> CaseRow:
    """A line of the list."""
    listed = {k: v for k, v in vars(row).items() if k != "model"}
    return CaseRow(**listed, same_model=row.model == served.hash)


def why_read_only(case: Case, served: ServedModel, store_is_read_only: bool) -> str | None:
    """Why a case cannot be changed, in a sentence; `None` if it can."""
    if case.model != served.hash:
        return (
            f"This case was made with another model ({case.model[:12]}); this service has "
            f"{served.hash[:12]}. It can be read and exported, not continued."
        )
    if not case.open:
        return "This case is closed."
    return "This service was started with --read-only." if store_is_read_only else None


def view_case(case: Case, served: ServedModel, *, read_only: bool = False) -> CaseView:
    """Everything about a case; the plan too, if the model is the one it was made with."""
    same = case.model == served.hash
    conditions = served.conditions(case)
    found = recommend(case, served, conditions) if same else None
    return CaseView(
        id=case.id,
        name=case.name,
        version=case.version,
        open=case.open,
        read_only=why_read_only(case, served, read_only),
        model=case.model,
        start=case.start,
        now=case.now,
        context={
            name: value if value is None else as_typed(name, value, served.schema)
            for name, value in case.context.items()
        },
        slots=_slots(case, served) if same else _foreign_slots(case),
        features=_features(case, served, found) if same else _foreign_features(case),
        next=found,
        ledger=_ledger(case, served) if same else [],
        spent=float(served.charges(case).sum()) if same else 0.0,
        remarks=served.remarks(case) if same else [],
    )


def recommend(case: Case, served: ServedModel, conditions: Conditions) -> Recommended:
    """What to do next under some conditions, and why."""
    why = served.explain(case, conditions)
    found, budget = why.recommendation, conditions.budget
    spent = float(served.charges(case).sum())
    return Recommended(
        headline=headline(found, served.words),
        reasons=reasons(why, served.words),
        stop=found.stop,
        stop_reason=found.stop_reason,
        slot=found.time,
        due=None if found.time is None else served.schedule.date_of(found.time, case.start),
        features=found.features,
        cost=found.cost,
        cost_weight=conditions.cost_weight,
        budget=budget,
        ruled_out=sorted(conditions.ruled_out),
        remaining=None if budget is None else max(budget - spent, 0.0),
        plans=_plans(why),
        adds=[EffectView(**vars(e)) for e in why.adds],
        passed_over=[EffectView(**vars(e)) for e in why.passed_over],
        results=[
            ResultEffectView(
                column=r.column,
                values=[as_typed(r.column, v, served.schema) for v in r.values],
                predictions=r.predictions,
            )
            for r in why.results
        ],
        evidence=None if why.evidence is None else EvidenceView(**vars(why.evidence)),
        tie=None if why.tie is None else TieView(**vars(why.tie)),
        predictions=why.predictions,
    )


def _plans(why: Explanation) -> list[PlanView]:
    """The plans to show side by side, the recommended one first."""
    found = why.recommendation
    named: list[tuple[str, PlanSummary]] = [("recommended", found.plan)]
    if found.runner_up is not None and found.runner_up.visits != found.plan.visits:
        named.append(("runner-up", found.runner_up))
    if all(plan.visits for _, plan in named):
        named.append(("nothing more", found.stopping))
    return [PlanView(label=label, **vars(plan)) for label, plan in named]


def _slots(case: Case, served: ServedModel) -> list[SlotView]:
    def state(slot: int) -> Literal["over", "now", "to come", "missed"]:
        if slot == case.now:
            return "now"
        if slot in case.visits:
            return "over"
        return "missed" if slot < case.now else "to come"

    return [
        SlotView(
            slot=slot,
            name=slot_name(served.model, slot),
            due=served.schedule.date_of(slot, case.start),
            date=case.visits[slot].date if slot in case.visits else None,
            state=state(slot),
        )
        for slot in range(served.catalog.n_times)
    ]


def _features(case: Case, served: ServedModel, found: Recommended | None) -> list[FeatureView]:
    catalog = served.catalog
    planned = found.plans[0].visits if found is not None else {}

    def cell(slot: int, m: int, name: str) -> CellView:
        visit = case.visits.get(slot)
        if visit is not None and name in visit.results:
            result, corrected = visit.results[name], name in visit.corrected
            state: CellState = "unavailable" if result is None else "acquired"
            return CellView(state=state, values=_typed(result, served), corrected=corrected)
        corrected = visit is not None and name in visit.corrected
        return CellView(state=_empty_state(slot, m, name), corrected=corrected)

    def _empty_state(slot: int, m: int, name: str) -> CellState:
        if not catalog.open_slots[slot, m]:
            return "closed"
        if slot <= case.now:
            return "passed over"
        return "planned" if name in planned.get(slot, ()) else "open"

    return [
        FeatureView(
            name=f.name,
            columns=list(f.columns),
            group=f.group,
            unit=served.unit_of(f.name),
            cells=[cell(slot, m, f.name) for slot in range(catalog.n_times)],
        )
        for m, f in enumerate(catalog.features)
    ]


def _typed(result: Result, served: ServedModel) -> dict[str, float | str]:
    return {c: as_typed(c, v, served.schema) for c, v in (result or {}).items()}


def _foreign_slots(case: Case) -> list[SlotView]:
    """The visits of a case made with another model, which knows its schedule better."""
    return [
        SlotView(slot=slot, name=str(slot + 1), due=None, date=visit.date, state="over")
        for slot, visit in case.visits.items()
    ]


def _foreign_features(case: Case) -> list[FeatureView]:
    names = dict.fromkeys(name for visit in case.visits.values() for name in visit.results)

    def cell(name: str, results: dict[str, Result]) -> CellView:
        if name not in results:
            return CellView(state="passed over")
        result = results[name]
        return CellView(
            state="unavailable" if result is None else "acquired", values=dict(result or {})
        )

    return [
        FeatureView(
            name=name,
            columns=[],
            group=None,
            unit=None,
            cells=[cell(name, visit.results) for visit in case.visits.values()],
        )
        for name in names
    ]


def _ledger(case: Case, served: ServedModel) -> list[LedgerLine]:
    """Costs of every visit: features, then the fees."""
    catalog, acquired = served.catalog, served.history(case).acquired[0]
    lines = []
    for slot in np.flatnonzero(acquired.any(axis=1)).tolist():
        here = acquired[slot]
        items = [(catalog.names[m], float(catalog.costs[slot, m])) for m in np.flatnonzero(here)]
        items += [
            (f"fee for {group}", float(fee))
            for (group, fee), members in zip(
                catalog.group_fees.items(), catalog.group_members, strict=True
            )
            if here[members].any()
        ]
        if catalog.visit_fee:
            items.append(("fee for the visit", catalog.visit_fee))
        total = sum(cost for _, cost in items)
        lines.append(
            LedgerLine(slot=slot, name=slot_name(served.model, slot), items=items, total=total)
        )
    return lines
