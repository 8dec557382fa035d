"""The user's protocols held against operating points: one sentence for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nocta.evaluation.against_protocol import protocol_sentence
from nocta.evaluation.frontier import Frontier
from nocta.methods.reference.protocol import PROTOCOL
from nocta.methods.references import PLAN

if TYPE_CHECKING:
    import pandas as pd

    from nocta.runs.compare import Comparison


def sentences_of_results(
    results: pd.DataFrame, method: str, metric: str = "ap", currency: str = ""
) -> list[str]:
    """One sentence per protocol, from the rows of results.csv; means over seeds.

    The points of a seed are in the order of their cost; the k-th points of all seeds make one.
    """
    curve = _mean_curve(results[results["method"] == method], metric)
    rows = results[[is_protocol_name(name) for name in results["method"]]]
    out = []
    for name, found in rows.groupby("method", sort=False):
        cost, quality = float(found["cost"].mean()), float(found[metric].mean())
        known = protocol_name(str(name))
        if len(curve):
            out.append(protocol_sentence(curve, cost, quality, currency=currency, name=known))
    return out


def sentences_of_record(
    record: Mapping[str, Any], metric: str = "ap", currency: str = ""
) -> list[str]:
    """The same from the record of a fitted model, on its validation subjects."""
    points = [p for p in record.get("validation", []) if p.get(metric) is not None]
    curve = Frontier([p["cost"] for p in points], [p[metric] for p in points], metric)  # type: ignore[arg-type]
    out = []
    for point in record.get("references", []):
        setting = point["setting"]
        if setting["acquire"] != PLAN or not is_protocol_name(setting["name"]):
            continue
        if points and point.get(metric) is not None:
            found = (point["cost"], point[metric])
            name = protocol_name(setting["name"])
            out.append(protocol_sentence(curve, *found, currency=currency, name=name))
    return out


def sentences_of_comparison(comparison: Comparison) -> list[str]:
    """The same for the first NOCTA method of a comparison, or else its first method with a knob."""
    results, catalog = comparison.results, comparison.records[0].cohort.catalog
    names = [m for m in comparison.methods if not is_protocol_name(m)]
    curves = [m for m in names if results.loc[results["method"] == m, "setting"].nunique() > 1]
    ours = [m for m in curves if m.startswith("nocta-")] or curves
    if not ours:
        return []
    return sentences_of_results(results, ours[0], comparison.quality, catalog.currency)


def is_protocol_name(name: str) -> bool:
    """Whether a row of results is a protocol of the schema."""
    return name.partition("-")[0] == PROTOCOL


def protocol_name(method: str) -> str:
    """How a sentence calls a protocol.

    Example:
        >>> protocol_name("protocol"), protocol_name("protocol-old")
        ('your present protocol', "your protocol 'old'")
    """
    _, dash, name = method.partition("-")
    return f"your protocol '{name}'" if dash else "your present protocol"


def _mean_curve(rows: pd.DataFrame, metric: str) -> Frontier:
    rows = rows.dropna(subset=[metric]).sort_values(["seed", "cost"], kind="stable")
    place = rows.groupby("seed").cumcount()
    means = rows.groupby(place)[["cost", metric]].mean()
    return Frontier(means["cost"].to_numpy(), means[metric].to_numpy(), metric)
