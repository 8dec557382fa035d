"""Search for the data of the evaluated subjects inside a policy.

A policy that received the test subjects before it is evaluated could look them up. Changing the
world would not reveal it, because the policy reads its own copy. So the audit looks inside too: at
what can be reached from the policy, and at everything that is pickled with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.errors import LeakageError

_MAX_OBJECTS = 200_000
#: Records with more different values than this, not counting whole numbers, are unique.
_FEW = 3
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, BuiltinFunctionType)


def held_data(holder: Any, cohort: Cohort) -> str:
    """Which data of `cohort` an object holds: `"values"`, `"labels"`, both, or nothing.

    Attributes, containers, closures and tensors are followed. An array counts if it shares memory
    with the cohort's array, is an equal copy of it, or has the record of one of its subjects.

    Example:
        >>> from nocta.testing import tiny_cohort
        >>> cohort = tiny_cohort()
        >>> held_data({"notes": [cohort.labels]}, cohort), held_data(["nothing"], cohort)
        ('labels', '')
    """
    found = {same_data(array, cohort) for array in _arrays(holder)}
    return " and ".join(name for name in ("values", "labels") if name in found)


def holding(policy: Any, cohort: Cohort) -> None:
    """Raise `LeakageError` if the policy holds data of these subjects."""
    held = held_data(policy, cohort)
    if held:
        raise LeakageError(
            f"{type(policy).__name__} holds the {held} of the subjects it is evaluated on. Fit and "
            f"tune it on other subjects, or evaluate it on subjects it has never seen."
        )


def same_data(found: NDArray[Any], cohort: Cohort) -> str:
    """Which data of `cohort` an array holds, if any; values of some of the subjects count too."""
    for name in ("values", "labels"):
        if _is_same(found, getattr(cohort, name)):
            return name
    return "values" if _has_subject(found, cohort) else ""


def _has_subject(found: NDArray[Any], cohort: Cohort) -> bool:
    """Whether a row of an array is the record of a subject that cannot be there by chance."""
    width = cohort.values[0].size if len(cohort) else 0
    n = found.size // width if width else 0
    if not n or n * width != found.size or found.ndim < 2 or found.dtype.kind != "f":
        return False
    if found.shape[-1] not in (width, cohort.values.shape[2]):
        return False
    rows = cohort.values.reshape(len(cohort), -1)
    telling = [row for row in rows if len(np.unique(row[row != np.rint(row)])) > _FEW]
    known = {np.nan_to_num(row, nan=np.inf).tobytes() for row in telling}
    here = np.nan_to_num(found.reshape(n, width).astype(np.float32), nan=np.inf)
    return any(row.tobytes() in known for row in here)


def _is_same(found: NDArray[Any], truth: NDArray[Any]) -> bool:
    if truth.size < 2 or np.all(truth == truth.flat[0]):
        return False  # nothing can be learned from a constant
    if np.may_share_memory(found, truth):
        return True
    if found.shape != truth.shape or found.dtype.kind != truth.dtype.kind:
        return False
    return np.array_equal(found, truth, equal_nan=truth.dtype.kind == "f")


def _arrays(root: Any) -> Iterator[NDArray[Any]]:
    """Every array that can be reached from `root`."""
    stack, seen = [root], {id(root)}
    keep = []  # so that ids of short-lived objects are not reused
    while stack and len(seen) < _MAX_OBJECTS:
        item = stack.pop()
        keep.append(item)
        if isinstance(item, np.ndarray):
            yield item
            continue
        for part in _parts(item):
            if id(part) not in seen and not isinstance(part, _LEAVES):
                seen.add(id(part))
                stack.append(part)


def _parts(item: Any) -> list[Any]:
    if isinstance(item, Mapping):
        return list(item.values())
    if isinstance(item, list | tuple | set | frozenset):
        return list(item)
    if isinstance(item, MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, FunctionType):
        cells = [cell.cell_contents for cell in item.__closure__ or () if _is_filled(cell)]
        return [*cells, *(item.__defaults__ or ())]
    if hasattr(item, "detach") and hasattr(item, "numpy"):  # a tensor
        return [item.detach().cpu().numpy()]
    parts = list(vars(item).values()) if hasattr(item, "__dict__") else []
    slots = [getattr(item, name, None) for name in getattr(type(item), "__slots__", ())]
    return parts + slots


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a cell that was never assigned
        return False
