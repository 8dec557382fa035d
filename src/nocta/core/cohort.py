"""What was recorded: values, labels and visits of many subjects on one grid of visit slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core import hooks
from nocta.core.catalog import Catalog
from nocta.core.errors import DataError
from nocta.core.split import split_subjects


def even_rows(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` of `n` positions, evenly spaced from first to last."""
    return np.linspace(0, n - 1, min(most, n)).round().astype(np.int64)


@dataclass(frozen=True)
class Cohort:
    """Longitudinal records of `n` subjects over `L` visit slots (the paper's data set `D`).

    Args:
        values: `(n, L, D)` float32, NaN if nothing was recorded.
        labels: `(n, L)` class indices, -1 if there is no label.
        visits: `(n, L)` booleans, whether the visit took place.
        context: `(n, P)` float32, free and known from the start (NaN allowed).
        subjects: `(n,)` identifiers.
        catalog: What can be acquired and what it costs.
        classes: Class names; the position is the class index.
        groups: `(n,)` identifiers of subjects that must stay in one part (two knees of one
            patient); each subject is its own group by default.
        name: Name of the data set in results.
        slot_times: Real time of each slot, for axes; slot numbers by default.
        time_unit: Unit of `slot_times`, for axis labels.
        fixed_split: `(n,)` part of each subject, if the data set defines a split.
        schema: How the table was read, as plain data, so that later histories are read the same
            way; `None` if there was no table (`nocta.tables.schema.Schema.of` then builds one).
        published: Key of the paper's table if these are its data at its prices.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> cohort = tiny_cohort(n_subjects=6, seed=0)
        >>> cohort.values.shape, cohort.n_classes
        ((6, 4, 3), 2)
        >>> train, val, test = cohort.split((0.5, 0.25, 0.25), seed=0)
        >>> len(train) + len(val) + len(test)
        6
    """

    values: NDArray[np.float32]
    labels: NDArray[np.int64]
    visits: NDArray[np.bool_]
    context: NDArray[np.float32]
    subjects: NDArray[Any]
    catalog: Catalog
    classes: tuple[str, ...]
    groups: NDArray[Any] | None = None
    name: str = "cohort"
    slot_times: tuple[float, ...] | None = None
    time_unit: str = "visit"
    fixed_split: NDArray[Any] | None = None
    schema: dict[str, Any] | None = None
    published: str = ""

    def __post_init__(self) -> None:
        n, length, depth = self.values.shape
        expected = {
            "labels": (n, length),
            "visits": (n, length),
            "context": (n, len(self.catalog.context)),
            "subjects": (n,),
        }
        for field_name, shape in expected.items():
            found = getattr(self, field_name).shape
            if found != shape:
                raise DataError(f"Cohort.{field_name} has shape {found}; expected {shape}.")
        if (length, depth) != (self.catalog.n_times, len(self.catalog.columns)):
            raise DataError(
                f"Cohort.values has {length} times and {depth} columns; the catalog has "
                f"{self.catalog.n_times} and {len(self.catalog.columns)}."
            )
        if np.isinf(self.values).any() or np.isinf(self.context).any():
            raise DataError(
                "Cohort values or context contain infinity; use NaN for missing values."
            )
        if self.labels.size and not -1 <= self.labels.min() <= self.labels.max() < self.n_classes:
            raise DataError(f"Cohort labels must be -1 or an index into {self.classes}.")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Cohort({self.name!r}: {len(self)} subjects, {self.n_times} times, "
            f"{self.catalog.n_features} features, {self.n_classes} classes)"
        )

    @property
    def n_times(self) -> int:
        return int(self.values.shape[1])

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def recorded(self) -> NDArray[np.bool_]:
        """Whether acquiring a slot would reveal a value, `(n, L, M)`."""
        seen = ~np.isnan(self.values)
        starts = np.searchsorted(self.catalog.owner, np.arange(self.catalog.n_features))
        any_column = np.logical_or.reduceat(seen, starts, axis=2)
        return np.asarray(any_column & self.visits[:, :, None] & self.catalog.open_slots)

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Which (subject, time) pairs have a label, `(n, L)`."""
        return np.asarray(self.labels >= 0)

    labelled = labeled

    def subset(self, index: NDArray[Any] | Sequence[int] | slice) -> Cohort:
        """The subjects at these positions, in this order."""
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        big = ("values", "labels", "visits", "context")
        small = ("subjects", "groups", "fixed_split")
        taken: dict[str, Any] = {name: self._take(getattr(self, name), rows) for name in big}
        taken |= {k: getattr(self, k)[rows] for k in small if getattr(self, k) is not None}
        return replace(self, **taken)

    def _take(self, array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of one of the arrays; a cohort stored on disk overrides it."""
        return np.asarray(array[rows])

    def sample(self, most: int) -> Cohort:
        """At most `most` subjects, evenly spaced from first to last."""
        return self if len(self) <= most else self.subset(even_rows(len(self), most))

    def split(self, fractions: Sequence[float] = (0.7, 0.15, 0.15), seed: int = 0) -> list[Cohort]:
        """Split by subject (by group if there are groups), stratified if possible."""
        groups = np.arange(len(self)) if self.groups is None else self.groups
        parts = split_subjects(self.labels, groups, fractions, seed)
        return [self.subset(p) for p in parts]

    def with_catalog(self, catalog: Catalog) -> Cohort:
        """The same records with another catalog."""
        return replace(self, catalog=catalog, published="")

    def constrained(self, constraints: Any) -> Cohort:
        """The same records, with constraints that hold beside those of the catalog.

        They are `nocta.Constraints`, the tables of `schema.toml`, or sentences such as
        `"never mri at 0"`.
        """
        catalog = self.catalog.constrained(constraints)
        return self if catalog is self.catalog else self.with_catalog(catalog)

    @classmethod
    def from_table(cls, table: Any, schema: Any) -> Cohort:
        """Read a long table (pandas, polars, pyarrow, CSV or Parquet path) with its schema.

        One `DataError` reports every problem. The schema is the path of `schema.toml`, or the same
        as a mapping or a `nocta.tables.Schema`.
        """
        found: Cohort = hooks.read_table(table, schema)
        return found
