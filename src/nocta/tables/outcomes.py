"""Classes from what is not a class: ranges of a number, and events soon after a visit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nocta.tables.schema import Schema

#: Classes of an event label; the second is the positive one.
EVENT_CLASSES = ("no event", "event")


def cut(numbers: NDArray[np.float64], bins: Sequence[float]) -> list[int]:
    """The range of each number, -1 if it is NaN; a number on a limit is in the upper range.

    Example:
        >>> cut(np.array([5.0, 6.5, np.nan]), [6.5])
        [0, 1, -1]
    """
    found: list[int] = np.where(np.isnan(numbers), -1, np.digitize(numbers, bins)).tolist()
    return found


def bin_names(schema: Schema) -> list[str]:
    """The classes of a label that is cut: those of the schema, or the ranges.

    Example:
        >>> bin_names(Schema(subject="id", bins=[5.7, 6.5]))
        ['below 5.7', '5.7 to 6.5', '6.5 and above']
    """
    if schema.classes is not None:
        return [str(c) for c in schema.classes]
    limits = [f"{limit:g}" for limit in schema.bins or []]
    inner = [f"{low} to {high}" for low, high in pairwise(limits)]
    return [f"below {limits[0]}", *inner, f"{limits[-1]} and above"] if limits else []


def label_within(
    visit: ArrayLike, end: ArrayLike, happened: ArrayLike, within: float
) -> NDArray[np.int64]:
    """1 if an event happens at most `within` after the visit, 0 if not, -1 if nobody knows.

    Args:
        visit: Time of each visit.
        end: Time of the event, or of the end of follow-up, on the same clock; NaN if unknown.
        happened: Whether follow-up ended with the event; if not, it was censored.
        within: How soon.

    Example:
        >>> label_within([0, 0, 0, 3], [1, 1, 5, 4], [True, False, False, True], 2).tolist()
        [1, -1, 0, 1]
    """
    left = np.asarray(end, dtype=float) - np.asarray(visit, dtype=float)
    ended = np.asarray(happened, dtype=bool)
    known = left >= 0  # a visit after the end of follow-up says nothing
    soon = known & (left <= within)
    label = np.where(soon & ended, 1, np.where(soon & ~ended & (left < within), -1, 0))
    return np.where(known, label, -1).astype(np.int64)
