"""A model's policy as a protocol: a fixed schedule and a short tree per visit, and what each loses.

Both are made on training and validation subjects and measured on the subjects kept aside, in the
same environment as the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataFileMissing
from nocta.core.policy import Policy
from nocta.core.rollout import Rollout, rollout
from nocta.evaluation.bootstrap import bootstrap_bands
from nocta.methods.distilled.policy import TreePolicy, agreement, distill
from nocta.methods.distilled.tree import Tree
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.reference.protocol import protocol_plans
from nocta.methods.saving import SavedMethod
from nocta.model.choice.default import DefaultPoint
from nocta.runs.fit_points import schedule_of_cost
from nocta.runs.saved import read_as_fitted

#: Measures of every row besides the cost, in the order of the tables.
QUALITIES = ("cross_entropy", "ap", "roc_auc", "accuracy")
ADAPTIVE, SCHEDULE, TREES = "adaptive", "schedule", "trees"
#: At most this many subjects are rolled out to learn the trees.
_MOST_LEARNED = 4000
_N_RESAMPLES = 400


@dataclass(frozen=True)
class Parts:
    """Subjects to make a protocol with, to choose its schedule on, and to measure it on."""

    train: Cohort
    val: Cohort
    test: Cohort
    note: str


@dataclass(frozen=True)
class Number:
    """A mean over subjects with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Candidate:
    """One way to acquire: what it costs and reaches, and what it loses against the model.

    Differences are this one less the adaptive policy, with paired intervals.
    """

    name: str
    measures: dict[str, Number]  # cost, cross_entropy, ap, roc_auc, accuracy
    differences: dict[str, Number] = field(default_factory=dict)


@dataclass(frozen=True)
class ProtocolDocument:
    """Everything that the documents show; `to_dict` is the JSON file."""

    dataset: str
    method: str
    classes: tuple[str, ...]
    setting: dict[str, Any]
    reason: str
    n_made: int  # subjects it was made with
    n_measured: int  # subjects it was measured on
    note: str
    catalog: Catalog
    slot_names: list[str]
    schedule: NDArray[np.bool_]  # (L, M)
    trees: list[Tree]
    agreement: float  # share of decisions on held-out subjects that the trees make as the model
    candidates: list[Candidate]
    categories: dict[str, list[str]] = field(default_factory=dict)

    def candidate(self, name: str) -> Candidate:
        """A row by its name."""
        return next(c for c in self.candidates if c.name == name)

    def to_dict(self) -> dict[str, Any]:
        names = self.catalog.names
        visits = [[names[m] for m in np.flatnonzero(row)] for row in self.schedule]
        plain = {
            name: getattr(self, name)
            for name in ("dataset", "method", "setting", "reason", "n_made", "n_measured", "note")
        }
        return {
            **plain,
            "classes": list(self.classes),
            "currency": self.catalog.currency,
            "constraints": self.catalog.constraints.to_dict(),
            "visits": self.slot_names,
            "schedule": visits,
            "trees": [tree.to_dict() for tree in self.trees],
            "agreement": self.agreement,
            "candidates": [asdict(c) for c in self.candidates],
        }


def make_protocol(
    saved: SavedMethod, parts: Parts, point: DefaultPoint | None = None, depth: int = 2
) -> ProtocolDocument:
    """The policy of a model at one operating point as a schedule and as trees, and what they lose.

    Args:
        saved: A fitted method.
        parts: Subjects; see `parts_of`. The constraints are those of their catalog.
        point: The operating point; the model's default one by default.
        depth: Maximum number of questions of a tree.
    """
    point = point or saved.default_point
    catalog, policy = parts.test.catalog, saved.policy(point.setting)
    learned = Rollout.concatenate(
        [
            _run(policy, part.sample(_MOST_LEARNED), point, saved)
            for part in (parts.train, parts.val)
        ]
    )
    trees = distill(learned, catalog, depth, saved.seed)
    on_val = _run(policy, parts.val, point, saved)
    schedule = schedule_of_cost(policy, parts.val, on_val.cost, saved.seed)
    adaptive = _run(policy, parts.test, point, saved)
    policies: dict[str, Policy] = {
        TREES: TreePolicy(trees, policy),
        SCHEDULE: FixedPlanPolicy(schedule, policy),  # type: ignore[arg-type]  # it predicts
    }
    for name, plan in protocol_plans(catalog).items():
        policies[name] = FixedPlanPolicy(plan, policy)  # type: ignore[arg-type]
    done = {name: _run(own, parts.test, point, saved) for name, own in policies.items()}
    return ProtocolDocument(
        dataset=parts.test.name,
        method=saved.name,
        classes=saved.classes_,
        setting=dict(point.setting),
        reason=point.reason,
        n_made=len(parts.train) + len(parts.val),
        n_measured=len(parts.test),
        note=parts.note,
        catalog=catalog,
        slot_names=_slot_names(saved.record_, catalog.n_times),
        schedule=schedule,
        trees=trees,
        agreement=agreement(trees, adaptive, catalog),
        candidates=candidates({ADAPTIVE: adaptive, **done}),
        categories=dict(saved.schema_.get("categories", {})),
    )


def _run(policy: Policy, cohort: Cohort, point: DefaultPoint, saved: SavedMethod) -> Rollout:
    return rollout(policy, cohort, budget=point.setting.get("budget"), seed=saved.seed)


def candidates(rollouts: Mapping[str, Rollout]) -> list[Candidate]:
    """Measures of roll-outs on the same subjects, and differences from the first of them."""
    done, names = list(rollouts.values()), list(rollouts)
    found: dict[str, list[tuple[Number, Number]]] = {}
    for metric in QUALITIES:
        bands = bootstrap_bands(done, metric, n_resamples=_N_RESAMPLES)
        found["cost"] = _with_differences(bands.costs, bands.cost_samples)
        found[metric] = _with_differences(bands.qualities, bands.samples)
    out = []
    for i, name in enumerate(names):
        measures = {metric: pairs[i][0] for metric, pairs in found.items()}
        differences = {metric: pairs[i][1] for metric, pairs in found.items()} if i else {}
        out.append(Candidate(name, measures, differences))
    return out


def _with_differences(
    values: NDArray[np.float64], samples: NDArray[np.float64]
) -> list[tuple[Number, Number]]:
    """Each value and its difference from the first, with intervals over the same resamples."""
    return [
        (_number(value, sample), _number(value - values[0], sample - samples[0]))
        for value, sample in zip(values, samples, strict=True)
    ]


def _number(value: float, sample: NDArray[np.float64]) -> Number:
    kept = sample[np.isfinite(sample)]
    low, high = np.quantile(kept, [0.025, 0.975]) if kept.size else (np.nan, np.nan)
    return Number(float(value), float(low), float(high))


def _slot_names(record: Mapping[str, Any], n_times: int) -> list[str]:
    """`"Visit 2 (0.5 years)"`, or `"Visit 2"` if times are not known."""
    times: Sequence[float] | None = record.get("slot_times")
    unit = record.get("time_unit", "")
    when = [f" ({time:g} {unit})" for time in times] if times else [""] * n_times
    return [f"Visit {i + 1}{text}" for i, text in enumerate(when)]


def parts_of(
    saved: SavedMethod,
    data: str | None = None,
    *,
    table: bool = True,
    schema: Path | None = None,
    path: Path | None = None,
    constraints: Any = None,
) -> Parts:
    """The subjects of the model's own data, or of other data that fit it.

    On its own data the protocol is measured on the subjects that the fit kept aside. Other data are
    split in the same proportions.

    Args:
        saved: A model that `nocta fit` wrote.
        data: A built-in name or the path of a table; the data of the fit by default.
        table: Whether `data` is a table.
        schema: Schema of a table; that of the model by default.
        path: Files of a built-in data set.
        constraints: What must and must not be acquired, beside the constraints of the model.
    """
    stored = saved.record_.get("request", {}).get("source")
    if data is None and stored is not None:
        data, table = stored["data"], stored["schema"] is not None
        path = None if stored["path"] is None else Path(stored["path"])
        if table and not Path(data).exists():
            raise DataFileMissing(
                f"'{data}', the data of the fit, does not exist here; give its path as DATA."
            )
    found = read_as_fitted(
        saved, data or "", table=table, schema=schema, path=path, constraints=constraints
    )
    note = "subjects that were kept aside when the model was fitted"
    if not found.same:
        note = "subjects of other data than the model was fitted on, drawn at random"
    return Parts(*found.parts(saved), note)
