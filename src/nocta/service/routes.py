"""The REST API: cases, what-if, plans without a case, the model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from nocta.service import export
from nocta.service.caller import Change, Reader, TheDesk, Version
from nocta.service.desk import Desk
from nocta.service.planner import ServedModel
from nocta.service.problems import Conflict
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
from nocta.service.view import CaseRow, CaseView, Recommended, case_row

CaseId = Annotated[str, Path(max_length=100)]
SlotInPath = Annotated[int, Path(ge=0, le=100_000, description="Visit slot, from 0.")]


class Refusal(BaseModel):
    """Why a request was refused."""

    error: str


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal} for status in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}
router = APIRouter(prefix="/api", responses=_REFUSALS)


class PointView(BaseModel):
    """An operating point kept with the model."""

    cost_weight: float
    cost: float | None
    accuracy: float | None


class FeatureInfo(BaseModel):
    """What can be acquired."""

    name: str
    columns: list[str]
    group: str | None
    unit: str | None
    costs: list[float | None]  # by visit; `None` where it cannot be acquired
    categories: dict[str, list[str]]  # texts of columns that are not numbers


class ModelView(BaseModel):
    """The model of this service."""

    name: str
    hash: str
    classes: list[str]
    slots: list[str]
    slot_times: list[float] | None
    time_unit: str
    is_dated: bool
    currency: str
    context: dict[str, list[str] | None]  # with the texts it may have; `None` for a number
    features: list[FeatureInfo]
    group_fees: dict[str, float]
    visit_fee: float
    cost_weight: float
    points: list[PointView]
    read_only: bool
    person: str
    role: str


@router.get("/model")
def read_model(desk: TheDesk, person: Reader) -> ModelView:
    """What can be acquired, at what price, at which visits."""
    return view_model(desk.served, person.name, person.role, desk.store.read_only)


def view_model(served: ServedModel, person: str, role: str, read_only: bool) -> ModelView:
    """The model as the page needs it."""
    catalog, schedule, categories = served.catalog, served.schedule, served.schema.categories
    return ModelView(
        name=str(served.record.get("dataset", "model")),
        hash=served.hash,
        classes=list(served.model.classes_),
        slots=list(served.words.slots),
        slot_times=None if schedule.times is None else list(schedule.times),
        time_unit=schedule.unit,
        is_dated=schedule.is_dated,
        currency=catalog.currency,
        context={name: categories.get(name) for name in catalog.context},
        features=[
            FeatureInfo(
                name=f.name,
                columns=list(f.columns),
                group=f.group,
                unit=served.unit_of(f.name),
                costs=[
                    float(catalog.costs[t, m]) if catalog.open_slots[t, m] else None
                    for t in range(catalog.n_times)
                ],
                categories={c: categories[c] for c in f.columns if c in categories},
            )
            for m, f in enumerate(catalog.features)
        ],
        group_fees=dict(catalog.group_fees),
        visit_fee=catalog.visit_fee,
        cost_weight=served.cost_weight,
        points=[PointView(**vars(point)) for point in served.points],
        read_only=read_only,
        person=person,
        role=role,
    )


@router.get("/model/card", response_class=PlainTextResponse)
def read_card(desk: TheDesk, person: Reader) -> str:
    """The card of the model, in Markdown."""
    return desk.served.card


@router.post("/plan")
def plan(desk: TheDesk, person: Reader, asked: PlanIn) -> Recommended:
    """The plan for records that the caller keeps; nothing is stored."""
    return desk.plan(asked)


@router.get("/cases")
def list_cases(
    desk: TheDesk,
    person: Reader,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> list[CaseRow]:
    """Cases, the one that changed last first."""
    rows = desk.store.cases()[offset : offset + limit]
    return [case_row(row, desk.served) for row in rows]


@router.post("/cases", status_code=201)
def open_case(desk: TheDesk, request: Change, asked: CaseIn, response: Response) -> CaseView:
    """Open a case."""
    return _view(desk, desk.open(asked, request), response)


@router.post("/demo-case", status_code=201)
def open_demo_case(desk: TheDesk, request: Change, response: Response) -> CaseView:
    """Open a made-up case after its first visit, to try the page with."""
    return _view(desk, desk.open_demo(request), response)


@router.get("/cases/{case_id}")
def read_case(desk: TheDesk, person: Reader, case_id: CaseId, response: Response) -> CaseView:
    """The timeline, predictions at every visit, the plan and why, and the ledger."""
    return _view(desk, case_id, response)


@router.post("/cases/{case_id}/visits")
def go_to_visit(
    desk: TheDesk,
    request: Change,
    version: Version,
    case_id: CaseId,
    asked: VisitIn,
    response: Response,
) -> CaseView:
    """Move on to a later visit, with its date, and its results if they are known."""
    return _changed(desk, case_id, desk.visit(case_id, asked, request, version), response)


@router.post("/cases/{case_id}/visits/{slot}/results")
def enter_results(
    desk: TheDesk,
    request: Change,
    version: Version,
    case_id: CaseId,
    slot: SlotInPath,
    asked: ResultsIn,
    response: Response,
) -> CaseView:
    """Enter results of a visit that took place: values, or "not available"."""
    done = desk.enter(case_id, slot, asked, request, version)
    return _changed(desk, case_id, done, response)


@router.post("/cases/{case_id}/corrections")
def correct(
    desk: TheDesk,
    request: Change,
    version: Version,
    case_id: CaseId,
    asked: CorrectionIn,
    response: Response,
) -> CaseView:
    """Correct a wrong entry; both stay in the history."""
    return _changed(desk, case_id, desk.correct(case_id, asked, request, version), response)


@router.patch("/cases/{case_id}/settings")
def change_settings(
    desk: TheDesk,
    request: Change,
    version: Version,
    case_id: CaseId,
    asked: SettingsIn,
    response: Response,
) -> CaseView:
    """Change the cost weight, the budget, or what is ruled out."""
    return _changed(desk, case_id, desk.set(case_id, asked, request, version), response)


@router.post("/cases/{case_id}/close")
def close_case(
    desk: TheDesk,
    request: Change,
    version: Version,
    case_id: CaseId,
    asked: CloseIn,
    response: Response,
) -> CaseView:
    """Close a case; it can still be read and exported."""
    return _changed(desk, case_id, desk.close(case_id, asked, request, version), response)


@router.post("/cases/{case_id}/what-if")
def what_if(desk: TheDesk, person: Reader, case_id: CaseId, asked: WhatIfIn) -> Recommended:
    """The plan under another cost weight, budget, prices or constraint; nothing is changed."""
    return desk.what_if(case_id, asked)


@router.get("/cases/{case_id}/alternatives")
def alternatives(desk: TheDesk, person: Reader, case_id: CaseId) -> list[Recommended]:
    """What each operating point of the model would do next, cheapest first."""
    return desk.alternatives(case_id)


@router.get("/cases/{case_id}/history")
def history(desk: TheDesk, person: Reader, case_id: CaseId) -> list[dict[str, Any]]:
    """Everything that happened to the case: who, when, what, by which model."""
    return export.to_history(desk.store.events(case_id))


@router.get("/cases/{case_id}/export", response_model=None)
def export_case(
    desk: TheDesk,
    person: Reader,
    case_id: CaseId,
    kind: Annotated[Literal["csv", "json"], Query(alias="format")] = "csv",
) -> Response | dict[str, Any]:
    """The case as CSV (read by `nocta plan`), or as JSON with its history."""
    view = desk.view(case_id)
    if kind == "json":
        return {
            "case": view.model_dump(mode="json"),
            "history": export.to_history(desk.store.events(case_id)),
        }
    if view.next is None:
        raise Conflict(f"{view.read_only} As CSV it needs that model; use format=json.")
    text = export.to_csv(desk.case(case_id), desk.served)
    name = f'attachment; filename="case-{case_id}.csv"'
    return Response(text, media_type="text/csv", headers={"Content-Disposition": name})


def _view(desk: Desk, case_id: str, response: Response) -> CaseView:
    view = desk.view(case_id)
    response.headers["ETag"] = f'"{view.version}"'
    return view


def _changed(desk: Desk, case_id: str, new: bool, response: Response) -> CaseView:
    if not new:
        response.headers["Idempotent-Replayed"] = "true"
    return _view(desk, case_id, response)
