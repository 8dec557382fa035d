"""One job: one method at one seed, from the data to rows of results.csv.

A job depends on its `Setup`, its method and its seed and on nothing else, so jobs can run in any
order, in any process, on any machine, and give the same numbers.
"""

from __future__ import annotations

import re
import time as clock
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.operating_points import cost_of_everything
from nocta.core.predictor import Predictor
from nocta.core.rollout import Rollout
from nocta.methods.contract import Method
from nocta.methods.registry import method_class
from nocta.runs.audits import audit_points
from nocta.runs.details import describe_rollout
from nocta.runs.method_options import given_options, make_method, option_defaults
from nocta.runs.operating_points import operating_points, roll_out
from nocta.runs.option_search import OptionSearch
from nocta.runs.results import make_row, plain
from nocta.runs.setup import Setup
from nocta.runs.summary import headline_metric
from nocta.runs.tuning import TrialFile, tune
from nocta.runs.validation_area import ValidationArea
from nocta.runs.versions import versions


@dataclass(frozen=True)
class Job:
    """One method at one seed.

    Args:
        method: Name of the method.
        seed: Decides the split, every training run, and the draw of data that is drawn.
        options: Of the method, where they are not the default; see `method_options`.
        label: How the method is called in results; its name by default.

    Example:
        >>> Job("static", 3).name
        'static-seed3'
    """

    method: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.method)

    @property
    def name(self) -> str:
        """Name of the job's file."""
        return re.sub(r"[^\w.=-]+", "_", f"{self.label}-seed{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it is written beside the results."""
        found: dict[str, Any] = plain(
            {
                "method": self.method,
                "seed": self.seed,
                "options": self.options,
                "label": self.label,
            }
        )
        return found

    @property
    def shares_predictor(self) -> bool:
        """Whether the method acquires for a predictor it is given."""
        return method_class(self.method).shares_predictor


@dataclass(frozen=True)
class FittedPredictor:
    """A predictor and how long it took to fit."""

    predictor: Predictor
    seconds: float


def run_job(
    setup: Setup,
    job: Job,
    shared: FittedPredictor | None = None,
    *,
    trials: Path | None = None,
    show_trials: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Tune the method if asked to, fit it, roll it out at every operating point, judge and audit.

    Args:
        setup: What all jobs of the comparison have in common.
        job: The method and the seed.
        shared: The predictor of this seed, for methods that share one.
        trials: File that keeps the trials of a tuning, so that it can be continued.
        show_trials: Show a bar over trials.
        progress: Show the bars of the method.

    Returns:
        Plain data: `job`, `tuning` (every trial and what was chosen, or nothing), `rows` (of
        results.csv), `details` (one entry per row, for the report), `audit`, `cohort` (names
        and sizes) and `versions`.

    Raises:
        LeakageError: The audit found that the policy knew something it never acquired.
    """
    started = clock.perf_counter()
    cohort = setup.source.load(job.seed)
    train, val, test = setup.source.split(cohort, job.seed)
    learning = _Learning(setup, job, train, val, shared)
    tuning = learning.tune(trials, show_trials) if setup.n_trials else None
    fitting = clock.perf_counter()
    method = learning.fit(tuning["chosen"] if tuning else {}, progress=progress)
    fit_seconds = clock.perf_counter() - fitting + (shared.seconds if shared is not None else 0.0)
    settings = operating_points(method, val, setup, job.seed)
    keys = {
        "dataset": cohort.name,
        "method": job.label,
        "preset": getattr(method, "preset", setup.preset),
        "availability": setup.availability,
        "seed": job.seed,
        "split": "test",
    }
    metric = headline_metric(cohort.name)
    rows, details = [], []
    for setting in settings:
        outcome = roll_out(method, setting, test, setup, job.seed)
        entry = describe_rollout(outcome, test.catalog, metric=metric, seed=job.seed)
        rows.append(_row(keys, setting, entry, outcome, fit_seconds))
        details.append(entry)
    return {
        "job": job.to_dict(),
        "tuning": tuning,
        "rows": rows,
        "details": details,
        "audit": audit_points(method, settings, test, setup, job.seed),
        "cohort": _describe_cohort(cohort, train, val, test),
        "versions": versions(),
        "seconds": clock.perf_counter() - started,
    }


def build_method(setup: Setup, job: Job) -> Method:
    """The method with its options, ready to be fitted under the rules of the comparison."""
    method = make_method(job.method, job.options, preset=setup.preset, quick=setup.quick)
    method.availability, method.results = setup.availability, setup.results
    return method


@dataclass(frozen=True)
class _Learning:
    """What a job may learn and choose from: train and validation subjects, never the others."""

    setup: Setup
    job: Job
    train: Cohort
    val: Cohort
    shared: FittedPredictor | None

    def fit(self, options: Mapping[str, Any], *, progress: bool = False) -> Method:
        """The method with the job's options and these, fitted."""
        job = replace(self.job, options={**self.job.options, **options})
        predictor = self.shared.predictor if self.shared is not None else None
        return build_method(self.setup, job).fit(
            self.train, self.val, seed=job.seed, predictor=predictor, progress=progress
        )

    def tune(self, trials: Path | None, progress: bool) -> dict[str, Any]:
        """Every trial and what was chosen, as plain data."""
        area = ValidationArea.of(self.train, self.val)

        def score(options: dict[str, Any]) -> float:
            method, setup, seed = self.fit(options), self.setup, self.job.seed
            settings = operating_points(method, self.val, setup, seed)
            return area.score([roll_out(method, s, self.val, setup, seed) for s in settings])

        method = build_method(self.setup, self.job)
        given = given_options(self.job.options)
        defaults = option_defaults(self.job.method, getattr(method, "preset", self.setup.preset))
        search = OptionSearch(method, self.job.seed, given, defaults)
        signature = {"job": self.job.to_dict(), "tuned": search.names, "scale": asdict(area)}
        file = TrialFile(trials, signature)
        found = tune(search, score, self.setup.n_trials, file, progress=progress)
        return {**found.to_dict(), **asdict(area)}


def _row(
    keys: dict[str, Any],
    setting: dict[str, Any],
    entry: dict[str, Any],
    outcome: Rollout,
    fit_seconds: float,
) -> dict[str, Any]:
    measured = ("cost", "accuracy", "ap", "roc_auc", "cross_entropy", "n_subjects", "n_labels")
    return make_row(
        keys,
        setting,
        **{name: entry[name] for name in measured},
        fit_seconds=fit_seconds,
        rollout_seconds=outcome.seconds,
    )


def _describe_cohort(cohort: Cohort, train: Cohort, val: Cohort, test: Cohort) -> dict[str, Any]:
    times = cohort.slot_times or tuple(float(t) for t in range(cohort.n_times))
    return {
        "name": cohort.name,
        "classes": list(cohort.classes),
        "catalog": cohort.catalog.to_dict(),
        "slot_times": list(times),
        "time_unit": cohort.time_unit,
        "n_train": len(train),
        "n_val": len(val),
        "n_test": len(test),
        "cost_of_everything": cost_of_everything(test),
    }
