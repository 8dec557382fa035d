"""How a comparison was made: its settings, its command, the versions of the packages."""

from __future__ import annotations

import math
import shlex

from nocta.report.tables import label
from nocta.report.view import ReportView
from nocta.runs.compare import Comparison
from nocta.runs.method_options import typed
from nocta.runs.setup import DataSource, Setup

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


def settings_table(view: ReportView) -> list[tuple[str, str]]:
    comparison, cohort = view.comparison, view.cohort
    setup, source = comparison.setup, comparison.setup.source
    if comparison.judged:
        return [
            ("data", f"{comparison.dataset}: {comparison.judged}"),
            ("fitted on", f"{cohort.n_train} subjects, {cohort.n_val} to choose on"),
            ("classes", ", ".join(cohort.classes)),
            ("preset", setup.preset),
            ("availability", setup.availability),
            ("acquiring everything costs", _everything(view)),
            ("command", command(comparison)),
        ]
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
        ("acquiring everything costs", _everything(view)),
        ("operating points", _operating_points(setup)),
        *([("tuning", f"{setup.n_trials} trials per method and seed")] if setup.n_trials else []),
        *([("options", options)] if (options := _options(comparison)) else []),
        ("command", command(comparison)),
    ]  # fmt: skip


def _everything(view: ReportView) -> str:
    """One number, with what it counts: everything recorded, of the test subjects of all seeds."""
    mean, error = view.cost_of_everything
    over = "" if math.isnan(error) else f", mean over {len(view.comparison.seeds)} seeds"
    listed = view.price(view.cohort.catalog.price_of_everything)
    return (
        f"{view.price(mean)} per test subject{over}: the price of everything that was recorded "
        f"(every slot of the price list would be {listed})"
    )


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
