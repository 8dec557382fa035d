"""The next decision of many subjects at once, as a table: what `nocta score` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import ConfigError
from nocta.core.policy import Decision, Observation
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.explain import at_least_zero, expected_charge
from nocta.tables.history_table import HistoryTable

if TYPE_CHECKING:
    import pyarrow as pa


#: Subjects planned for at once; bounds memory whatever the size of a part.
CHUNK = 8192


class FittedModel(Protocol):
    """What scoring needs of a model."""

    catalog_: Catalog
    classes_: tuple[str, ...]

    def policy(self, cost_weight: float) -> PlanningPolicy:
        """Algorithm 1 at a cost weight."""


def score_histories(
    model: FittedModel, table: HistoryTable, cost_weight: float, budget: float | None = None
) -> pa.Table:
    """The next acquisition of every subject, or to stop, and what is expected of it.

    Decisions are those of `NOCTA.decide`, subject by subject.

    Args:
        model: Fitted.
        table: What has been acquired so far, and the slot each subject is at.
        cost_weight: What one unit of cost is worth in loss (`alpha`).
        budget: What may still be spent on each subject, without limit by default.

    Returns:
        One row per subject: `subject`; `now`, the current slot (-1 before the first visit);
        `stop`; `time` and `features` of the next acquisition, and its `cost`; of the plan it
        begins, `plan_cost`, `expected_charge`, `expected_loss` and `objective`; `expected_gain`,
        the loss the plan is expected to save against stopping now; the `predicted` class at the
        current slot and the `probability` of every class.
    """
    import pyarrow as pa

    if budget is not None and not budget >= 0:
        raise ConfigError(f"budget is {budget}; use a number of at least 0.")
    policy = model.policy(cost_weight)
    starts = range(0, len(table), CHUNK)
    pieces = [
        _score(policy, model.catalog_, table, np.arange(i, min(i + CHUNK, len(table))), budget)
        for i in starts
    ]
    columns: dict[str, NDArray[Any]] = {
        name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]
    }
    features, probability = columns.pop("features"), columns.pop("probability")
    stop = columns["stop"]
    proba = pa.FixedSizeListArray.from_arrays(
        pa.array(probability.reshape(-1)), len(model.classes_)
    )
    classes = np.array(model.classes_, dtype=str)
    return pa.table(
        {
            "subject": pa.array(table.subjects.tolist()),
            "now": pa.array(table.time),
            "stop": pa.array(stop),
            "time": pa.array(columns["time"], mask=stop),
            "features": _name_lists(features, model.catalog_),
            **{name: pa.array(columns[name]) for name in _NUMBERS},
            "predicted": pa.array(classes[probability.argmax(axis=1)].tolist()),
            "probability": proba,
        }
    )


_NUMBERS = (
    "cost",
    "plan_cost",
    "expected_charge",
    "expected_loss",
    "expected_gain",
    "objective",
)


def _score(
    policy: PlanningPolicy,
    catalog: Catalog,
    table: HistoryTable,
    rows: NDArray[np.int64],
    budget: float | None,
) -> dict[str, NDArray[Any]]:
    n = len(rows)
    observation = Observation(
        history=table.history.subset(rows),
        time=table.time[rows],
        remaining=np.full(n, np.inf if budget is None else budget),
        catalog=catalog,
        rows=np.arange(n),
    )
    proba = policy.predict_proba(observation.history)
    out: dict[str, NDArray[Any]] = {
        "probability": proba[np.arange(n), np.maximum(observation.time, 0)],
        "time": np.full(n, Decision.STOP, dtype=np.int64),
        "features": np.zeros((n, catalog.n_features), dtype=bool),
        **{name: np.zeros(n) for name in _NUMBERS},
    }
    # At the last visit there is nothing left to decide.
    open_ = np.flatnonzero(observation.time < catalog.n_times - 1)
    if open_.size:
        found = policy.best_plans(observation.subset(open_))
        plan, loss, objective = found.plans[:, 0], found.losses[:, 0], found.scores[:, 0]
        decision = Decision.from_plans(plan)
        first = np.zeros_like(plan)
        first[np.arange(len(plan)), np.maximum(decision.time, 0)] = decision.features
        price = catalog.cost_of(plan)
        weight = float(np.asarray(policy.cost_weight))
        out["time"][open_], out["features"][open_] = decision.time, decision.features
        charge, shown = expected_charge(price, loss, objective, weight), at_least_zero(loss)
        numbers = {
            "cost": catalog.cost_of(first),
            "plan_cost": price,
            "expected_charge": charge,
            "expected_loss": shown,
            "expected_gain": at_least_zero(found.stopping) - shown,
            "objective": shown + weight * charge,
        }
        for name, values in numbers.items():
            out[name][open_] = values
    out["stop"] = out["time"] == Decision.STOP
    return out


def _name_lists(features: NDArray[np.bool_], catalog: Catalog) -> Any:
    """Names of the features of each row, `(n, M)` booleans to a column of lists."""
    import pyarrow as pa

    offsets = np.concatenate([[0], features.sum(axis=1).cumsum()]).astype(np.int32)
    names = np.array(catalog.names, dtype=str)[np.nonzero(features)[1]]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names.tolist(), type=pa.string()))
