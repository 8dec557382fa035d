"""Run one job: one method at one seed, from the data to its `JobRecord`.

A job depends only on its `Setup`, its method and its seed. Jobs can run in any order, in any
process, on any machine, and give the same numbers.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.detection import prevalence
from nocta.core.rollout import Rollout
from nocta.runs.details import describe_rollout
from nocta.runs.learning import FittedPredictor, Learned, Learning
from nocta.runs.operating_points import audit_points, roll_out
from nocta.runs.promise import Promise, ask
from nocta.runs.record import CohortDescription, Job, JobRecord, PointDetails
from nocta.runs.results import MEASURES, TIMES, make_row
from nocta.runs.setup import Setup
from nocta.runs.subgroups import context_bands, describe_subgroups
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
    threshold = prevalence(train.labels, train.n_classes)
    measured = _Judging(setup, job, learned, cohort, test, threshold).points()
    keys = {
        "dataset": cohort.name,
        "method": job.label,
        "preset": learned.preset,
        "availability": setup.availability,
        "seed": job.seed,
        "split": "test",
    }
    rows = []
    for setting, (entry, seconds) in zip(learned.settings, measured, strict=True):
        values = {name: getattr(entry, name) for name in MEASURES if name not in TIMES}
        times = {"fit_seconds": fit_seconds, "rollout_seconds": seconds}
        rows.append(make_row(keys, setting, **values, **times))
    return JobRecord(
        job=job,
        tuning=learned.tuning,
        rows=rows,
        details=[entry for entry, _ in measured],
        recommended=learned.recommended,
        audit=audit_points(learned.packed, learned.settings, test, setup, job.seed),
        cohort=CohortDescription.of(test, n_train=len(train), n_val=len(val)),
        versions=versions(),
        seconds=clock.perf_counter() - started + (tuning["seconds"] if tuning else 0.0),
    )


@dataclass(frozen=True)
class _Judging:
    """A fitted method meets the test subjects, at every operating point in a new process."""

    setup: Setup
    job: Job
    learned: Learned
    cohort: Cohort
    test: Cohort
    threshold: float

    def points(self) -> list[tuple[PointDetails, float]]:
        """Describe the roll-out at every operating point, with the time it took.

        Subgroups are compared at the recommended point if the method has a choice.
        """
        test, settings = self.test, self.learned.settings
        out = []
        how: dict[str, Any] = {"metric": self.setup.source.headline, "seed": self.job.seed}
        for setting in settings:
            outcome, promise = self._roll_out(setting)
            entry = describe_rollout(
                outcome, test.catalog, threshold=self.threshold, promise=promise, **how
            )
            out.append((entry, outcome.seconds))
        if len(settings) > 1 and test.catalog.context:
            shown = self.learned.recommended.index
            outcome, _ = self._roll_out(settings[shown])
            groups = describe_subgroups(outcome, test, bands=context_bands(self.cohort), **how)
            out[shown] = replace(out[shown][0], subgroups=groups), out[shown][1]
        return out

    def _roll_out(self, setting: dict[str, Any]) -> tuple[Rollout, Promise]:
        """The policy is asked what it expects before it has seen any result."""
        setup, seed = self.setup, self.job.seed
        with self.learned.policy(setting, isolated=setup.audit_subjects > 0) as policy:
            expected = ask(
                policy,
                self.test,
                budget=setting.get("budget"),
                availability=setup.availability,
                seed=seed,
            )
            outcome = roll_out(policy, setting, self.test, setup, seed)
        return outcome, Promise.of(expected, outcome)


def score_options(
    setup: Setup, job: Job, shared: FittedPredictor | None, options: Mapping[str, Any]
) -> float:
    """One trial of a job: fit with some options and judge on validation; higher is better."""
    train, val, _ = setup.source.split(setup.source.load(job.seed), job.seed)
    return Learning(setup, job, train, val, shared).try_options(options)
