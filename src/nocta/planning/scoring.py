"""The next acquisition of `n` subjects and the numbers behind it.

`nocta score` writes them as a table (`score_histories`); `nocta.planning.explain` puts those of one
subject into words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.enforce import enforce
from nocta.core.errors import ConfigError, PlanError
from nocta.core.policy import Decision, Observation
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.limits import DEFAULT_LIMITS, Limits
from nocta.planning.search import FoundPlans
from nocta.tables.history_table import HistoryTable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Scores:
    """The next acquisition of each of `n` subjects, and why."""

    decision: Decision
    cost: NDArray[np.float64]  # (n,) price of the acquisition, fees included
    #: As estimated and ranked: losses may be below 0, and are shown as at least 0.
    found: FoundPlans
    prices: NDArray[np.float64]  # (n, r) list price of those plans, fees included
    probabilities: NDArray[np.float32]  # (n, C) at the current slot, or the first before any visit

    @classmethod
    def of(
        cls, found: FoundPlans, observation: Observation, probabilities: NDArray[np.float32]
    ) -> Scores:
        """The decisions that begin the best plans, within the constraints, and prices."""
        catalog = observation.catalog
        decision = enforce(observation, Decision.from_plans(found.plans[:, 0]))
        first = np.zeros_like(found.plans[:, 0])
        first[np.arange(len(first)), np.maximum(decision.time, 0)] = decision.features
        prices = catalog.cost_of(found.plans)
        return cls(decision, catalog.cost_of(first), found, prices, probabilities)


def score_subjects(policy: PlanningPolicy, observation: Observation) -> Scores:
    """Plan for every subject. At the last visit nothing is left to acquire."""
    catalog, now = observation.catalog, observation.time
    rows = np.arange(len(observation))
    proba = policy.predict_proba(observation.history)[rows, np.maximum(now, 0)]
    if not np.isfinite(proba).all():
        raise PlanError(
            "A predicted probability is not a finite number, so nothing can be advised. The model "
            "is damaged, or its training diverged; fit it again."
        )
    last = now == catalog.n_times - 1
    weights = np.full(len(rows), policy.cost_weight, dtype=float)
    parts = [FoundPlans.nothing(weights[last], catalog.open_slots.shape)]
    if not last.all():
        parts.append(policy.best_plans(observation.subset(~last)))
    order = np.argsort(np.concatenate([rows[last], rows[~last]]))
    return Scores.of(FoundPlans.concatenate(parts).take(order), observation, proba)


class FittedModel(Protocol):
    """What `score_histories` needs of a model."""

    catalog_: Catalog
    classes_: tuple[str, ...]

    def policy(self, cost_weight: float) -> PlanningPolicy:
        """Algorithm 1 at a cost weight."""


def score_histories(
    model: FittedModel,
    table: HistoryTable,
    cost_weight: float,
    budget: float | None = None,
    limits: Limits = DEFAULT_LIMITS,
    constraints: Any = None,
) -> pa.Table:
    """The next acquisition of every subject, or to stop, and what is expected of it.

    Decisions are those of `NOCTA.decide`, subject by subject, and obey these constraints beside
    those of the model.

    Returns:
        One row per subject: `subject`; `now`, the current slot (-1 before the first visit);
        `stop`; `time` (and `date`, if visits have dates) and `features` of the next acquisition,
        and its `cost`; `plan_cost`,
        `expected_charge`, `expected_loss` and `objective` of the plan that begins with it;
        `expected_gain`, the loss the plan is expected to save compared with stopping now; the
        `predicted` class at the current slot and the `probability` of every class.
    """
    import pyarrow as pa

    if budget is not None and not budget >= 0:
        raise ConfigError(f"budget is {budget}; use a number of at least 0.")
    policy, catalog = model.policy(cost_weight), model.catalog_.constrained(constraints)
    pieces = []
    for start in range(0, len(table), limits.scored_subjects):
        rows = np.arange(start, min(start + limits.scored_subjects, len(table)))
        observation = Observation(
            history=table.history.subset(rows),
            time=table.time[rows],
            remaining=np.full(len(rows), np.inf if budget is None else budget),
            catalog=catalog,
            rows=np.arange(len(rows)),
        ).reserving()
        observation.check_reserve()
        columns = _columns(score_subjects(policy, observation), model)
        known = {"subject": pa.array(table.subjects[rows].tolist()), "now": table.time[rows]}
        if table.calendar.is_dated:
            known["date"] = _dates(table, rows, columns["time"].to_pylist())
        pieces.append(pa.table({**known, **columns}))
    return pa.concat_tables(pieces, promote_options="default").combine_chunks()


def _dates(table: HistoryTable, rows: NDArray[np.int64], slots: list[int | None]) -> Any:
    import pyarrow as pa

    found = zip(rows.tolist(), slots, strict=True)
    days = [None if slot is None else table.calendar.date_of(row, slot) for row, slot in found]
    return pa.array(days, pa.date32())


def _columns(scores: Scores, model: FittedModel) -> dict[str, Any]:
    import pyarrow as pa

    found, decision = scores.found, scores.decision
    loss, stopping = np.maximum(found.losses[:, 0], 0.0), np.maximum(found.stopping, 0.0)
    classes = np.array(model.classes_, dtype=str)
    names = np.array(model.catalog_.names, dtype=str)[np.nonzero(decision.features)[1]]
    ends = np.concatenate([[0], decision.features.sum(axis=1).cumsum()]).astype(np.int32)
    return {
        "stop": decision.stop,
        "time": pa.array(decision.time, mask=decision.stop),
        "features": pa.ListArray.from_arrays(
            pa.array(ends), pa.array(names.tolist(), type=pa.string())
        ),
        "cost": scores.cost,
        "plan_cost": scores.prices[:, 0],
        "expected_charge": found.charges[:, 0],
        "expected_loss": loss,
        "expected_gain": stopping - loss,
        "objective": found.scores[:, 0],
        "predicted": pa.array(classes[scores.probabilities.argmax(axis=1)].tolist()),
        "probability": pa.FixedSizeListArray.from_arrays(
            pa.array(scores.probabilities.reshape(-1)), len(classes)
        ),
    }
