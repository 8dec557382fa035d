"""Checks a table against its schema. Every check runs; none stops at the first problem."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataError, Kind, Problem, did_you_mean, problems_error
from nocta.tables.columns import Numbers, to_numbers
from nocta.tables.problems import Issues, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.source import Source

#: In a history: the value was requested but not available.
UNAVAILABLE = "unavailable"
#: Roles of columns that only say how to split subjects: needed to fit a model, not to use it.
DIVIDING = frozenset({"split", "group"})


def check_columns(
    source: Source, schema: Schema, issues: Issues, *, optional: Collection[str] = ()
) -> None:
    """Find columns that the table lacks, and columns that are used twice.

    Columns of `optional` roles (`label`, `features`, ...) may be absent. An absent column that
    looks misspelled is still a problem, unless it only says how to split subjects.
    """
    present = set(source.columns)
    uses = defaultdict(list)
    for role, column in schema.columns_by_role():
        uses[column].append(role)
    unused = [c for c in source.columns if c not in uses and c]
    for column, roles in uses.items():
        kinds = {r.partition(".")[0] for r in roles}
        if len(roles) > 1 and len(kinds) > 1:
            what = " and as ".join(roles)
            issues.add(issues.schema, f"column '{column}' is used as {what}.", "Use it once.")
        hint = did_you_mean(column, unused)
        required = not kinds <= set(optional)
        misspelled = hint and not kinds <= DIVIDING
        if column not in present and (required or misspelled):
            issues.add(
                f"{issues.schema}, {roles[0]}",
                f"{source.name} has no column '{column}'.{hint}",
                "" if hint else f"Its columns are: {enumerate_some(source.columns, 20)}.",
            )
    if unused:
        issues.note(f"Columns not in the schema are ignored: {enumerate_some(unused, 10)}.")


def read_numbers(
    source: Source,
    column: str,
    schema: Schema,
    issues: Issues,
    *,
    kind: Kind = "data",
    allowed: str | None = None,
    prefix: str = "",
) -> Numbers:
    """A column as numbers; cells that are not numbers, or infinite, are problems.

    Text becomes a number by the schema's `categories`. The text `allowed`, in a history, is not a
    problem; it stays in `Numbers.wrong`. Numbers may follow the `prefix`.
    """
    categories = schema.categories.get(column)
    numbers = to_numbers(source.frame[column], categories, source.decimal, prefix)
    wrong = {row: text for row, text in numbers.wrong.items() if text.lower() != allowed}
    where = f"{source.name}, column '{column}'"
    places = [f"'{text}' ({source.place_of(row)})" for row, text in wrong.items()]
    what = "not a number" if categories is None else "not in its [categories]"
    remedy = _remedy(next(iter(wrong.values()), ""), categories, allowed is not None)
    issues.add_each(where, what, places, remedy, kind)
    places = [source.place_of(row) for row in numbers.infinite]
    remedy = "Give a finite number, or leave the cell empty."
    issues.add_each(where, "infinite or too large", places, remedy, kind)
    return numbers


def _remedy(text: str, categories: list[str] | None, history: bool) -> str:
    if categories is not None:
        hint = did_you_mean(text, categories)
        if history:
            return (
                f"The model knows {categories}.{hint} Leave the cell empty if the value is new, or "
                "fit a new model on data that have it."
            )
        return f"Use one of {categories}, or add it there.{hint}"
    if re.fullmatch(r"-?\d+,\d+", text):
        return "Write decimals with a point."
    if re.fullmatch(r"-?\d*\.\d+", text):
        return 'Write decimals with a comma, or correct decimal = "," in the schema.'
    if re.match(r"[<>]=?\s*\d", text):
        return "Replace the limit with a number."
    if re.match(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}", text):
        return "Write every date as YYYY-MM-DD, or give the time since the first visit."
    return (
        "Correct them, leave the cells empty, or, if the column is text, list its values "
        "under [categories]."
    )


def check_classes(
    train: Cohort, other: Cohort, part: str = "the other part", tolerance: float = 0.0
) -> None:
    """Raise a `DataError` if `other` has a class that `train` lacks, so no model could learn it.

    `part` names `other` in the message. `tolerance` is the allowed share of such labels; a task
    with many rare classes always has a few.
    """
    seen = np.unique(train.labels[train.labeled])
    unseen = other.labeled & ~np.isin(other.labels, seen)
    if unseen.sum() <= tolerance * other.labeled.sum():
        return
    problems = []
    for index in np.unique(other.labels[unseen]).tolist():
        here = other.labels == index
        subjects = enumerate_some(str(s) for s in other.subjects[here.any(axis=1)])
        found = f"it occurs {int(here.sum())} times (subject {subjects})"
        problems.append(
            Problem(
                f"{found}, but never in the training data.",
                f"{part}, class '{other.classes[index]}'",
                "Merge it with another class, or split with another seed.",
            )
        )
    raise problems_error(problems)


def check_fits(catalog: Catalog, classes: tuple[str, ...], cohort: Cohort) -> None:
    """Raise if a cohort has other slots, features, context or classes than a model.

    `catalog` and `classes` are those of the model; costs may differ.
    """
    here = cohort.catalog
    pairs = {
        "visit slots": (catalog.n_times, here.n_times),
        "features": (catalog.names, here.names),
        "columns": (catalog.columns, here.columns),
        "context": (catalog.context, here.context),
        "classes": (tuple(classes), cohort.classes),
    }
    wrong = [
        f"{name}: the model has {_shown(a)}, the data {_shown(b)}"
        for name, (a, b) in pairs.items()
        if a != b
    ]
    if wrong:
        raise DataError(
            "The data do not match the model. " + "; ".join(wrong) + ". Use the schema the model "
            "was fitted with, or fit a new model."
        )


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
