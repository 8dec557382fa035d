"""Promise kept? What each method expected before the first visit, and what happened."""

from __future__ import annotations

import math

import numpy as np

from nocta.report.plots.promises import Kept
from nocta.report.tables import Table, label, number
from nocta.report.view import ReportView

#: A promise counts as kept if what happened is this near to it, relative to what was promised.
TOLERANCE = 0.05


def kept_promises(view: ReportView) -> list[Kept]:
    """Every operating point whose policy said what it expects, averaged over seeds."""
    results = view.comparison.results
    columns = ["expected_loss", "realized_loss", "expected_cost", "cost"]
    table = results.assign(point=results.groupby(["method", "seed"]).cumcount())
    out = []
    for method in view.methods:
        rows = table[table["method"] == method].dropna(subset=columns)
        for point, group in rows.groupby("point"):
            means = group[columns].mean()
            out.append(Kept(method, int(point) + 1, *(float(means[c]) for c in columns)))
    return out


def promise_table(view: ReportView) -> Table | None:
    """Expected and realized loss and charge; `None` if no method says what it expects."""
    found = kept_promises(view)
    if not found:
        return None
    rows = [
        [
            label(kept.method),
            str(kept.point),
            number(kept.expected_loss),
            number(kept.realized_loss),
            deviation(kept.expected_loss, kept.realized_loss),
            number(kept.expected_cost, 2),
            number(kept.cost, 2),
            deviation(kept.expected_cost, kept.cost),
        ]
        for kept in found
    ]
    unit = f" ({view.currency})" if view.currency else ""
    head = ["method", "point", "expected loss", "happened", "gap"]
    head += [f"expected charge{unit}", "happened", "gap"]
    silent = [label(m) for m in view.methods if m not in {kept.method for kept in found}]
    notes = {"silent": ", ".join(silent), "verdict": _verdict(view, found)}
    return Table(head, rows, grouped=True, notes=notes)


def deviation(expected: float, happened: float) -> str:
    """How much more happened than was expected, in percent of what was expected.

    Example:
        >>> deviation(2.0, 2.1), deviation(2.0, 1.9), deviation(0.0, 0.0)
        ('+5 %', '−5 %', '0 %')
    """
    percent = 100 * _relative(expected, happened)
    signed = not math.isnan(percent) and round(percent) != 0
    return f"{number(percent, 0, sign=signed)} %" if not math.isnan(percent) else "–"


def _relative(expected: float, happened: float) -> float:
    if expected == 0 and abs(happened) < 1e-9:
        return 0.0
    return happened / expected - 1 if expected > 0 else float("nan")


def _verdict(view: ReportView, found: list[Kept]) -> str:
    """How well the leading method keeps its promises."""
    own = [kept for kept in found if kept.method == view.lead]
    if not own:
        return ""
    losses = [_relative(kept.expected_loss, kept.realized_loss) for kept in own]
    costs = [_relative(kept.expected_cost, kept.cost) for kept in own]
    texts = [
        f"the {what} was within {100 * TOLERANCE:.0f} % of what was expected at "
        f"{sum(abs(x) <= TOLERANCE for x in gaps)} of {len(own)} operating points"
        f" (largest gap {deviation(1.0, 1 + max(gaps, key=_size))})"
        for what, gaps in (("loss", losses), ("charge", costs))
        if not all(map(math.isnan, gaps))
    ]
    return f"{label(view.lead)}: {', and '.join(texts)}." if texts else ""


def _size(gap: float) -> float:
    return float(np.nan_to_num(abs(gap), nan=-1.0))
