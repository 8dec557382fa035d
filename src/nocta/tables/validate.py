"""Checks of a table against its schema. Each reports what it finds; none stops at the first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

import numpy as np

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.errors import DataError, did_you_mean
from nocta.tables.columns import Numbers, class_name, is_number, to_numbers, to_text
from nocta.tables.problems import Kind, Report, enumerate_some
from nocta.tables.schema import Schema
from nocta.tables.source import Source

#: In a history: the value was asked for and could not be had.
UNAVAILABLE = "unavailable"
#: Roles of columns that only say how subjects are divided: needed to fit, not to use a model.
DIVIDING = frozenset({"split", "group"})


def check_columns(
    source: Source, schema: Schema, report: Report, *, optional: Collection[str] = ()
) -> None:
    """Columns the schema names and the table lacks, and columns that are used twice.

    Args:
        source: The table.
        schema: What its columns mean.
        report: Receives problems and notes.
        optional: Roles (`label`, `features`, ...) whose columns may be absent. One that looks
            misspelt is a problem all the same, unless it only says how subjects are divided.
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
            report.add(report.schema, f"column '{column}' is used as {what}.", "Use it once.")
        hint = did_you_mean(column, unused)
        required = not kinds <= set(optional)
        misspelt = hint and not kinds <= DIVIDING
        if column not in present and (required or misspelt):
            report.add(
                f"{report.schema}, {roles[0]}",
                f"{source.name} has no column '{column}'.{hint}",
                "" if hint else f"Its columns are: {enumerate_some(source.columns, 20)}.",
            )
    if unused:
        report.note(f"Columns not in the schema are ignored: {enumerate_some(unused, 10)}.")


def read_numbers(
    source: Source,
    column: str,
    schema: Schema,
    report: Report,
    *,
    kind: Kind = "data",
    allowed: str | None = None,
) -> Numbers:
    """A column as numbers, reporting cells that are none or that are infinite.

    Args:
        source: The table.
        column: One of its columns.
        schema: Its `categories` say how text is to be read.
        report: Receives the problems.
        kind: What the problems are about.
        allowed: A text that is no mistake; it stays in `Numbers.wrong`.
    """
    categories = schema.categories.get(column)
    numbers = to_numbers(source.frame[column], categories)
    wrong = {row: text for row, text in numbers.wrong.items() if text.lower() != allowed}
    where = f"{source.name}, column '{column}'"
    if wrong:
        places = [f"'{text}' ({source.place_of(row)})" for row, text in wrong.items()]
        what = "not a number" if categories is None else "not in its [categories]"
        report.add(
            where,
            f"{what}: {enumerate_some(places)}.",
            _remedy(next(iter(wrong.values())), categories),
            kind,
        )
    if numbers.infinite.size:
        places = [source.place_of(row) for row in numbers.infinite]
        report.add(
            where,
            f"infinite or too large: {enumerate_some(places)}.",
            "Give a finite number, or leave the cell empty.",
            kind,
        )
    return numbers


def _remedy(text: str, categories: list[str] | None) -> str:
    if categories is not None:
        hint = did_you_mean(text, categories)
        return f"Use one of {categories}, or add it there.{hint}"
    if re.fullmatch(r"-?\d+,\d+", text):
        return "Write decimals with a point."
    if re.match(r"[<>]=?\s*\d", text):
        return "Replace a limit by a number."
    if re.match(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}", text):
        return "Write every date as YYYY-MM-DD, or give the time since the first visit."
    return (
        "Correct them, leave the cells empty, or, if the column is text, list its values "
        "under [categories]."
    )


def read_labels(
    source: Source, schema: Schema, report: Report, *, part: bool = False
) -> tuple[list[int], list[str]]:
    """Class index of every row, -1 for none, and the classes in their order.

    In a `part` of a larger table not every class need occur.
    """
    assert schema.label is not None
    where = f"{source.name}, column '{schema.label}'"
    texts = [None if t is None else class_name(t) for t in to_text(source.frame[schema.label])]
    seen = {t for t in texts if t is not None}
    _report_mixed_labels(source, texts, where, report)
    if schema.classes is None:
        classes = order_classes(seen)
    else:
        classes = [class_name(str(c)) for c in schema.classes]
        _report_unknown_classes(source, texts, classes, where, report)
    if len(seen) < 2 and not part:
        found = f"the only class is '{seen.pop()}'" if seen else "no row has a label"
        report.add(where, f"{found}.", "A label needs at least two classes.")
    index = {c: i for i, c in enumerate(classes)}
    return [-1 if t is None else index.get(t, -1) for t in texts], classes


def order_classes(names: Collection[str]) -> list[str]:
    """Classes in the order in which they are numbered: by value, or by the alphabet."""
    numeric = all(is_number(name) for name in names)
    return sorted(names, key=lambda name: (float(name), name) if numeric else (0.0, name))


def _report_mixed_labels(
    source: Source, texts: list[str | None], where: str, report: Report
) -> None:
    rows = [i for i, t in enumerate(texts) if t is not None]
    numeric = [i for i in rows if is_number(texts[i] or "")]
    text = [i for i in rows if not is_number(texts[i] or "")]
    if numeric and text:
        few, kind, other = (
            (text, "text", "numbers") if len(text) <= len(numeric) else (numeric, "numbers", "text")
        )
        places = [f"'{texts[i]}' ({source.place_of(i)})" for i in few]
        report.add(
            where,
            f"the label changes type: mostly {other}, but {kind} here: {enumerate_some(places)}.",
            "Use one kind of class throughout.",
        )
    broken = [i for i in numeric if "." in (texts[i] or "") or "e" in (texts[i] or "").lower()]
    if broken:
        places = [f"{texts[i]} ({source.place_of(i)})" for i in broken]
        report.add(
            where,
            f"labels that are no whole number: {enumerate_some(places)}.",
            "Labels are classes; cut a continuous outcome into ranges.",
        )


def _report_unknown_classes(
    source: Source, texts: list[str | None], classes: list[str], where: str, report: Report
) -> None:
    unknown = {t: i for i, t in reversed(list(enumerate(texts))) if t is not None}
    for text, row in sorted(unknown.items(), key=lambda item: item[1]):
        if text not in classes:
            hint = did_you_mean(text, classes) or f" Classes are: {', '.join(classes)}."
            report.add(
                where,
                f"'{text}' ({source.place_of(row)}) is not in classes.{hint}",
                "Add it there.",
            )


def check_classes(
    train: Cohort, other: Cohort, part: str = "the other part", tolerance: float = 0.0
) -> None:
    """Raise when `other` holds a class that `train` never does: nothing could learn it.

    Args:
        train: What a model is fitted to.
        other: What it will be judged on.
        part: How to call `other` in the message.
        tolerance: Share of `other`'s labels that may be of such classes; a task with many rare
            classes always has a few.

    Raises:
        DataError: Naming every such class, how often it occurs, and for which subjects.
    """
    seen = np.unique(train.labels[train.labelled])
    known = set(seen.tolist())
    report = Report()
    unseen = other.labelled & ~np.isin(other.labels, seen)
    if unseen.sum() <= tolerance * other.labelled.sum():
        return
    for index in sorted(set(np.unique(other.labels[other.labelled]).tolist()) - known):
        here = other.labels == index
        subjects = [str(s) for s in other.subjects[here.any(axis=1)]]
        report.add(
            f"{part}, class '{other.classes[index]}'",
            f"it occurs {int(here.sum())} times (subject {enumerate_some(subjects)}), "
            "but never in the training data.",
            "Merge it with another class, or split with another seed.",
        )
    if report.problems:
        raise DataError("\n".join(str(p) for p in report.problems))


def check_fits(catalog: Catalog, classes: tuple[str, ...], cohort: Cohort) -> None:
    """Raise where a cohort has other slots, features, context or classes than a model.

    Args:
        catalog: What the model was fitted with; prices may differ.
        classes: The model's classes, in order.
        cohort: The subjects it is to act on.
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
            "The data do not fit the model. " + "; ".join(wrong) + ". Give the data the schema "
            "the model was fitted with, or fit again."
        )


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
