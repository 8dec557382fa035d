"""Adds up the click log of OULAD by enrollment, slot of four weeks and kind of page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.datasets._load_log import LoadLog
from nocta.datasets._oulad_tables import LogBatch

if TYPE_CHECKING:
    import pandas as pd

N_SLOTS, SLOT_DAYS = 8, 28


def slot_of(day: NDArray[np.floating] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The slot at whose end a day is first known; the weeks before the start are in the first."""
    return np.asarray(np.maximum(np.ceil(day / SLOT_DAYS) - 1, 0).astype(np.int64))


def count_clicks(
    batches: Iterable[LogBatch],
    pages: pd.DataFrame,
    people: pd.DataFrame,
    kinds: Sequence[str],
    log: LoadLog,
) -> NDArray[np.float64]:
    """Clicks of each of `n` people in each slot on each of these kinds of pages, `(n, L, K)`."""
    pages = pages.sort_values("id_site")
    sites = pages["id_site"].to_numpy(np.int64)
    number = {activity: i for i, activity in enumerate(kinds)}
    kind = pages["activity_type"].map(number).fillna(-1).to_numpy(np.int64)
    # A page belongs to one presentation, so page and student tell the enrollment.
    course, own = _courses(pages, people)
    keys = _enrollment_key(own, people["group"].to_numpy())
    order = np.argsort(keys)
    keys = keys[order]
    shape = (len(people), N_SLOTS, len(kinds))
    total = np.zeros(int(np.prod(shape)))
    for student, site, day, clicks in batches:
        page, known = _look_up(sites, site)
        at, enrolled = _look_up(keys, _enrollment_key(course[page], student))
        known &= enrolled & (course[page] >= 0)
        slot = slot_of(day)
        common, early = kind[page] >= 0, slot < N_SLOTS
        log.drop(clicks[~known].sum(), "clicks", "of unknown people or pages")
        log.drop(clicks[known & ~common].sum(), "clicks", "on rarer kinds of pages")
        log.drop(
            clicks[known & common & ~early].sum(), "clicks", f"after day {N_SLOTS * SLOT_DAYS}"
        )
        used = known & common & early
        cell = np.ravel_multi_index((order[at[used]], slot[used], kind[page[used]]), shape)
        total += np.bincount(cell, clicks[used], minlength=total.size)
    return total.reshape(shape)


def _courses(
    pages: pd.DataFrame, people: pd.DataFrame
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of the presentation of every page (-1: nobody is enrolled) and enrollment."""
    names = [t["code_module"] + "-" + t["code_presentation"] for t in (pages, people)]
    known, own = np.unique(names[1].to_numpy(str), return_inverse=True)
    at, found = _look_up(known, names[0].to_numpy(str))
    return np.where(found, at, -1), own


def _enrollment_key(course: NDArray[np.int64], student: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(student * 1000 + course)


def _look_up(
    known: NDArray[Any], wanted: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Position of each wanted value among sorted ones, and whether it is there."""
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, np.asarray(known[at] == wanted)
