"""The first sentences of a report: what the money buys, and which method is best."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from nocta.core.currency import brief_money
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.tables import label, number, quality_table, with_error
from nocta.report.view import ReportView
from nocta.runs.protocol_text import is_protocol_name, protocol_name, sentences_of_results
from nocta.runs.record import PointDetails
from nocta.runs.summary import mean_and_error

EVERYTHING = "everything"


def manager_sentences(view: ReportView) -> list[str]:
    """What the recommended point costs and gives, beside everything and the user's protocols."""
    name, quality = view.comparison.quality, METRIC_LABELS[view.comparison.quality]
    first = f"{_cost(view, view.recommended)} a subject gives {quality} "
    parts = [first + _quality(view.recommended, name)]
    everything = everything_points(view)
    if everything:
        cost = _cost(view, everything)
        parts.append(f"everything, {cost}, gives {_quality(everything, name)}")
    else:
        parts.append(f"everything costs {_brief(view, view.cost_of_everything[0])}")
    for method in filter(is_protocol_name, view.methods):
        entries = view.chosen[method]
        parts.append(
            f"{protocol_name(method)}, {_cost(view, entries)}, gives {_quality(entries, name)}"
        )
    results = view.comparison.results
    versus = sentences_of_results(results, view.lead, name, view.currency)
    return [f"{label(view.lead)}: {'; '.join(parts)}.", *versus]


def everything_points(view: ReportView) -> list[PointDetails]:
    """Acquiring everything, by seed: the method of that name, or the end of the leading curve."""
    if EVERYTHING in view.methods:
        return view.chosen[EVERYTHING]
    found = []
    for record in view.records_of(view.lead):
        for row, entry in zip(record.rows, record.details, strict=True):
            if json.loads(row.setting).get("acquire") == EVERYTHING:
                found.append(entry)
    return found


def ranking(view: ReportView) -> str:
    """Which method has the best mean quality, in one or two sentences; empty for one method."""
    if len(view.methods) == 1:
        return ""
    found = quality_table(view)
    quality = METRIC_LABELS[view.comparison.quality]
    if found is None or not found.rows:
        return f"{len(view.methods)} method(s) without a common range of costs."
    best = found.rows[0]
    column = found.head.index(quality)
    costs = f"{found.notes['low']} to {found.notes['high']}"
    text = f"Over costs from {costs}, {best[0]} has the best mean {quality}: {best[column]}."
    if len(found.rows) > 1:
        second = found.rows[1]
        text += f" Second is {second[0]} with {second[column]}."
    absent = unranked(view, {row[0] for row in found.rows})
    if absent:
        text += (
            f" Not ranked because of a narrow range of costs: {absent}; see the paired differences."
        )
    return text


def unranked(view: ReportView, ranked: set[str]) -> str:
    """Names of the methods with several operating points that are not ranked."""
    points = view.comparison.results.groupby("method")["cost"].nunique()
    curves = [method for method in view.methods if points[method] > len(view.comparison.seeds)]
    names = [label(method) for method in curves]
    return ", ".join(name for name in names if name not in ranked)


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _brief(view: ReportView, cost: float) -> str:
    return brief_money(cost, view.currency)


def _cost(view: ReportView, entries: Sequence[PointDetails]) -> str:
    return _brief(view, mean([entry.cost for entry in entries]))


def _quality(entries: Sequence[PointDetails], metric: str) -> str:
    """Mean over seeds and standard error; for one seed the interval over subjects."""
    found, error = mean_and_error([float(getattr(entry, metric)) for entry in entries])
    band = entries[0].band
    if len(entries) == 1 and band is not None and not np.isnan(band).any():
        return f"{number(found)} ({number(band[0])} to {number(band[1])})"
    return with_error(found, error)
