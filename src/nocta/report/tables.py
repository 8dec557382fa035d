"""The tables of the report, as rows of formatted text."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from nocta.core.metrics import LOWER_IS_BETTER
from nocta.report.plots.frontier import METRIC_LABELS
from nocta.report.plots.style import method_style
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.method_options import typed
from nocta.runs.record import JobRecord
from nocta.runs.setup import DataSource
from nocta.runs.summary import QUALITIES, mean_and_error, mean_points

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Cell:
    """A text and its mark: `ahead`, `behind`, or none."""

    text: str
    note: str = ""


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


def quality_table(view: ReportView) -> dict[str, Any] | None:
    """Mean quality of each method over the common costs, best first."""
    comparison = view.comparison
    own = comparison.summary[comparison.summary["versus"] == ""]
    if own.empty:
        return None
    quality = comparison.quality
    first = own[own["quality"] == quality].sort_values("mean", ascending=quality in LOWER_IS_BETTER)
    shares = _optimum_shares(comparison)
    rows = []
    for method in first["method"]:
        cells = []
        for name in QUALITIES:
            found = own[(own["quality"] == name) & (own["method"] == method)].iloc[0]
            cells.append(with_error(found["mean"], found["standard_error"]))
        rows.append([label(method), *cells, *([shares[method]] if shares else [])])
    head = ["method", *(METRIC_LABELS[name] for name in QUALITIES)]
    return {
        "head": [*head, *(["share of the optimum"] if shares else [])],
        "rows": rows,
        "grouped": False,
        "narrow": ", ".join(label(m) for m in view.methods if m not in set(first["method"])),
        "low": view.price(float(first["cost_low"].iloc[0])),
        "high": view.price(float(first["cost_high"].iloc[0])),
    }


def _optimum_shares(comparison: Comparison) -> dict[str, str]:
    """By method, accuracy as a share of the optimum at the same cost, mean over its points."""
    table = comparison.share_of_optimum
    if table is None:
        return {}
    points = table[table["point"] != "mean"]
    return {
        str(method): with_error(
            *mean_and_error([g["ratio"].mean() for _, g in rows.groupby("seed")])
        )
        for method, rows in points.groupby("method")
    }


def difference_table(view: ReportView) -> dict[str, Any] | None:
    """Paired differences: the row's method minus the column's, over their common costs."""
    comparison = view.comparison
    table = comparison.summary
    table = table[(table["quality"] == comparison.quality) & (table["versus"] != "")]
    if table.empty:
        return None
    better = -1 if comparison.quality in LOWER_IS_BETTER else 1
    found = {(row.method, row.versus): row for row in table.itertuples()}
    methods = [m for m in view.methods if m in set(table["method"])]
    rows = []
    for method in methods:
        cells = [_difference_cell(found.get((method, other)), better) for other in methods]
        rows.append((label(method), cells))
    return {"head": [label(method) for method in methods], "rows": rows}


def _difference_cell(row: Any, better: int) -> Cell:
    if row is None or math.isnan(row.mean):
        return Cell("")
    text = with_error(row.mean, row.standard_error, sign=True)
    clear = not math.isnan(row.standard_error) and abs(row.mean) > row.standard_error
    return Cell(text, ("ahead" if row.mean * better > 0 else "behind") if clear else "")


def points_table(view: ReportView, qualities: Sequence[str] = QUALITIES) -> dict[str, Any]:
    """Every operating point, averaged over seeds."""
    comparison = view.comparison
    large = comparison.results["cost"].max() >= 100
    found = mean_points(comparison.results, view.methods, ["cost", *qualities], comparison.optimum)
    rows = []
    for point in found:
        cells = [
            with_error(*pair, 2 if large and column == "cost" else 3)
            for column, pair in point.means.items()
        ]
        rows.append([label(point.method), str(point.point + 1), *cells, str(point.n_seeds)])
    names = {**METRIC_LABELS, "cost": "cost", "share_of_optimum": "share of the optimum"}
    head = ["method", "point", *(names[c] for c in found[0].means), "seeds"]
    return {"head": head, "rows": rows, "grouped": True}


def ledger_table(view: ReportView) -> dict[str, Any]:
    """Mean charge per subject and item, at the reference cost."""
    methods, items = view.ledger()
    rows = [[item, *(number(v, 2) for v in spent)] for item, spent in items]
    total = [sum(spent[i] for _, spent in items) for i in range(len(methods))]
    return {
        "head": ["", *(label(m) for m in methods)],
        "rows": rows,
        "grouped": False,
        "total": ["all", *(number(v, 2) for v in total)],
    }


def audit_table(view: ReportView) -> dict[str, Any]:
    """What the audit verified for each job."""
    rows = []
    for record in view.comparison.records:
        found, job = record.audit, record.job
        said = "not audited"
        if found:
            said = (
                f"{_points(found.n_points)}: {found.n_decisions} decisions and "
                f"{found.n_predictions} predictions of {found.n_subjects} subjects identical"
            )
        rows.append([label(job.label), str(job.seed), said])
    return {"head": ["method", "seed", "verified"], "rows": rows, "grouped": True, "prose": [2]}


def _points(n_points: int) -> str:
    return "its operating point" if n_points == 1 else f"each of {n_points} operating points"


def settings_table(view: ReportView) -> list[tuple[str, str]]:
    """The settings of the comparison."""
    comparison, cohort = view.comparison, view.cohort
    setup, source = comparison.setup, comparison.setup.source
    drawn = "drawn again for every seed" if source.is_drawn else "the same for every seed"
    entries = [
        ("data", f"{comparison.dataset}, {drawn}"),
        ("subjects", f"{cohort.n_train} train, {cohort.n_val} validation, {cohort.n_test} test"),
        ("classes", ", ".join(cohort.classes)),
        ("seeds", ", ".join(str(s) for s in comparison.seeds)),
        ("preset", setup.preset),
        ("availability", setup.availability),
        ("results of a visit are shown", setup.results),
        ("predictor of methods that share one", setup.predictor),
        ("acquiring everything costs", view.price(cohort.cost_of_everything)),
        ("operating points", _operating_points(comparison)),
        *([("tuning", f"{setup.n_trials} trials per method and seed")] if setup.n_trials else []),
        *([("options", options)] if (options := _options(comparison)) else []),
        ("command", command(comparison)),
    ]  # fmt: skip
    return entries


def _operating_points(comparison: Comparison) -> str:
    setup = comparison.setup
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


def tuning_table(view: ReportView) -> dict[str, Any] | None:
    """Defaults, best score, choice and all scores of every job; `None` if nothing was tuned."""
    comparison = view.comparison
    if not comparison.setup.n_trials:
        return None
    order = {method: i for i, method in enumerate(view.methods)}
    records = sorted(comparison.records, key=lambda record: order[record.job.label])
    return {
        "head": ["method", "seed", "defaults", "chosen", "options chosen", "score of every trial"],
        "rows": [_trials_row(record) for record in records],
        "grouped": True,
        "prose": [4, 5],
        "n_trials": comparison.setup.n_trials,
        "quality": METRIC_LABELS[comparison.quality],
    }


def _trials_row(record: JobRecord) -> list[str]:
    name, seed, tuning = label(record.job.label), str(record.job.seed), record.tuning
    if tuning is None or not tuning.tuned:
        return [name, seed, "–", "–", "nothing to tune", ""]
    scores = [number(trial.score) for trial in tuning.trials]
    chosen = ", ".join(f"{k} = {v}" for k, v in tuning.chosen.items()) or "the defaults"
    missing = tuning.n_trials - len(scores)
    tried = ", ".join(scores) + (" (there are no other options)" if missing else "")
    return [name, seed, scores[0], scores[tuning.best], chosen, tried]


def times_table(view: ReportView) -> dict[str, Any]:
    """Mean time of fitting and of rollouts, over seeds and operating points."""
    results = view.comparison.results
    rows = []
    for method in view.methods:
        chosen = results[results["method"] == method]
        per_subject = 1000 * chosen["rollout_seconds"] / chosen["n_subjects"]
        fits = chosen.groupby("seed")["fit_seconds"].first()
        rows.append([label(method), number(fits.mean(), 1), number(per_subject.mean(), 2)])
    head = ["method", "fit (s)", "rollout per subject (ms)"]
    return {"head": head, "rows": rows, "grouped": False}


def versions_table(view: ReportView) -> list[tuple[str, str]]:
    """Versions of the packages; several if jobs were run with different ones."""
    found: dict[str, list[str]] = {}
    for record in view.comparison.records:
        for package, version in record.versions.items():
            if version not in found.setdefault(package, []):
                found[package].append(version)
    return [(package, ", ".join(seen)) for package, seen in found.items()]


def command(comparison: Comparison) -> str:
    """The command that repeats the comparison."""
    if comparison.command:
        return comparison.command
    setup, source = comparison.setup, comparison.setup.source
    parts = ["nocta", "compare", source.data]
    parts += ["--methods", ",".join(comparison.methods), "--seeds", str(len(comparison.seeds))]
    defaults = type(setup)(source)
    options = {
        "--split-column": source.split_column,
        "--fractions": _joined(source.fractions or ()),
        "--preset": setup.preset if setup.preset != defaults.preset else None,
        "--points": str(setup.n_points) if setup.n_points != defaults.n_points else None,
        "--cost-weights": _joined(setup.cost_weights),
        "--budgets": _joined(setup.budgets),
        "--availability": setup.availability
        if setup.availability != defaults.availability
        else None,
        "--results": setup.results if setup.results != defaults.results else None,
        "--tune": str(setup.n_trials) if setup.n_trials else None,
        "--predictor": setup.predictor if setup.predictor != defaults.predictor else None,
    }
    for option, value in options.items():
        if value:
            parts += [option, value]
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
