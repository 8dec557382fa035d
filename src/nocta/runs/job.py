"""Run one job: one method at one seed, from the data to its `JobRecord`.

A job depends only on its `Setup`, its method and its seed. Jobs can run in any order, in any
process, on any machine, and give the same numbers.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.detection import prevalence
from nocta.core.predictor import Predictor
from nocta.methods.contract import Method
from nocta.methods.references import policy_at
from nocta.runs.details import describe_rollout
from nocta.runs.method_options import given_options, make_method, option_defaults
from nocta.runs.operating_points import (
    audit_points,
    operating_points,
    roll_out,
    with_promises,
)
from nocta.runs.promise import Promise
from nocta.runs.recommended import chosen_on_validation
from nocta.runs.record import CohortDescription, Job, JobRecord, PointDetails, TuningRecord
from nocta.runs.results import MEASURES, TIMES, make_row
from nocta.runs.setup import Setup
from nocta.runs.subgroups import context_bands, describe_subgroups
from nocta.runs.tuning import Tuning, ValidationArea, tune
from nocta.runs.versions import versions


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
    tuning: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> JobRecord:
    """Tune the method if requested, fit it, roll it out at every operating point, and audit it.

    `shared` is the predictor of this seed, for methods that share one. `tuning` holds finished
    trials, as `Tuning.to_dict` gives them; without them the method is tuned here.
    """
    started = clock.perf_counter()
    cohort = setup.source.load(job.seed)
    train, val, test = setup.source.split(cohort, job.seed)
    learning = _Learning(setup, job, train, val, shared)
    tuned = learning.tune(tuning) if setup.n_trials else None
    fitting = clock.perf_counter()
    method = learning.fit(tuned.chosen if tuned else {}, progress=progress)
    fit_seconds = clock.perf_counter() - fitting + (shared.seconds if shared is not None else 0.0)
    settings = operating_points(method, val, setup, job.seed)
    settings = with_promises(settings, method, val, setup, job.seed)
    shown = chosen_on_validation(method, settings, val, setup, job.seed)
    threshold = prevalence(train.labels, train.n_classes)
    measured = _judge(method, settings, shown.index, cohort, test, setup, job.seed, threshold)
    keys = {
        "dataset": cohort.name,
        "method": job.label,
        "preset": getattr(method, "preset", setup.preset),
        "availability": setup.availability,
        "seed": job.seed,
        "split": "test",
    }
    rows = []
    for setting, (entry, seconds) in zip(settings, measured, strict=True):
        values = {name: getattr(entry, name) for name in MEASURES if name not in TIMES}
        times = {"fit_seconds": fit_seconds, "rollout_seconds": seconds}
        rows.append(make_row(keys, setting, **values, **times))
    return JobRecord(
        job=job,
        tuning=tuned,
        rows=rows,
        details=[entry for entry, _ in measured],
        recommended=shown,
        audit=audit_points(method, settings, test, setup, job.seed),
        cohort=CohortDescription.of(test, n_train=len(train), n_val=len(val)),
        versions=versions(),
        seconds=clock.perf_counter() - started + (tuning["seconds"] if tuning else 0.0),
    )


def _judge(
    method: Method,
    settings: list[dict[str, Any]],
    shown: int,
    cohort: Cohort,
    test: Cohort,
    setup: Setup,
    seed: int,
    threshold: float,
) -> list[tuple[PointDetails, float]]:
    """Describe the roll-out at every operating point, with the time it took.

    Subgroups are compared at the recommended point if the method has a choice.
    """
    out = []
    how: dict[str, Any] = {"metric": setup.source.headline, "seed": seed}
    for setting in settings:
        outcome = roll_out(method, setting, test, setup, seed)
        policy, limit = policy_at(method, setting), setting.get("budget")
        promise = Promise.of(policy, test, outcome, budget=limit, seed=seed)
        entry = describe_rollout(outcome, test.catalog, threshold=threshold, promise=promise, **how)
        out.append((entry, outcome.seconds))
    if len(settings) > 1 and test.catalog.context:
        outcome = roll_out(method, settings[shown], test, setup, seed)
        groups = describe_subgroups(outcome, test, bands=context_bands(cohort), **how)
        out[shown] = replace(out[shown][0], subgroups=groups), out[shown][1]
    return out


def build_method(setup: Setup, job: Job) -> Method:
    """The method with its options, to be fitted under the rules of the comparison."""
    method = make_method(job.method, job.options, preset=setup.preset, quick=setup.quick)
    method.availability, method.results = setup.availability, setup.results
    return method


@dataclass(frozen=True)
class _Learning:
    """What a job may learn and choose from: train and validation subjects, never test subjects."""

    setup: Setup
    job: Job
    train: Cohort
    val: Cohort
    shared: FittedPredictor | None

    def fit(self, options: Mapping[str, Any], *, progress: bool = False) -> Method:
        """Fit the method with the job's options and these."""
        job = replace(self.job, options={**self.job.options, **options})
        predictor = self.shared.predictor if self.shared is not None else None
        return build_method(self.setup, job).fit(
            self.train, self.val, seed=job.seed, predictor=predictor, progress=progress
        )

    def score(self, options: Mapping[str, Any]) -> float:
        """Fit with some options and judge on validation; higher is better."""
        method, setup, seed = self.fit(options), self.setup, self.job.seed
        settings = operating_points(method, self.val, setup, seed)
        return self._area.score([roll_out(method, s, self.val, setup, seed) for s in settings])

    def tune(self, found: Mapping[str, Any] | None) -> TuningRecord:
        """Try options on validation, if that was not done before."""
        if found is None:
            tuning = make_tuning(self.setup, self.job)
            tuning.open()
            found = tune(tuning, self.score).to_dict()
        return TuningRecord.read({**found, **asdict(self._area)})

    @property
    def _area(self) -> ValidationArea:
        return ValidationArea.of(self.train, self.val, self.setup.source.headline)


def score_options(
    setup: Setup, job: Job, shared: FittedPredictor | None, options: Mapping[str, Any]
) -> float:
    """One trial of a job: fit with some options and judge on validation; higher is better."""
    train, val, _ = setup.source.split(setup.source.load(job.seed), job.seed)
    return _Learning(setup, job, train, val, shared).score(options)


def make_tuning(setup: Setup, job: Job) -> Tuning:
    method = build_method(setup, job)
    defaults = option_defaults(job.method, getattr(method, "preset", setup.preset))
    return Tuning(method, job.seed, setup.n_trials, given_options(job.options), defaults)
