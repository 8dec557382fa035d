"""Warnings about classes that are missing from a part of the data, before anything is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nocta.core.cohort import Cohort
from nocta.runs.setup import DataSource
from nocta.tables.problems import enumerate_some

#: What it means if a part does not have a class.
_MEANING = {
    "training": "cannot be learned and is never predicted",
    "validation": "does not influence when training stops and which cost weights are kept",
    "test": "does not count in any result",
}
#: A seed, and its train, validation and test subjects.
Split = tuple[int, Sequence[Cohort]]


def class_warnings(splits: Iterable[Split], options: str = "--seed, --fractions") -> list[str]:
    """One warning for every part in which a class has no labeled visit.

    `options` names the options of the command that decide the split.
    """
    absent: dict[str, dict[str, list[int]]] = {part: {} for part in _MEANING}
    n_splits = 0
    for seed, parts in splits:
        n_splits += 1
        for part, cohort in zip(absent, parts, strict=True):
            for name in _absent(cohort):
                absent[part].setdefault(name, []).append(seed)
    nowhere = [
        name
        for name in absent["training"]
        if all(len(names.get(name, ())) == n_splits for names in absent.values())
    ]
    out = [_warning(nowhere, "any part", "Take it out of the schema's classes, if it is there.")]
    for part, names in absent.items():
        here = {name: seeds for name, seeds in names.items() if name not in nowhere}
        where = f"the {part} part{_of_seeds(here.values(), n_splits)}"
        remedy = f"Merge rare classes in the table, or change the split ({options})."
        out.append(_warning(list(here), where, f"Such a class {_MEANING[part]}. {remedy}"))
    return [warning for warning in out if warning]


def splits_to_look_at(
    source: DataSource, seeds: Sequence[int], large: int = 50_000
) -> Iterator[Split]:
    """The splits whose classes are checked: none if data are drawn.

    In cohorts of more than `large` subjects it is the first one, because splitting takes long.
    """
    if source.is_drawn:
        return
    for seed in seeds if len(source.load(seeds[0])) <= large else seeds[:1]:
        yield seed, source.split(source.load(seed), seed)


def _absent(cohort: Cohort) -> list[str]:
    seen = set(np.unique(cohort.labels).tolist())
    return [name for i, name in enumerate(cohort.classes) if i not in seen]


def _warning(names: Sequence[str], where: str, rest: str) -> str:
    if not names:
        return ""
    quoted = enumerate_some([f"'{name}'" for name in names])
    which = f"class {quoted} has" if len(names) == 1 else f"classes {quoted} have"
    return f"{which} no labeled visit in {where}. {rest}"


def _of_seeds(found: Iterable[Sequence[int]], n_splits: int) -> str:
    """Which seeds, if it is not all of them."""
    seeds = sorted({seed for some in found for seed in some})
    if len(seeds) == n_splits:
        return ""
    word = "seed" if len(seeds) == 1 else "seeds"
    return f" of {word} {enumerate_some(map(str, seeds), 8)}"
