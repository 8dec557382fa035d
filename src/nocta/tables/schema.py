"""`schema.toml`: what the columns of a long table mean and what each feature costs.

The models below define the keys of the file (see `docs/reference/schema.md`); `schema_file` reads
it and lists every mistake. Model manifests hold `model_dump(mode="json", exclude_none=True)`, and
`Schema.model_validate` reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from nocta.core.catalog import Catalog, Feature
from nocta.core.constraints import Constraints
from nocta.tables.dates import DateOrder
from nocta.tables.notation import Decimal
from nocta.tables.rule_tables import ConstraintTable, ProtocolTable

if TYPE_CHECKING:
    from nocta.core.cohort import Cohort


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FeatureSpec(_Table):
    """`[features.NAME]`: one thing that can be acquired."""

    cost: float | list[float]  # of one acquisition, or one per visit slot
    columns: list[str] | None = None  # that it reveals; by default the one of the same name
    group: str | None = None  # features of one group share a fee per visit
    at: Literal["first"] | list[int] | None = None  # slots at which it can be acquired, from 0
    loinc: str | dict[str, str] | None = None  # code in hospital systems, or one per column
    unit: str | dict[str, str] | None = None  # of the values in the table (UCUM), or per column


class GroupSpec(_Table):
    """`[groups.NAME]`: fee charged once per visit if any feature of the group is acquired."""

    fee: float


class VisitFee(_Table):
    """`[visit_fee]`: charged once per visit at which anything is acquired."""

    cost: float = 0.0


class EventSpec(_Table):
    """`[event]`: the label is whether an event happens soon after the visit."""

    time: str  # column with the time of the event or the end of follow-up, on the clock of `time`
    status: str  # column that says how follow-up ended
    happened: list[str | int]  # texts of `status` that are events; any other is censored
    within: float = Field(gt=0)  # how soon, in the unit of `time`


class Schema(_Table):
    """The meaning of a long table, one row per subject and visit.

    Example:
        >>> schema = Schema.model_validate(
        ...     {"subject": "id", "visit": "visit", "features": {"alt": {"cost": 3.0}}}
        ... )
        >>> schema.catalog(n_times=2).price_of_everything
        6.0
    """

    subject: str  # column with the subject
    visit: str | None = None  # column with the slot number; or give `time` and `grid`
    first_visit: int = 0  # number of the first slot in the `visit` column
    n_visits: int | None = Field(default=None, ge=1)  # by default as many as the table has
    time: str | None = None  # column with real times; dates count from the subject's first row
    grid: list[FiniteFloat] | None = None  # time of every slot, increasing
    snap: Literal["nearest", "before"] = "nearest"  # slot of a time: nearest, or last before it
    end: FiniteFloat | None = None  # records at or after this time are left out
    time_unit: str | None = None  # for axis labels; for dates days, weeks, months or years
    label: str | None = None  # column with the class; empty cells are unlabeled
    classes: list[str | int] | None = None  # in their order; by default as in the table, sorted
    bins: list[float] | None = None  # cuts a label of numbers into ranges, which are its classes
    event: EventSpec | None = None  # instead of `label`
    context: list[str] = []  # columns that are free and known from the start
    categories: dict[str, list[str]] = {}  # each text of a column becomes its position here
    nominal: list[str] = []  # context of categories without order: one column for each
    decimal: Decimal | None = None  # sign in numbers that are text; by default as they show it
    date_order: DateOrder | None = None  # of dates as 10.01.2025; by default as they show it
    visit_prefix: str | None = None  # before the number in `visit`, as in V1; by default as there
    split: str | None = None  # column with each subject's split (train, val, test)
    group: str | None = None  # column whose subjects stay in the same split (two knees)
    name: str | None = None  # of the data set in results
    currency: str = ""
    features: dict[str, FeatureSpec] = {}
    groups: dict[str, GroupSpec] = {}
    visit_fee: VisitFee = VisitFee()
    constraints: ConstraintTable | None = None  # what every policy must and must not acquire
    protocols: dict[str, ProtocolTable] = {}  # fixed schedules to compare with

    @property
    def clock(self) -> str | None:
        """The `visit` or the `time` column."""
        return self.visit if self.visit is not None else self.time

    @property
    def n_slots(self) -> int | None:
        """Number of visit slots, if the schema alone decides it."""
        return len(self.grid) if self.grid else self.n_visits

    def columns_by_role(self) -> list[tuple[str, str]]:
        """Every column of the schema, as `(role, column)`."""
        roles = [
            ("subject", self.subject),
            ("visit" if self.visit is not None else "time", self.clock),
            ("label", self.label),
            ("split", self.split),
            ("group", self.group),
            *(("context", c) for c in self.context),
        ]
        if self.event is not None:
            roles += [("event", self.event.time), ("event", self.event.status)]
        roles += [(f"features.{n}", c) for n, f in self.features.items() for c in f.columns or [n]]
        return [(role, column) for role, column in roles if column]

    def text_columns(self) -> set[str]:
        """Columns to read as text, exactly as written."""
        single = {self.subject, self.split, self.group}
        single |= {self.event.status} if self.event else set()
        single |= {self.label} if self.bins is None else set()
        return {c for c in single if c} | set(self.categories)

    def listed_values(self) -> dict[str, list[str]]:
        """The texts that are values of a column, even if they look like a missing value."""
        listed = dict(self.categories)
        if self.label is not None and self.bins is None and self.classes is not None:
            listed[self.label] = [str(c) for c in self.classes]
        if self.event is not None:
            listed[self.event.status] = [str(s) for s in self.event.happened]
        return listed

    def context_columns(self) -> dict[str, list[str]]:
        """Columns that each context column becomes: itself, or one for each of its categories."""
        return {
            name: [f"{name}={value}" for value in self.categories[name]]
            if name in self.nominal and name in self.categories
            else [name]
            for name in self.context
        }

    def catalog(self, n_times: int | None = None) -> Catalog:
        """The catalog of the schema, over `n_times` slots unless the schema says how many."""
        features = []
        for name, f in self.features.items():
            columns = (name,) if f.columns is None else tuple(f.columns)
            cost = tuple(f.cost) if isinstance(f.cost, list) else f.cost
            at = (0,) if f.at == "first" else None if f.at is None else tuple(f.at)
            features.append(Feature(name, columns, cost, f.group, at))
        return Catalog(
            features=tuple(features),
            n_times=self.n_slots or n_times or 1,
            context=tuple(c for columns in self.context_columns().values() for c in columns),
            group_fees={name: g.fee for name, g in self.groups.items()},
            visit_fee=self.visit_fee.cost,
            currency=self.currency,
            constraints=Constraints.read(self.constraints.given() if self.constraints else None),
            protocols=self.protocols,
        )

    @classmethod
    def of(cls, cohort: Cohort) -> Schema:
        """The schema for histories of this cohort.

        It is the schema the cohort was read with, at the cohort's present costs. A cohort without
        a schema gets columns `subject` and `visit`, and the columns of its features and context.
        """
        catalog = cohort.catalog
        base = {"subject": "subject", "visit": "visit"} if cohort.schema is None else cohort.schema
        described = {
            "name": cohort.name,
            "classes": list(cohort.classes),
            "time_unit": cohort.time_unit,
            "currency": catalog.currency,
            "context": _context_of(base, catalog.context),
            "features": {
                f.name: FeatureSpec(
                    **_coding(base, f.name),
                    cost=list(f.cost) if isinstance(f.cost, tuple) else f.cost,
                    columns=list(f.columns),
                    group=f.group,
                    at=None if f.at is None else list(f.at),
                )
                for f in catalog.features
            },
            "groups": {name: GroupSpec(fee=fee) for name, fee in catalog.group_fees.items()},
            "visit_fee": VisitFee(cost=catalog.visit_fee),
            "constraints": catalog.constraints.to_dict() or None,
            "protocols": catalog.protocols,
        }
        if not base.get("grid"):
            described["n_visits"] = catalog.n_times
        return cls.model_validate({**base, **described})


def _coding(base: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The codes and units of a feature, which the catalog does not know."""
    given = base.get("features", {}).get(name, {})
    return {key: given[key] for key in ("loinc", "unit") if given.get(key) is not None}


def _context_of(base: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The context columns of a table that became these columns of a cohort."""
    read = Schema.model_validate(base)
    same = [c for columns in read.context_columns().values() for c in columns] == list(names)
    return read.context if same else list(names)
