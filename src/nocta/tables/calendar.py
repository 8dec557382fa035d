"""When the visit slots of a subject are: the date of a slot, and the slot of a date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import TimeError
from nocta.tables.dates import day_of, to_date, visit_number
from nocta.tables.grid import grid_end, place_on_grid
from nocta.tables.notation import parse_number
from nocta.tables.rows import DAYS_IN
from nocta.tables.schema import Schema


@dataclass(frozen=True)
class Calendar:
    """The schedule of a model, and the day on which it starts for each subject."""

    schema: Schema
    n_times: int
    starts: NDArray[np.float64]  # (n,) days since 1970; not finite if unknown

    @classmethod
    def undated(cls) -> Calendar:
        """For histories that come from no table."""
        return cls(Schema(subject="subject", visit="visit"), 0, np.array([]))

    @property
    def is_dated(self) -> bool:
        """Whether visits have dates."""
        return self.schema.date_order is not None or bool(np.isfinite(self.starts).any())

    @property
    def end(self) -> float:
        """The time at which the last slot ends; with visit numbers, the last of them."""
        schema = self.schema
        if not schema.grid:
            return float(schema.first_visit + self.n_times - 1)
        return grid_end(schema.grid, schema.snap) if schema.end is None else schema.end

    def date_of(self, row: int, slot: int) -> date | None:
        """The date of a slot, if visits have dates."""
        if not self.is_dated or not self.schema.grid or not np.isfinite(self.starts[row]):
            return None
        days_in = DAYS_IN[self.schema.time_unit or "days"]
        return to_date(self.starts[row] + round(self.schema.grid[slot] * days_in))

    def slot_of(self, row: int, today: str) -> int:
        """The slot of a visit that happens today: a date, or a time or visit number.

        A subject who was never seen before starts today.
        """
        time = self._time_of(row, today)
        slot = self._place(time)
        if slot < 0:
            raise TimeError(f"Today, {today}, is before the first visit of the subject.")
        if slot >= self.n_times:
            raise TimeError(f"Today, {today}, is {self.beyond(time)}")
        return slot

    def beyond(self, time: float) -> str:
        """The end of the sentence that refuses a time after the schedule."""
        return (
            f"{self.named(time)}, beyond the schedule this model knows, which ends at "
            f"{self.named(self.end)}. Fit a model on a longer schedule to plan for it."
        )

    def named(self, time: float) -> str:
        """A time with its unit, or a visit by its number."""
        if not self.schema.grid:
            return f"visit {self.schema.visit_prefix or ''}{time:g}"
        return f"{time:.10g} {self.schema.time_unit or ''}".rstrip()

    def _place(self, time: float) -> int:
        if self.schema.grid:
            end = self.end
            return int(place_on_grid(np.array([time]), self.schema.grid, self.schema.snap, end)[0])
        return int(time) - self.schema.first_visit

    def _time_of(self, row: int, today: str) -> float:
        if self.is_dated:
            order = self.schema.date_order or "ymd"
            day = day_of(today, "ymd")
            day = day_of(today, order) if day is None else day
            if day is None:
                raise TimeError(f"Today, '{today}', is not a date; write it as YYYY-MM-DD.")
            start = self.starts[row]
            days_in = DAYS_IN[self.schema.time_unit or "days"]
            return (day - start) / days_in if np.isfinite(start) else 0.0
        number = parse_number(visit_number(today, self.schema.visit_prefix or ""))
        if number is None or (not self.schema.grid and number % 1):
            kind = "time" if self.schema.grid else "visit number"
            raise TimeError(
                f"Today, '{today}', is not a {kind}; this model counts "
                f"{self.schema.time_unit or 'visits'}, not dates."
            )
        return number
