"""From a history to network inputs: scales from train, missing kept apart from not requested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nocta.core.cohort import Cohort
from nocta.core.history import History

A = TypeVar("A")
_CLIP = 6.0
#: Largest encoded cohort, in numbers, that is kept in memory.
MOST_HELD = 1 << 25


class InputEncoder:
    """Turns a `History` into one input vector per slot.

    Per slot: standardized values (0 if unknown), which columns are known, indicators of columns
    with at most `max_levels` distinct values, what was requested but unavailable, the slot as
    one-hot, and the free context. Columns that are positive and skewed are scaled on the log axis.
    Scales are learned from an even sample of at most `most_sampled` subjects.
    """

    def __init__(self, max_levels: int = 6, most_sampled: int = 200_000) -> None:
        self.max_levels = max_levels
        self.most_sampled = most_sampled

    def fit(self, cohort: Cohort) -> InputEncoder:
        """Learn center, scale and levels of every column from the training subjects."""
        cohort = cohort.sample(self.most_sampled)
        seen = np.where(cohort.visits[:, :, None], cohort.values, np.nan)
        self.values_ = _ColumnScaler.fit(seen.reshape(-1, seen.shape[2]))
        self.context_ = _ColumnScaler.fit(cohort.context)
        columns = [np.unique(c[~np.isnan(c)]) for c in seen.reshape(-1, seen.shape[2]).T]
        pairs = [(d, v) for d, c in enumerate(columns) if 2 < c.size <= self.max_levels for v in c]
        self.level_column_ = np.array([d for d, _ in pairs], dtype=np.int64)
        self.level_value_ = np.array([v for _, v in pairs], dtype=np.float32)
        catalog = cohort.catalog
        self.n_times_, self.n_features_ = catalog.n_times, catalog.n_features
        owner = catalog.owner
        self.slot_owner_ = np.concatenate(
            [owner, owner, owner[self.level_column_], np.arange(catalog.n_features)]
        )
        return self

    @property
    def width(self) -> int:
        return self.slot_width + self.n_times_ + 2 * self.context_.width

    @property
    def n_value_columns(self) -> int:
        """Number of entries at the head of the vector that are values."""
        return self.values_.width

    @property
    def slot_width(self) -> int:
        """Length of the part of the vector that depends on what was acquired at the slot."""
        return len(self.slot_owner_)

    def encode(self, history: History) -> Tensor:
        slots = self.encode_slots(history.values, history.unavailable)
        return torch.cat([slots, self.encode_frame(history.context)], dim=2)

    def encode_slots(self, values: NDArray[np.float32], unavailable: NDArray[np.bool_]) -> Tensor:
        """The part that depends on acquisitions, `(n, L, slot_width)`."""
        known = ~np.isnan(values)
        levels = values[..., self.level_column_] == self.level_value_
        parts = [self.values_.transform(values), known, levels, unavailable]
        return torch.from_numpy(np.concatenate(parts, axis=-1, dtype=np.float32))

    def encode_frame(self, context: NDArray[np.float32]) -> Tensor:
        """The part known beforehand: slot and context, `(n, L, width - slot_width)`."""
        n, length = len(context), self.n_times_
        slot = np.broadcast_to(np.eye(length, dtype=np.float32), (n, length, length))
        free = np.concatenate([self.context_.transform(context), ~np.isnan(context)], axis=1)
        free = np.broadcast_to(free[:, None], (n, length, free.shape[1]))
        return torch.from_numpy(np.concatenate([slot, free], axis=2, dtype=np.float32))

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "level_column": self.level_column_,
            "level_value": self.level_value_,
            "slot_owner": self.slot_owner_,
            "shape": np.array([self.n_times_, self.n_features_]),
            **{f"values.{k}": v for k, v in vars(self.values_).items()},
            **{f"context.{k}": v for k, v in vars(self.context_).items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> InputEncoder:
        out = cls()
        out.level_column_, out.level_value_ = state["level_column"], state["level_value"]
        out.slot_owner_ = state["slot_owner"]
        out.n_times_, out.n_features_ = (int(v) for v in state["shape"])
        out.values_ = _ColumnScaler(**arrays_under(state, "values."))
        out.context_ = _ColumnScaler(**arrays_under(state, "context."))
        return out


class EncodedCohort:
    """A cohort that is encoded once and then masked for every request.

    An input is zero if it was not requested, so requesting less is a product with 0 or 1. A cohort
    larger than `most_held` numbers is not kept encoded: `slots`, `frame` and `recorded` then encode
    the subjects they are indexed with, to the same numbers.
    """

    slots: Tensor | OnDemand[Tensor]
    frame: Tensor | OnDemand[Tensor]
    recorded: NDArray[np.bool_] | OnDemand[NDArray[np.bool_]]

    def __init__(
        self, encoder: InputEncoder, cohort: Cohort, *, most_held: float = MOST_HELD
    ) -> None:
        self._n = len(cohort)
        self.most_held = most_held
        self.labels = torch.from_numpy(cohort.labels)
        self.owner = torch.from_numpy(encoder.slot_owner_)

        def slots(some: Cohort) -> Tensor:
            everything = History.of(some, np.ones_like(some.recorded))
            return encoder.encode_slots(everything.values, everything.unavailable)

        def frame(some: Cohort) -> Tensor:
            return encoder.encode_frame(some.context)

        if len(cohort) * cohort.n_times * encoder.width <= most_held:
            self.slots, self.frame, self.recorded = slots(cohort), frame(cohort), cohort.recorded
        else:
            self.slots = OnDemand(cohort, slots)
            self.frame = OnDemand(cohort, frame)
            self.recorded = OnDemand(cohort, lambda some: some.recorded)

    def __len__(self) -> int:
        return self._n

    def inputs(self, index: NDArray[np.int64] | Tensor, requested: NDArray[np.bool_]) -> Tensor:
        """Inputs `(b, L, width)` of the subjects at `index` after requesting `requested`."""
        rows = torch.as_tensor(index)
        mask = torch.from_numpy(requested).float()[..., self.owner]
        return torch.cat([self.slots[rows] * mask, self.frame[rows]], dim=2)


class OnDemand(Generic[A]):
    """An array with one row per subject, computed for the rows it is indexed with."""

    def __init__(self, cohort: Cohort, compute: Callable[[Cohort], A]) -> None:
        self._cohort, self._compute = cohort, compute

    def __getitem__(self, key: Any) -> A:
        """`array[rows]` or `array[rows, time]`, for rows of any shape."""
        rows, *rest = key if isinstance(key, tuple) else (key,)
        index = np.arange(len(self._cohort))[rows] if isinstance(rows, slice) else np.asarray(rows)
        found: Any = self._compute(self._cohort.subset(index.reshape(-1)))
        found = found.reshape((*index.shape, *found.shape[1:]))
        out: A = found[(slice(None),) * index.ndim + tuple(rest)]
        return out


@dataclass(eq=False)
class _ColumnScaler:
    """Standardizes columns, on the log axis if that makes them less skewed."""

    log: NDArray[np.bool_]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    @classmethod
    def fit(cls, table: NDArray[np.float32]) -> _ColumnScaler:
        width = table.shape[1]
        out = cls(np.zeros(width, bool), np.zeros(width, np.float32), np.ones(width, np.float32))
        for d in range(width):
            column = table[:, d].astype(float)
            column = column[~np.isnan(column)]
            if column.size < 2:
                continue
            out.log[d] = column.min() >= 0 and _skew(column) > 2 and np.unique(column).size > 10
            column = np.log1p(column) if out.log[d] else column
            spread = column.std()
            out.mean[d] = column.mean()
            out.scale[d] = spread if spread > 1e-8 else 1.0
        return out

    @property
    def width(self) -> int:
        return len(self.mean)

    def transform(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        logged = np.where(self.log, np.log1p(np.maximum(table, 0)), table)
        scaled = np.clip((logged - self.mean) / self.scale, -_CLIP, _CLIP)
        return np.asarray(np.nan_to_num(scaled, nan=0.0), dtype=np.float32)


def _skew(column: NDArray[np.float64]) -> float:
    spread = column.std()
    return float(((column - column.mean()) ** 3).mean() / spread**3) if spread > 1e-8 else 0.0


def arrays_under(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose name begins with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
