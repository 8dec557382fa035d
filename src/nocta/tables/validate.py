"""Checks a table against its schema. Every check runs; none stops at the first problem."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataError, Kind, Problem, did_you_mean, problems_error
from nocta.tables.columns import Numbers, class_name, is_number, to_numbers, to_text
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
) -> Numbers:
    """A column as numbers; cells that are not numbers, or infinite, are problems.

    Text becomes a number by the schema's `categories`. The text `allowed` is not a problem; it
    stays in `Numbers.wrong`.
    """
    categories = schema.categories.get(column)
    numbers = to_numbers(source.frame[column], categories)
    wrong = {row: text for row, text in numbers.wrong.items() if text.lower() != allowed}
    where = f"{source.name}, column '{column}'"
    places = [f"'{text}' ({source.place_of(row)})" for row, text in wrong.items()]
    what = "not a number" if categories is None else "not in its [categories]"
    issues.add_each(where, what, places, _remedy(next(iter(wrong.values()), ""), categories), kind)
    places = [source.place_of(row) for row in numbers.infinite]
    remedy = "Give a finite number, or leave the cell empty."
    issues.add_each(where, "infinite or too large", places, remedy, kind)
    return numbers


def _remedy(text: str, categories: list[str] | None) -> str:
    if categories is not None:
        hint = did_you_mean(text, categories)
        return f"Use one of {categories}, or add it there.{hint}"
    if re.fullmatch(r"-?\d+,\d+", text):
        return "Write decimals with a point."
    if re.match(r"[<>]=?\s*\d", text):
        return "Replace the limit with a number."
    if re.match(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}", text):
        return "Write every date as YYYY-MM-DD, or give the time since the first visit."
    return (
        "Correct them, leave the cells empty, or, if the column is text, list its values "
        "under [categories]."
    )


def read_labels(
    source: Source, schema: Schema, issues: Issues, *, part: bool = False
) -> tuple[list[int], list[str]]:
    """Class index of every row, -1 for none, and the classes in their order.

    A `part` of a larger table may lack some classes.
    """
    assert schema.label is not None
    where = f"{source.name}, column '{schema.label}'"
    texts = [None if t is None else class_name(t) for t in to_text(source.frame[schema.label])]
    seen = {t for t in texts if t is not None}
    _report_mixed_labels(source, texts, where, issues)
    if schema.classes is None:
        classes = order_classes(seen)
    else:
        classes = [class_name(str(c)) for c in schema.classes]
        _report_unknown_classes(source, texts, classes, where, issues)
    if len(seen) < 2 and not part:
        found = f"the only class is '{seen.pop()}'" if seen else "no row has a label"
        issues.add(where, f"{found}.", "A label needs at least two classes.")
    index = {c: i for i, c in enumerate(classes)}
    return [-1 if t is None else index.get(t, -1) for t in texts], classes


def order_classes(names: Collection[str]) -> list[str]:
    """Classes in numeric order if all are numbers, else in alphabetical order."""
    numeric = all(is_number(name) for name in names)
    return sorted(names, key=lambda name: (float(name), name) if numeric else (0.0, name))


def _report_mixed_labels(
    source: Source, texts: list[str | None], where: str, issues: Issues
) -> None:
    cells = [(i, t) for i, t in enumerate(texts) if t is not None]
    numbers = [cell for cell in cells if is_number(cell[1])]
    words = [cell for cell in cells if not is_number(cell[1])]
    if numbers and words:
        few, kind, other = (words, "text", "numbers")
        if len(words) > len(numbers):
            few, kind, other = (numbers, "numbers", "text")
        issues.add_each(
            where,
            f"the label changes type: mostly {other}, but {kind} here",
            [f"'{text}' ({source.place_of(i)})" for i, text in few],
            "Use either numbers or text throughout.",
        )
    issues.add_each(
        where,
        "labels that are not whole numbers",
        [f"{t} ({source.place_of(i)})" for i, t in numbers if re.search("[.eE]", t)],
        "Labels are classes; cut a continuous outcome into ranges.",
    )


def _report_unknown_classes(
    source: Source, texts: list[str | None], classes: list[str], where: str, issues: Issues
) -> None:
    first = {t: i for i, t in reversed(list(enumerate(texts))) if t is not None}
    for text in sorted(first.keys() - set(classes), key=first.__getitem__):
        hint = did_you_mean(text, classes) or f" Classes are: {', '.join(classes)}."
        place = f"'{text}' ({source.place_of(first[text])})"
        issues.add(where, f"{place} is not in classes.{hint}", "Add it there.")


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
