"""The tables of the report, as rows of formatted text."""

from __future__ import annotations

import math
import shlex
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
from nocta.runs.method_options import typed
from nocta.runs.record import JobRecord
from nocta.runs.setup import DataSource, Setup
from nocta.runs.shares import gain_over_costs
from nocta.runs.summary import QUALITIES, mean_and_error, mean_points, side_by_side

#: What is shown of an operating point besides its cost and its quality.
OTHER_LABELS = {
    "tests": "tests",
    "visits": "visits",
    "detection_delay": "detection delay",
    "detected": "detected",
    "false_alarms": "false alarms",
}
MINUS = "\N{MINUS SIGN}"
#: Options of `nocta compare` by field of `Setup`.
_OPTIONS = {
    "preset": "--preset",
    "n_points": "--points",
    "cost_weights": "--cost-weights",
    "budgets": "--budgets",
    "availability": "--availability",
    "results": "--results",
    "n_trials": "--tune",
    "predictor": "--predictor",
}


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
        >>> number(0.84512), number(-0.02, sign=True), number(11.315, 2), number(float("nan"))
        ('0.845', '−0.020', '11.32', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    # Round the decimal number as written: 11.315 becomes 11.32, not 11.31.
    exact = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    text = f"{exact:+f}" if sign else f"{exact:f}"
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


def difference_tables(view: ReportView) -> list[tuple[str, Table]]:
    """Name and paired differences of every metric that is shown side by side."""
    shown = side_by_side(view.comparison.quality)
    found = [(METRIC_LABELS[name], difference_table(view, name)) for name in shown]
    return [(name, table) for name, table in found if table is not None]


def difference_table(view: ReportView, quality: str) -> Table | None:
    """Paired differences, row minus column: a text and its mark (`ahead`, `behind` or none)."""
    table = view.comparison.summary
    table = table[(table["quality"] == quality) & (table["versus"] != "")]
    if table.empty:
        return None
    better = -1 if quality in LOWER_IS_BETTER else 1
    found = {(row.method, row.versus): row for row in table.itertuples()}
    methods = [m for m in view.methods if m in set(table["method"])]

    def cell(row: Any) -> tuple[str, str]:
        if row is None or math.isnan(row.mean):
            return "", ""
        clear = abs(row.mean) > row.standard_error  # not if the error is NaN
        mark = "ahead" if row.mean * better > 0 else "behind"
        return with_error(row.mean, row.standard_error, sign=True), mark if clear else ""

    rows = [(label(m), [cell(found.get((m, other))) for other in methods]) for m in methods]
    return Table([label(method) for method in methods], rows)


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
    names = {**METRIC_LABELS, **OTHER_LABELS, "cost": "cost"}
    names["share_of_gain"] = "share of the gain"
    head = ["method", "point", *(names[c] for c in shown), "seeds"]
    return Table(head, rows, grouped=True)


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


def settings_table(view: ReportView) -> list[tuple[str, str]]:
    comparison, cohort = view.comparison, view.cohort
    setup, source = comparison.setup, comparison.setup.source
    drawn = "drawn again for every seed" if source.is_drawn else "the same for every seed"
    return [
        ("data", f"{comparison.dataset}, {drawn}"),
        ("subjects", f"{cohort.n_train} train, {cohort.n_val} validation, {cohort.n_test} test"),
        ("classes", ", ".join(cohort.classes)),
        ("seeds", ", ".join(str(s) for s in comparison.seeds)),
        ("preset", setup.preset),
        ("availability", setup.availability),
        ("results of a visit are shown", setup.results),
        ("predictor of methods that share one", setup.predictor),
        ("acquiring everything costs", view.price(cohort.cost_of_everything)),
        ("operating points", _operating_points(setup)),
        *([("tuning", f"{setup.n_trials} trials per method and seed")] if setup.n_trials else []),
        *([("options", options)] if (options := _options(comparison)) else []),
        ("command", command(comparison)),
    ]  # fmt: skip


def _operating_points(setup: Setup) -> str:
    given = {"cost weights": setup.cost_weights, "budgets": setup.budgets}
    texts = [f"{name} {_joined(values)}" for name, values in given.items() if values]
    chosen = f"up to {setup.n_points} per method, chosen on validation"
    return f"{' and '.join(texts)}; other methods: {chosen}" if texts else chosen


def _options(comparison: Comparison) -> str:
    """Options of methods that differ from the defaults."""
    found = {
        record.job.label: ", ".join(f"{k} = {v}" for k, v in record.job.options.items())
        for record in comparison.records
    }
    return "; ".join(f"{label(name)}: {text}" for name, text in found.items() if text)


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


def versions_table(view: ReportView) -> list[tuple[str, str]]:
    """Versions of the packages; several if jobs were run with different ones."""
    found: dict[str, dict[str, None]] = {}
    for record in view.comparison.records:
        for package, version in record.versions.items():
            found.setdefault(package, {})[version] = None
    return [(package, ", ".join(seen)) for package, seen in found.items()]


def command(comparison: Comparison) -> str:
    """The command that repeats the comparison."""
    if comparison.command:
        return comparison.command
    setup, source = comparison.setup, comparison.setup.source
    parts = ["nocta", "compare", source.data]
    parts += ["--methods", ",".join(comparison.methods), "--seeds", str(len(comparison.seeds))]
    defaults = type(setup)(source)
    parts += ["--split-column", source.split_column] if source.split_column else []
    parts += ["--fractions", _joined(source.fractions)] if source.fractions else []
    for name, option in _OPTIONS.items():
        value = getattr(setup, name)
        if value != getattr(defaults, name):
            parts += [option, _joined(value) if isinstance(value, tuple) else str(value)]
    parts += data_arguments(source)
    jobs = {record.job.label: record.job for record in comparison.records}
    for method, job in jobs.items():
        for name, value in job.options.items() if method == job.method else ():
            parts += ["-o", f"{method}.{name}={typed(value)}"]
    if setup.quick:
        parts.append("--quick")
    return shlex.join([*parts, "--out", str(comparison.directory)])


def data_arguments(source: DataSource) -> list[str]:
    """The options that name a data source, as typed on the command line."""
    named = {"--schema": source.schema, "--path": source.path}
    files = [text for option, value in named.items() if value for text in (option, value)]
    options = [f"{name}={typed(value)}" for name, value in source.data_options.items()]
    return [*files, *(text for option in options for text in ("--data-option", option))]


def _joined(values: tuple[float, ...]) -> str:
    return ",".join(f"{v:g}" for v in values)
