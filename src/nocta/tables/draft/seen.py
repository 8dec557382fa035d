"""Properties of the columns of a long table, alone and within the rows of a subject."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from nocta.tables.columns import find_date_orders, to_days, to_numbers, to_text
from nocta.tables.dates import DateOrder, visit_number, visit_prefix
from nocta.tables.grid import Codes, Times
from nocta.tables.rows import since_first
from nocta.tables.source import MISSING, Source, Texts


@dataclass(frozen=True)
class Column:
    """Name and cells of one column."""

    name: str
    texts: list[str | None]  # its cells, `None` if empty
    numbers: NDArray[np.float64]  # its cells as numbers, or as days for dates; NaN if neither
    numeric: bool  # whether every cell is empty, a number or a date
    orders: tuple[DateOrder, ...] = ()  # in which every cell is a date
    kept: tuple[str, ...] = ()  # values that look like a missing one, such as `none`
    prefix: str = ""  # before the number of every cell, as in V1

    def at(self, rows: NDArray[np.int64]) -> Column:
        """These rows of the column."""
        return replace(self, texts=[self.texts[i] for i in rows], numbers=self.numbers[rows])

    @property
    def dated(self) -> bool:
        return bool(self.orders)

    @property
    def values(self) -> set[str]:
        return {t for t in self.texts if t is not None}

    def matches(self, pattern: str) -> bool:
        return re.fullmatch(pattern, self.name.lower()) is not None

    @property
    def n_known(self) -> int:
        return sum(t is not None for t in self.texts)

    @property
    def whole(self) -> bool:
        known = self.numbers[~np.isnan(self.numbers)]
        return self.numeric and not self.dated and bool((known % 1 == 0).all())

    def as_visits(self) -> Column:
        """The numbers in names of visits such as `V1`; the column itself if it has none."""
        prefix = None if self.numeric else visit_prefix(self.values)
        if prefix is None:
            return self
        texts = [None if t is None else visit_number(t, prefix) for t in self.texts]
        numbers = np.array([np.nan if t is None else float(t) for t in texts])
        return replace(self, numbers=numbers, numeric=True, prefix=prefix)


def look_at(source: Source) -> list[Column]:
    """Every named column of a table."""
    return [_column(name, source) for name in source.columns if name]


def _column(name: str, source: Source) -> Column:
    series = source.frame[name]
    numbers, orders = to_numbers(series, decimal=source.decimal), find_date_orders(series)
    if orders:
        return Column(name, to_text(series), to_days(series, orders[0]), True, tuple(orders))
    kept = _values_like_missing(source.texts.get(name, {})) if numbers.wrong else ()
    return Column(name, to_text(series, kept), numbers.values, not numbers.wrong, kept=kept)


def _values_like_missing(texts: Texts) -> tuple[str, ...]:
    """`none`, if it is written like the other texts of its column: an answer, not a gap.

    Programs write `None` or `NONE` for a gap, beside values that are not capitalized so.
    """
    others = Counter(_case(t) for t in texts if t.lower() not in MISSING and t.upper() != t.lower())
    usual = max(others, key=others.__getitem__, default="")
    return tuple(t for t in texts if t.lower() == "none" and _case(t) == usual)


def _case(text: str) -> str:
    if text.islower() or text.isupper():
        return "lower" if text.islower() else "upper"
    return "title" if text[:1].isupper() else ""


def share_distinct(numbers: Times, codes: Codes) -> float:
    """Share of distinct values within subjects; 0 if many cells are empty or all are alike."""
    known = ~np.isnan(numbers)
    if known.mean() < 0.9 or np.unique(numbers[known]).size < 2:
        return 0.0
    pairs = np.stack([codes[known].astype(float), numbers[known]], axis=1)
    return len(np.unique(pairs, axis=0)) / len(pairs)


def increasing_within(numbers: Times, codes: Codes) -> bool:
    """Whether it increases from row to row of a subject, as time does."""
    order = np.argsort(codes, kind="stable")
    same = np.diff(codes[order]) == 0
    return share_distinct(numbers, codes) >= 0.98 and bool(
        (np.diff(numbers[order])[same] > 0).mean() >= 0.98
    )


def constant_within(column: Column, codes: Codes) -> bool:
    """Whether no subject has two values, and some have their value in several rows."""
    pairs = [(c, t) for c, t in zip(codes.tolist(), column.texts, strict=True) if t is not None]
    n_subjects = len({code for code, _ in pairs})
    return len(set(pairs)) == n_subjects < len(pairs)


def best_auc(column: Column, label: Column) -> float:
    """The best ROC AUC of one column alone for any class against the rest, in either direction.

    Text is ranked alphabetically. 0.5 if a class or the rest has fewer than ten known rows.
    """
    values = column.numbers if column.numeric else _alphabetical(column.texts)
    known = ~np.isnan(values) & np.array([t is not None for t in label.texts])
    ranks = rankdata(values[known])
    classes = np.array([t for t, k in zip(label.texts, known, strict=True) if k])
    best = 0.5
    for name in sorted(label.values):
        inside = classes == name
        n, m = int(inside.sum()), int((~inside).sum())
        if min(n, m) >= 10:
            auc = float(ranks[inside].sum() - n * (n + 1) / 2) / (n * m)
            best = max(best, auc, 1 - auc)
    return best


def _alphabetical(texts: list[str | None]) -> NDArray[np.float64]:
    place = {text: float(i) for i, text in enumerate(sorted({t for t in texts if t is not None}))}
    return np.array([np.nan if t is None else place[t] for t in texts])


def only_at_first(column: Column, codes: Codes, times: Times) -> bool:
    """Whether it is recorded only in each subject's first row."""
    recorded = np.array([t is not None for t in column.texts])
    return not bool((recorded & (since_first(times, codes) > 0)).any())
