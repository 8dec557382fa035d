"""What the API reads: every request body, typed and bounded."""

from __future__ import annotations

from datetime import date as Day
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Slot = Annotated[int, Field(ge=0, le=100_000)]
#: A number, or the text of a category.
Cell = Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=200)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ResultIn(_Body):
    """The result of one feature: one value, several by column, or not available."""

    value: Cell | None = Field(None, description="For a feature with one column.")
    values: dict[Name, Cell] | None = Field(None, description="By column.", max_length=1000)
    unavailable: bool = Field(False, description="Requested, but not available.")


class CaseIn(_Body):
    """A new case."""

    name: Name = Field(description="What people call it; shown in the list of cases.")
    context: dict[Name, Cell | None] = Field(
        default_factory=dict, description="What is free and known from the start.", max_length=1000
    )
    start: Day | None = Field(None, description="Date of the first slot of the schedule.")
    cost_weight: Amount | None = Field(None, description="Default: that of the model.")
    budget: Amount | None = Field(None, description="Hard limit on the cost of the whole case.")


class ResultsIn(_Body):
    """Results of a visit."""

    results: dict[Name, ResultIn] = Field(description="By feature.", max_length=10_000)


class VisitIn(_Body):
    """A visit that takes place: its slot, or its date, or both; and results that are known."""

    slot: Slot | None = Field(None, description="From 0. Default: the one of the date.")
    date: Day | None = Field(None, description="When it took place.")
    results: dict[Name, ResultIn] = Field(default_factory=dict, max_length=10_000)


class CorrectionIn(_Body):
    """A wrong entry is corrected; both stay in the history.

    Give `slot` and `feature` with the right `result`, or without one to take the entry back; or
    give `context` with its `value`.
    """

    slot: Slot | None = None
    feature: Name | None = None
    result: ResultIn | None = None
    context: Name | None = None
    value: Cell | None = None
    reason: Annotated[str, Field(max_length=1000)] = ""


class SettingsIn(_Body):
    """How thrifty to be; what is left out stays as it is."""

    cost_weight: Amount | None = None
    budget: Amount | None = None
    ruled_out: list[Name] | None = Field(None, max_length=10_000)


class CloseIn(_Body):
    """The end of a case."""

    reason: Annotated[str, Field(max_length=1000)] = ""


class WhatIfIn(_Body):
    """Other conditions, tried without changing anything; what is left out stays as it is."""

    cost_weight: Amount | None = None
    budget: Amount | None = None
    prices: dict[Name, Amount] = Field(default_factory=dict, max_length=10_000)
    ruled_out: list[Name] | None = Field(None, max_length=10_000)
    closed_visits: list[Slot] = Field(default_factory=list, max_length=10_000)
    arriving: Slot | None = Field(
        None, description="A later visit that is happening: what to acquire at it, or after it."
    )


class PastVisit(_Body):
    """A visit in the records of the caller."""

    slot: Slot
    results: dict[Name, ResultIn] = Field(default_factory=dict, max_length=10_000)


class PlanIn(WhatIfIn):
    """Everything a plan needs, for programs that keep their own records."""

    context: dict[Name, Cell | None] = Field(default_factory=dict, max_length=1000)
    visits: list[PastVisit] = Field(default_factory=list, max_length=1000)


#: Answers are assembled in `nocta.service.view`.
Answer = dict[str, Any]
