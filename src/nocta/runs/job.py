"""Run one job: one method at one seed, from the data to its `JobRecord`.

A job depends only on its `Setup`, its method and its seed. Jobs can run in any order, in any
process, on any machine, and give the same numbers.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.detection import prevalence
from nocta.core.operating_points import cost_of_everything
from nocta.runs.details import describe_rollout
from nocta.runs.learning import FittedPredictor, Learning
from nocta.runs.operating_points import audit_points, roll_out
from nocta.runs.record import CohortDescription, Job, JobRecord
from nocta.runs.results import MEASURES, TIMES, make_row
from nocta.runs.setup import Setup
from nocta.runs.versions import versions


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
    trials, as `Tuning.to_dict` gives them; without them the method is tuned here. If the setup
    audits, the method runs in processes that never hold the test subjects.
    """
    started = clock.perf_counter()
    cohort = setup.source.load(job.seed)
    train, val, test = setup.source.split(cohort, job.seed)
    learned = Learning(setup, job, train, val, shared).learn(tuning, progress=progress)
    fit_seconds = learned.seconds + (shared.seconds if shared is not None else 0.0)
    keys = {
        "dataset": cohort.name,
        "method": job.label,
        "preset": learned.preset,
        "availability": setup.availability,
        "seed": job.seed,
        "split": "test",
    }
    threshold = prevalence(train.labels, train.n_classes)
    rows, details = [], []
    for setting in learned.settings:
        with learned.policy(setting, isolated=setup.audit_subjects > 0) as policy:
            outcome = roll_out(policy, setting, test, setup, job.seed)
        entry = describe_rollout(
            outcome,
            test.catalog,
            metric=setup.source.headline,
            seed=job.seed,
            threshold=threshold,
        )
        measured = {name: getattr(entry, name) for name in MEASURES if name not in TIMES}
        times = {"fit_seconds": fit_seconds, "rollout_seconds": outcome.seconds}
        rows.append(make_row(keys, setting, **measured, **times))
        details.append(entry)
    return JobRecord(
        job=job,
        tuning=learned.tuning,
        rows=rows,
        details=details,
        audit=audit_points(learned.packed, learned.settings, test, setup, job.seed),
        cohort=_describe_cohort(cohort, train, val, test),
        versions=versions(),
        seconds=clock.perf_counter() - started + (tuning["seconds"] if tuning else 0.0),
    )


def score_options(
    setup: Setup, job: Job, shared: FittedPredictor | None, options: Mapping[str, Any]
) -> float:
    """One trial of a job: fit with some options and judge on validation; higher is better."""
    train, val, _ = setup.source.split(setup.source.load(job.seed), job.seed)
    return Learning(setup, job, train, val, shared).try_options(options)


def _describe_cohort(cohort: Cohort, train: Cohort, val: Cohort, test: Cohort) -> CohortDescription:
    return CohortDescription(
        name=cohort.name,
        classes=list(cohort.classes),
        catalog=cohort.catalog,
        slot_times=list(cohort.slot_times or map(float, range(cohort.n_times))),
        time_unit=cohort.time_unit,
        n_train=len(train),
        n_val=len(val),
        n_test=len(test),
        cost_of_everything=cost_of_everything(test),
    )
