"""A model's policy as a document that a committee can approve: Markdown, HTML and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nocta.core.currency import money
from nocta.model.files import write_atomically
from nocta.report.page import render_page
from nocta.runs.point_text import point_name
from nocta.runs.protocol_run import (
    ADAPTIVE,
    QUALITIES,
    SCHEDULE,
    TREES,
    Candidate,
    Number,
    ProtocolDocument,
)
from nocta.runs.protocol_text import protocol_name

FILES = ("protocol.md", "protocol.html", "protocol.json")
_LABELS = {
    "cross_entropy": "cross-entropy",
    "ap": "AP",
    "roc_auc": "ROC AUC",
    "accuracy": "accuracy",
}
_TITLES = {ADAPTIVE: "Adaptive policy", TREES: "Trees", SCHEDULE: "Fixed schedule"}


def write_protocol(document: ProtocolDocument, folder: Path) -> list[Path]:
    """Write the three files into a folder; older ones of the same name are replaced."""
    contents = (to_markdown(document), to_html(document), to_json(document))
    paths = [folder / name for name in FILES]
    for path, content in zip(paths, contents, strict=True):
        write_atomically(path, content)
    return paths


def to_json(document: ProtocolDocument) -> str:
    """Everything as data; `nocta.methods.distilled.tree.Tree.from_dict` reads the trees."""
    return json.dumps(document.to_dict(), indent=1, ensure_ascii=False) + "\n"


def title_of(name: str) -> str:
    """How a row is called."""
    return _TITLES.get(name) or protocol_name(name).capitalize()


def summary(document: ProtocolDocument) -> list[str]:
    """What each simple protocol loses against the adaptive policy, in a sentence each."""
    out = []
    for candidate in document.candidates[1:]:
        cost, ap = candidate.differences["cost"], candidate.differences["ap"]
        currency = document.catalog.currency
        out.append(
            f"{title_of(candidate.name)}: {_more_or_less(cost, currency)} a subject than the "
            f"adaptive policy, AP {_signed(ap)}."
        )
    return out


def loss_rows(document: ProtocolDocument) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table of measures, each with its 95 % interval."""
    head = ["", "mean cost", *(_LABELS[name] for name in QUALITIES)]
    rows = []
    for candidate in document.candidates:
        shown = [_with_interval(candidate.measures[name]) for name in QUALITIES]
        rows.append([title_of(candidate.name), _cost(candidate, document), *shown])
    return head, rows


def difference_rows(document: ProtocolDocument) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table of differences from the adaptive policy."""
    head, _ = loss_rows(document)
    rows = []
    for candidate in document.candidates[1:]:
        found = candidate.differences
        cost = _signed(found["cost"], document.catalog.currency)
        rows.append([title_of(candidate.name), cost, *(_signed(found[n]) for n in QUALITIES)])
    return head, rows


def schedule_rows(document: ProtocolDocument) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the fixed schedule: a row per visit, a column per feature."""
    names = document.catalog.names
    rows = [
        [visit, *("✓" if taken else "" for taken in row)]
        for visit, row in zip(document.slot_names, document.schedule, strict=True)
    ]
    return ["", *names], rows


def introduction(document: ProtocolDocument) -> list[str]:
    """What the document is, in sentences."""
    point = point_name(document.setting)
    knob = "cost weight " if set(document.setting) == {"cost_weight"} else ""
    return [
        f"The policy of `{document.method}` for {document.dataset} at {knob}{point} "
        f"({document.reason}), in two forms that a person can read and follow: a fixed schedule, "
        f"the same for everybody, and a short tree of questions for each visit.",
        f"Both were made with {document.n_made} subjects and measured on {document.n_measured} "
        f"{document.note}. The adaptive policy is the model itself. Predictions are the model's in "
        f"every row; only what is acquired differs.",
    ]


def tree_notes(document: ProtocolDocument) -> str:
    """How to read the trees."""
    return (
        "At each visit, answer the questions from what was acquired at earlier visits. If a value "
        "is not known, the answer is no, unless the question says otherwise. A visit at which "
        "nothing is acquired is not made. On the subjects it was measured on, the trees decide as "
        f"the adaptive policy does in {document.agreement:.0%} of (subject, visit, feature)."
    )


def to_markdown(document: ProtocolDocument) -> str:
    """The document as Markdown."""
    parts = [f"# Protocol for {document.dataset}", *introduction(document)]
    parts += ["## What each loses", "\n".join(f"- {line}" for line in summary(document))]
    parts += [_table(*loss_rows(document))]
    parts += ["Differences from the adaptive policy, on the same subjects:"]
    parts += [_table(*difference_rows(document)), _INTERVALS]
    parts += ["## Fixed schedule", _table(*schedule_rows(document))]
    parts += ["## A tree for each visit", tree_notes(document)]
    for visit, tree in zip(document.slot_names, document.trees, strict=True):
        parts += [f"### {visit}", "\n".join(tree.lines(document.categories))]
    said = document.catalog.constraints.sentences()
    if said:
        parts += ["## Constraints", "\n".join(f"- {line}" for line in said)]
    return "\n\n".join(parts) + "\n"


_INTERVALS = (
    "In brackets: 95 % intervals, by bootstrap over subjects; those of differences are paired."
)


def to_html(document: ProtocolDocument) -> str:
    """The document as one page that loads nothing and can be printed."""
    trees = [
        (visit, _nested(tree.lines(document.categories)))
        for visit, tree in zip(document.slot_names, document.trees, strict=True)
    ]
    return render_page(
        "protocol.html.j2",
        document=document,
        introduction=[text.replace("`", "") for text in introduction(document)],
        summary=summary(document),
        tables={
            "losses": loss_rows(document),
            "differences": difference_rows(document),
            "schedule": schedule_rows(document),
        },
        intervals=_INTERVALS,
        tree_notes=tree_notes(document),
        trees=trees,
        constraints=document.catalog.constraints.sentences(),
    )


def _nested(lines: list[str]) -> list[dict[str, Any]]:
    """Lines of a nested list as (parts of the text, depth); every other part is bold."""
    out = []
    for line in lines:
        text = line.lstrip()
        depth = (len(line) - len(text)) // 2
        out.append({"depth": depth, "parts": text.removeprefix("- ").split("**")})
    return out


def _table(head: list[str], rows: list[list[str]]) -> str:
    line = "|".join("---" if i == 0 else "---:" for i in range(len(head)))
    cells = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([cells[0], f"|{line}|", *cells[1:]])


def _cost(candidate: Candidate, document: ProtocolDocument) -> str:
    found, currency = candidate.measures["cost"], document.catalog.currency
    low, high = money(found.low, ""), money(found.high, "")
    return f"{money(found.value, currency)} ({low} to {high})"


def _with_interval(number: Number) -> str:
    if not np.isfinite(number.value):
        return ""
    return f"{number.value:.3f} ({number.low:.3f} to {number.high:.3f})"


def _signed(number: Number, currency: str | None = None) -> str:
    """A difference with its sign and interval."""
    if not np.isfinite(number.value):
        return "not measured"
    digits = 3 if currency is None else 2
    shown = [f"{value:+.{digits}f}" for value in (number.value, number.low, number.high)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _more_or_less(cost: Number, currency: str) -> str:
    amount = money(abs(cost.value), currency)
    return f"{amount} {'more' if cost.value > 0 else 'less'}"
