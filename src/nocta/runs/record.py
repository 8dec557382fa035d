"""The record of one finished job: the single format between a job, its file and the report.

`jobs/NAME.json` holds one `JobRecord`. Its keys are the field names, so renaming a field changes
the file format. A field with a default may be absent from files of earlier versions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any

from pydantic import PlainValidator, TypeAdapter, ValidationError

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.operating_points import cost_of_everything
from nocta.evaluation.audit import AuditReport
from nocta.methods.registry import method_class
from nocta.runs.results import Number, Row, plain

#: Slot and feature, later slot and feature, share of subjects who acquire both.
Together = tuple[int, int, int, int, float]
_Prices = Annotated[Catalog, PlainValidator(lambda value: _catalog(value))]


@dataclass(frozen=True)
class Job:
    """One method at one seed.

    Args:
        method: Name of the method.
        seed: Determines the split, all training and, for simulated data, the subjects.
        options: Options of the method that differ from the defaults; see `method_options`.
        label: Name of the method in results; the method's own name by default.

    Example:
        >>> Job("static", 3).name
        'static-seed3'
    """

    method: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.method)

    @property
    def name(self) -> str:
        """Name of the job's file."""
        return re.sub(r"[^\w.=-]+", "_", f"{self.label}-seed{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        return _plain_fields(self)

    @property
    def shares_predictor(self) -> bool:
        """Whether the method acquires for a predictor it is given."""
        return method_class(self.method).shares_predictor


@dataclass(frozen=True)
class CalibrationCurve:
    """Stated probability, observed frequency and number of pairs of each nonempty bin."""

    stated: list[float]
    observed: list[float]
    counts: list[int]


#: A value and the ends of its 95 % bootstrap interval over subjects.
Interval = tuple[Number, Number, Number]


@dataclass(frozen=True, kw_only=True)
class Subgroup:
    """Some of the subjects, told apart by their context, at one operating point.

    Args:
        name: What they have in common.
        n_subjects: How many there are.
        n_labels: How many labels they have; with few subjects, no interval is known.
        cost: Mean charge per subject.
        quality: The headline metric.
        calibration: Observed frequency less stated probability (of the positive class, or of more
            classes the accuracy less the confidence).
    """

    name: str
    n_subjects: int
    n_labels: int
    cost: Interval
    quality: Interval
    calibration: Interval


@dataclass(frozen=True, kw_only=True)
class PointDetails:
    """What the report shows about one operating point; metrics are pooled over all labeled pairs.

    Args:
        cost: Mean charge per subject.
        tail_loss: Mean loss of the worst tenth of the subjects.
        tests: Mean number of features acquired per subject.
        visits: Mean number of slots at which a subject acquires anything.
        threshold: Positive probability above which there is an alarm (`nocta.core.detection`).
        detection_delay: Mean number of slots from onset to detection.
        detected: Share of the subjects with an onset that are detected.
        false_alarms: Share of negative labels with an alarm.
        mean_stop_time: Last slot with a request, over subjects with any request.
        stop_histogram: Number of subjects without a request, with the last one at slot 0, 1, ...
        per_time: By metric (and `cost`), one number per slot.
        band: 95 % bootstrap interval of the headline metric over subjects.
        acquired: Share of subjects who acquired each feature at each slot, `(L, M)`.
        together: What the same subjects acquire at two slots, most often first.
        ledger: Mean charge per subject by feature and fee.
        expected_loss: Loss per subject that the policy expected before the first visit.
        expected_cost: Charge per subject that it expected.
        realized_loss: Loss per subject that followed.
        confusion: Number of labeled pairs by true class (rows) and most probable class (columns).
        subgroups: Subjects by context; only at the points where it was asked for.
    """

    cost: Number
    accuracy: Number
    ap: Number
    roc_auc: Number
    cross_entropy: Number
    brier: Number
    calibration_error: Number
    tail_loss: Number
    n_subjects: int
    n_labels: int
    tests: Number = math.nan
    visits: Number = math.nan
    threshold: Number = math.nan
    detection_delay: Number = math.nan
    detected: Number = math.nan
    false_alarms: Number = math.nan
    mean_stop_time: Number
    stop_histogram: list[int]
    per_time: dict[str, list[Number]]
    band: tuple[Number, Number] | None
    calibration: CalibrationCurve | None
    acquired: list[list[float]]
    together: list[Together] = field(default_factory=list)
    ledger: dict[str, float]
    expected_loss: Number = math.nan
    expected_cost: Number = math.nan
    realized_loss: Number = math.nan
    confusion: list[list[int]] = field(default_factory=list)
    subgroups: list[Subgroup] = field(default_factory=list)


@dataclass(frozen=True)
class AuditPoint(AuditReport):
    """What the audit verified at one operating point."""

    setting: dict[str, Any]
    finding: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of a job: totals over its operating points, and each point."""

    n_points: int = 1
    n_subjects: int
    n_decisions: int
    n_predictions: int
    seconds: float
    availability: str
    results: str
    kinds: tuple[str, ...]
    cuts: tuple[int, ...]
    points: list[AuditPoint] = field(default_factory=list)


@dataclass(frozen=True)
class CohortDescription:
    """Names and sizes of the data of a job."""

    name: str
    classes: list[str]
    catalog: _Prices
    slot_times: list[float]
    time_unit: str
    n_train: int
    n_val: int
    n_test: int
    cost_of_everything: float

    @classmethod
    def of(cls, test: Cohort, *, n_train: int, n_val: int) -> CohortDescription:
        """The data of a job, from the subjects it was tested on."""
        return cls(
            name=test.name,
            classes=list(test.classes),
            catalog=test.catalog,
            slot_times=list(test.slot_times or map(float, range(test.n_times))),
            time_unit=test.time_unit,
            n_train=n_train,
            n_val=n_val,
            n_test=len(test),
            cost_of_everything=cost_of_everything(test),
        )


@dataclass(frozen=True)
class TrialRecord:
    """Options that were tried, and their score on validation (`None`: the trial failed)."""

    options: dict[str, Any]
    score: float | None
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class TuningRecord:
    """The trials of a job, the best one, and the scale of the scores (see `ValidationArea`)."""

    n_trials: int
    tuned: list[str]
    trials: list[TrialRecord]
    best: int
    chosen: dict[str, Any]
    seconds: float
    metric: str
    high: float
    start: Number

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> TuningRecord:
        found: TuningRecord = _reader(TuningRecord).validate_python(data)
        return found


@dataclass(frozen=True)
class Recommended:
    """Position of the operating point at which a job is shown in detail, and why it is that one.

    `reason` completes "It is ...". Test subjects have no say in it.
    """

    index: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """Everything that is kept of a finished job.

    `tuning` is `None` if nothing was tuned, `audit` if no subject was audited. `rows` are its rows
    of results.csv, one per operating point; `details` has what the report shows about each.
    `recommended` is `None` in records of earlier versions.
    """

    job: Job
    tuning: TuningRecord | None = None
    rows: list[Row]
    details: list[PointDetails]
    recommended: Recommended | None = None
    audit: Audit | None = None
    cohort: CohortDescription
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def read(cls, data: Mapping[str, Any], origin: object = "a job file") -> JobRecord:
        """Inverse of `to_dict`; errors name the file `origin`."""
        try:
            found: JobRecord = _reader(JobRecord).validate_python(data)
            return found
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            raise ConfigError(
                f"'{origin}' is not a complete record of a job: {place}: {first['msg']} "
                f"({error.error_count()} problem(s)). Delete the file to run the job again."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        return _plain_fields(self)


def read_details(data: Any) -> PointDetails:
    """One operating point as it was kept of an evaluation."""
    found: PointDetails = _reader(PointDetails).validate_python(data)
    return found


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _catalog(value: Any) -> Catalog:
    if isinstance(value, Catalog):
        return value
    try:
        return Catalog.from_dict(value)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a price list ({error!r})") from None


def _plain_fields(value: Job | JobRecord) -> dict[str, Any]:
    return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
