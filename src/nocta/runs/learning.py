"""What a job learns, in a process that never holds the test subjects.

The method is fitted in a cell (`nocta.evaluation.isolation`) that gets training and validation
subjects only. What comes back is its pickled state, which is never unpickled here: each operating
point is rolled out in a new cell. So a method cannot find the test subjects in memory, neither when
it is fitted nor later.
"""

from __future__ import annotations

import pickle
import time as clock
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from nocta.core.cohort import Cohort
from nocta.core.policy import Policy
from nocta.core.predictor import Predictor
from nocta.evaluation.isolation import Cell, IsolatedPolicy, pack
from nocta.methods.contract import Method
from nocta.methods.references import policy_at
from nocta.methods.registry import add_methods, local_methods
from nocta.runs.method_options import given_options, make_method, option_defaults
from nocta.runs.operating_points import operating_points, roll_out, with_promises
from nocta.runs.recommended import chosen_on_validation
from nocta.runs.record import Job, Recommended, TuningRecord
from nocta.runs.setup import Setup
from nocta.runs.tuning import Tuning, ValidationArea, tune


@dataclass(frozen=True)
class FittedPredictor:
    """A predictor and how long it took to fit."""

    predictor: Predictor
    seconds: float


def build_method(setup: Setup, job: Job) -> Method:
    """The method with its options, to be fitted under the rules of the comparison."""
    method = make_method(job.method, job.options, preset=setup.preset, quick=setup.quick)
    method.availability, method.results = setup.availability, setup.results
    return method


@dataclass(frozen=True)
class Learned:
    """A method that was fitted elsewhere: what a job may know of it."""

    method: bytes  # of a function that returns it; unpickled in cells only
    settings: list[dict[str, Any]]
    recommended: Recommended  # the one that is shown in detail
    preset: str
    tuning: TuningRecord | None
    seconds: float

    def packed(self, setting: Mapping[str, Any]) -> bytes:
        """What an `IsolatedPolicy` at one operating point is made of."""
        return pack(partial(_policy_of, self.method, dict(setting)))

    @contextmanager
    def policy(self, setting: Mapping[str, Any], isolated: bool = True) -> Iterator[Policy]:
        """The policy at one operating point."""
        if not isolated:
            yield _policy_of(self.method, dict(setting))
            return
        with IsolatedPolicy(self.packed(setting)) as policy:
            yield policy


@dataclass(frozen=True)
class Learning:
    """What a job may learn and choose from: train and validation subjects, never test subjects."""

    setup: Setup
    job: Job
    train: Cohort
    val: Cohort
    shared: FittedPredictor | None

    def learn(self, found: Mapping[str, Any] | None, *, progress: bool = False) -> Learned:
        """Tune the method if requested, fit it and choose its operating points.

        `found` holds finished trials, as `Tuning.to_dict` gives them.
        """
        learned: _Plain = self._elsewhere(_learn, found, progress)
        method, settings, shown, preset, trials, seconds = learned
        tuning = TuningRecord.read({**trials, **asdict(self._area)}) if trials else None
        return Learned(method, settings, Recommended(**shown), preset, tuning, seconds)

    def try_options(self, options: Mapping[str, Any]) -> float:
        """One trial: fit with some options and judge on validation; higher is better."""
        return float(self._elsewhere(_score, dict(options)))

    def _elsewhere(self, function: Any, *args: Any) -> Any:
        """Call a function of this in a cell, or here if the comparison is not audited."""
        if not self.setup.audit_subjects:
            return function(self, *args)
        with Cell() as cell:
            there = partial(_with_methods, local_methods(), function)
            return cell.run(pack(there), self, *args)

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
        points = operating_points(method, self.val, setup, seed)
        area = [roll_out(policy_at(method, s), s, self.val, setup, seed) for s in points]
        return self._area.score(area)

    @property
    def _area(self) -> ValidationArea:
        return ValidationArea.of(self.train, self.val, self.setup.source.headline)


#: A packed method, its settings, the one to show, its preset, trials and seconds.
_Plain = tuple[bytes, list[dict[str, Any]], dict[str, Any], str, Mapping[str, Any] | None, float]


def _learn(learning: Learning, found: Mapping[str, Any] | None, progress: bool) -> _Plain:
    """Everything a job needs to know of a method, as plain data."""
    setup, job = learning.setup, learning.job
    if found is None and setup.n_trials:
        tuning = make_tuning(setup, job)
        tuning.open()
        found = tune(tuning, learning.score).to_dict()
    started = clock.perf_counter()
    method = learning.fit(found["chosen"] if found else {}, progress=progress)
    seconds = clock.perf_counter() - started
    how = (learning.val, setup, job.seed)
    settings = with_promises(operating_points(method, *how), method, *how)
    shown = chosen_on_validation(method, settings, *how)
    preset = getattr(method, "preset", setup.preset)
    return pack(method), settings, asdict(shown), preset, found, seconds


def _score(learning: Learning, options: Mapping[str, Any]) -> float:
    return learning.score(options)


def _with_methods(known: Mapping[str, type[Method]], function: Any, *args: Any) -> Any:
    add_methods(known)
    return function(*args)


def _policy_of(method: bytes, setting: dict[str, Any]) -> Policy:
    fitted: Method = pickle.loads(method)
    return policy_at(fitted, setting)


def make_tuning(setup: Setup, job: Job) -> Tuning:
    method = build_method(setup, job)
    defaults = option_defaults(job.method, getattr(method, "preset", setup.preset))
    return Tuning(method, job.seed, setup.n_trials, given_options(job.options), defaults)
