"""The tables of the report, as rows of formatted text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.exact.yardstick import Yardstick
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import method_style
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.record import JobRecord
from nocta.runs.shares import gain_over_costs
from nocta.runs.summary import QUALITIES, mean_and_error, mean_points

#: What is shown of an operating point besides its cost and its quality.
OTHER_LABELS = {
    "tests": "tests",
    "visits": "visits",
    "detection_delay": "detection delay",
    "detected": "detected",
    "false_alarms": "false alarms",
}
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Table:
    """Names of the columns and rows of text.

    Rows with the same first cell are `grouped`. Columns in `prose` hold words, not numbers.
    """

    head: list[str]
    rows: list[Any]
    grouped: bool = False
    prose: tuple[int, ...] = ()
    total: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """A number for readers; a dash if it is undefined.

    Example:
        >>> number(0.84512), number(-0.02, sign=True), number(1271.315, 2), number(float("nan"))
        ('0.845', '−0.020', '1,271.32', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    # Round the decimal number as written: 11.315 becomes 11.32, not 11.31.
    exact = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    text = f"{exact:+,f}" if sign else f"{exact:,f}"
    return text.replace("-", MINUS)


def with_error(mean: float, error: float, digits: int = 3, *, sign: bool = False) -> str:
    """A mean and its standard error, if known: 0.500 ± 0.010."""
    text = number(mean, digits, sign=sign)
    return text if error is None or math.isnan(error) else f"{text} ± {number(error, digits)}"


def label(method: str) -> str:
    """Name of a method in tables and legends."""
    return method_style(method).label


def quality_table(view: ReportView) -> Table | None:
    """Mean quality of each method over the common costs, best first."""
    comparison = view.comparison
    own = comparison.summary[comparison.summary["versus"] == ""]
    if own.empty:
        return None
    quality = comparison.quality
    first = own[own["quality"] == quality].sort_values("mean", ascending=quality in LOWER_IS_BETTER)
    shares = _exact_shares(comparison)
    rows = []
    for method in first["method"]:
        cells = []
        for name in QUALITIES:
            found = own[(own["quality"] == name) & (own["method"] == method)].iloc[0]
            cells.append(with_error(found["mean"], found["standard_error"]))
        rows.append([label(method), *cells, *(share[method] for share in shares.values())])
    head = ["method", *(METRIC_LABELS[name] for name in QUALITIES)]
    notes = {
        "narrow": ", ".join(label(m) for m in view.methods if m not in set(first["method"])),
        "low": view.price(float(first["cost_low"].iloc[0])),
        "high": view.price(float(first["cost_high"].iloc[0])),
    }
    return Table([*head, *shares], rows, notes=notes)


def _exact_shares(comparison: Comparison) -> dict[str, dict[str, str]]:
    """By column and method, what is known on tasks with an exact optimum.

    The share of the optimal accuracy is a mean over a method's points, those of the attainable gain
    are means over costs.
    """
    table, yardstick = comparison.share_of_optimum, comparison.yardstick
    if table is None or yardstick is None:
        return {}
    points = table[~table["point"].isin(["mean", "costs", "lowest"])]
    ratios = points.groupby(["method", "seed"], sort=False)["ratio"].mean()
    gains = gain_over_costs(comparison.results, yardstick)
    columns = {"share of the optimum": ratios}
    for measure, rows in gains.groupby("measure", sort=False):
        name = f"share of the attainable gain in {METRIC_LABELS[str(measure)]}"
        columns[name] = rows.set_index(["method", "seed"])["mean"]
    return {
        name: {
            str(method): with_error(*mean_and_error(values.to_numpy(float)))
            for method, values in shares.groupby("method")
        }
        for name, shares in columns.items()
    }


def points_table(view: ReportView, qualities: Sequence[str] = QUALITIES) -> Table:
    """Every operating point, averaged over seeds."""
    return _points_table(view, qualities, view.comparison.yardstick)


def effort_table(view: ReportView) -> Table | None:
    """What every operating point acquires, and how soon it detects; `None` if it is not known."""
    results = view.comparison.results
    known = [name for name in OTHER_LABELS if results[name].notna().any()]
    return _points_table(view, known) if known else None


def _points_table(
    view: ReportView, columns: Sequence[str], yardstick: Yardstick | None = None
) -> Table:
    results = view.comparison.results
    found = mean_points(results, view.methods, ["cost", *columns], yardstick)
    digits = {"cost": 2 if results["cost"].max() >= 100 else 3, "tests": 1, "visits": 1}
    shown = [column for column in found[0].means if column != "share_of_optimum"]
    rows = []
    for point in found:
        cells = [with_error(*point.means[column], digits.get(column, 3)) for column in shown]
        rows.append([label(point.method), str(point.point + 1), *cells, str(point.n_seeds)])
    unit = f" ({view.currency})" if view.currency else ""
    names = {**METRIC_LABELS, **OTHER_LABELS, "cost": f"cost{unit}"}
    names["share_of_gain"] = "share of the gain"
    head = ["method", "point", *(names[c] for c in shown), "seeds"]
    return Table(head, rows, grouped=True)


def key_table(view: ReportView) -> Table:
    """The leading method at its recommended point, beside methods that have a single point."""
    quality = view.comparison.quality
    # More do not fit beside the figure; every operating point has all of them below.
    names = [quality, "cross_entropy" if quality == "accuracy" else "accuracy"]
    points = view.comparison.results.groupby("method")["setting"].nunique()
    rows = []
    for method in (view.lead, *(m for m in view.methods if m != view.lead and points[m] == 1)):
        entries = view.chosen[method]
        cells = [
            with_error(*mean_and_error([float(getattr(e, name)) for e in entries]), digits)
            for name, digits in (("cost", 2), *((name, 3) for name in names))
        ]
        rows.append([label(method) + " (recommended)" * (method == view.lead), *cells])
    unit = f" ({view.currency})" if view.currency else ""
    return Table(["", f"cost{unit}", *(METRIC_LABELS[name] for name in names)], rows)


def thresholds(comparison: Comparison) -> str:
    """The threshold of an alarm, from the lowest to the highest over seeds."""
    found = comparison.results["threshold"].dropna()
    if found.empty:
        return ""
    ends = dict.fromkeys(number(value) for value in (found.min(), found.max()))
    return " to ".join(ends)


def ledger_table(view: ReportView) -> Table:
    """Mean charge per subject and item, at the reference cost."""
    methods, items = view.ledger()
    rows = [[item, *(number(v, 2) for v in spent)] for item, spent in items]
    total = [sum(spent[i] for _, spent in items) for i in range(len(methods))]
    all_items = ["all", *(number(v, 2) for v in total)]
    return Table(["", *(label(m) for m in methods)], rows, total=all_items)


def audit_table(view: ReportView) -> Table:
    """What the audit verified for each job."""
    rows = []
    for record in view.comparison.records:
        found, job = record.audit, record.job
        said = "not audited"
        if found:
            n = found.n_points
            points = "its operating point" if n == 1 else f"each of {n} operating points"
            said = (
                f"{points}: {found.n_decisions} decisions and {found.n_predictions} predictions "
                f"of {found.n_subjects} subjects identical"
            )
        rows.append([label(job.label), str(job.seed), said])
    return Table(["method", "seed", "verified"], rows, grouped=True, prose=(2,))


def tuning_table(view: ReportView) -> Table | None:
    """Defaults, best score, choice and all scores of every job; `None` if nothing was tuned."""
    comparison = view.comparison
    if not comparison.setup.n_trials:
        return None
    records = sorted(comparison.records, key=lambda record: view.methods.index(record.job.label))
    head = ["method", "seed", "defaults", "chosen", "options chosen", "score of every trial"]
    return Table(head, [_trials_row(record) for record in records], grouped=True, prose=(4, 5))


def _trials_row(record: JobRecord) -> list[str]:
    name, seed, tuning = label(record.job.label), str(record.job.seed), record.tuning
    if tuning is None or not tuning.tuned:
        return [name, seed, "–", "–", "nothing to tune", ""]
    scores = [number(trial.score) for trial in tuning.trials]
    chosen = ", ".join(f"{k} = {v}" for k, v in tuning.chosen.items()) or "the defaults"
    missing = tuning.n_trials - len(scores)
    tried = ", ".join(scores) + (" (there are no other options)" if missing else "")
    return [name, seed, scores[0], scores[tuning.best], chosen, tried]


def times_table(view: ReportView) -> Table:
    """Mean time of fitting and of rollouts, over seeds and operating points."""
    results = view.comparison.results
    rows = []
    for method in view.methods:
        chosen = results[results["method"] == method]
        per_subject = 1000 * chosen["rollout_seconds"] / chosen["n_subjects"]
        fits = chosen.groupby("seed")["fit_seconds"].first()
        rows.append([label(method), number(fits.mean(), 1), number(per_subject.mean(), 2)])
    return Table(["method", "fit (s)", "rollout per subject (ms)"], rows)
