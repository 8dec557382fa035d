"""Run every job that is not finished yet, and survive what goes wrong.

A job that raises is noted and the rest goes on. If it has to be tuned, every trial is a task of its
own, so a comparison that was stopped continues with the next trial.
"""

from __future__ import annotations

import heapq
import time as clock
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from nocta.core.progress import progress_bar
from nocta.runs.learning import make_tuning
from nocta.runs.predictors import is_kept
from nocta.runs.record import Job
from nocta.runs.scheduler import Workers, n_processes, open_workers, run_tasks, worker_died
from nocta.runs.setup import Setup, hash_data
from nocta.runs.store import JobStore
from nocta.runs.tasks import DataCheck, Outcome, Task, run_task
from nocta.runs.tuning import Tuning, one_line

#: A task that is late is given this share of its time so far.
_OVERDUE = 0.1


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and why in one line; its `.error` file has the traceback."""

    label: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.label}, seed {self.seed}: {self.reason}"


def sweep(
    setup: Setup,
    jobs: Sequence[Job],
    store: JobStore,
    *,
    n_jobs: int | None = None,
    dask: str | None = None,
    progress: bool = False,
    on_finished: Callable[[], None] = lambda: None,
) -> list[Failure]:
    """Run what is left of `jobs` (see `compare`) and return the jobs that failed."""
    left = [job for job in jobs if not store.is_finished(job)]
    if not left:
        return []
    state = _Sweep(setup, store, _plan(setup, left, store), seconds=_known_times(jobs, store))
    if dask is not None:
        state.check = DataCheck(setup.source.resolved(), hash_data(setup.source.load(0)))
    with (
        progress_bar(
            show=progress,
            total=len(jobs),
            initial=len(jobs) - len(left),
            desc="jobs",
            bar_format="{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}{postfix}]",
        ) as bar,
        open_workers(n_processes(n_jobs, len(left)), dask) as workers,
    ):
        state.show = lambda: bar.set_postfix_str(state.status(workers.n_workers))
        for finished in state.run(workers):
            if finished:
                on_finished()
            bar.n = len(jobs) - state.n_left
            state.show()
    return state.failures


def _plan(setup: Setup, left: Sequence[Job], store: JobStore) -> list[Task]:
    """Seed by seed, so that paired results come early; the predictor before those who share it."""
    tasks: list[Task] = []
    for seed in sorted({job.seed for job in left}):
        jobs = [job for job in left if job.seed == seed]
        shared = is_kept(setup) and any(job.shares_predictor for job in jobs)
        if shared and store.predictor(seed) is None:
            tasks.append(Task(seed))
        tasks += [Task(seed, job) for job in jobs]
    return tasks


def _known_times(jobs: Sequence[Job], store: JobStore) -> dict[str, list[float]]:
    """By method, how long the jobs took that were finished before."""
    found: dict[str, list[float]] = {}
    for record in filter(None, map(store.read, jobs)):
        found.setdefault(record.job.label, []).append(record.seconds)
    return found


@dataclass
class _Sweep:
    """What is waiting, what is running, what failed, and how long things took."""

    setup: Setup
    store: JobStore
    waiting: list[Task]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    check: DataCheck | None = None
    running: dict[Future[Outcome], Task] = field(default_factory=dict)
    #: By label and seed, when the first task of a job, or of a predictor, was started.
    started: dict[tuple[str, int], float] = field(default_factory=dict)
    tunings: dict[str, Tuning] = field(default_factory=dict)
    show: Callable[[], object] = field(default=lambda: None)

    @property
    def n_left(self) -> int:
        """Jobs that are waiting or running."""
        return sum(task.job is not None for task in (*self.waiting, *self.running.values()))

    def run(self, workers: Workers) -> Iterator[bool]:
        """Run everything; yield now and then, and whether a job was finished."""

        def submit(task: Task) -> Future[Outcome]:
            # Workers in this process return only when the task has ended, so show it first.
            soon: Future[Outcome] = Future()
            self.running[soon] = task
            self.started.setdefault((task.label, task.seed), clock.monotonic())
            self.show()
            del self.running[soon]
            return workers.submit(run_task, *self._arguments(task))

        for ended in run_tasks(self._next, submit, lambda: workers.n_workers, self.running):
            yield ended is not None and self._note(ended[0], _outcome(ended[1]))

    def _arguments(self, task: Task) -> tuple[Any, ...]:
        """Everything a worker needs: it reads the data itself, and nothing else."""
        shared = tuning = None
        if task.job is not None and is_kept(self.setup) and task.job.shares_predictor:
            shared = self.store.predictor(task.seed)  # a copy for everyone
        if task.job is not None and task.options is None and self.setup.n_trials:
            tuning = self.tunings[task.job.name].to_dict()
        setup = self.setup if self.check is None else replace(self.setup, source=self.check.source)
        return setup, task, shared, tuning, self.check

    def _next(self, running: Iterable[Task]) -> Task | None:
        """The first task that can start: its predictor is fitted."""
        fitting = {task.seed for task in (*running, *self.waiting) if task.job is None}
        for task in self.waiting:
            if task.job is None or not (task.job.shares_predictor and task.seed in fitting):
                self.waiting.remove(task)
                return self._with_options(task)
        return None

    def _with_options(self, task: Task) -> Task:
        """The next trial of a job that is being tuned, or the job itself."""
        if task.job is None or not self.setup.n_trials:
            return task
        if task.job.name not in self.tunings:
            tuning = self.tunings[task.job.name] = make_tuning(self.setup, task.job)
            tuning.open(self.store.tuning(task.job, tuning.names) if tuning.names else None)
        return replace(task, options=self.tunings[task.job.name].ask())

    def _note(self, task: Task, outcome: Outcome) -> bool:
        """Keep what came of a task; say whether a job was finished."""
        if task.job is None:
            self._note_time(task, outcome.seconds)
            if outcome.reason:
                self._give_up_on(task.seed, outcome)
            else:
                self.store.save_predictor(task.seed, outcome.value)
        elif task.options is not None and self._is_tried(task.job, outcome):
            self.waiting.insert(0, Task(task.seed, task.job))
        elif outcome.reason:
            self._note_time(task, outcome.seconds)
            self._fail(task.job, outcome.reason, outcome.traceback)
        else:
            self._note_time(task, outcome.value.seconds)
            self.store.save(task.job, outcome.value)
            return True
        return False

    def _is_tried(self, job: Job, outcome: Outcome) -> bool:
        """Keep a trial; some options cannot work, but the defaults and the process must."""
        tuning = self.tunings[job.name]
        if outcome.seconds is None or (outcome.reason and not tuning.trials):
            return False
        tuning.tell(outcome.value, outcome.seconds, outcome.reason)
        return True

    def _note_time(self, task: Task, seconds: float | None) -> None:
        if seconds is not None:
            self.seconds.setdefault(task.label, []).append(seconds)

    def _fail(self, job: Job, reason: str, details: str) -> None:
        self.failures.append(Failure(job.label, job.seed, reason))
        self.store.save_error(job, details or reason)

    def _give_up_on(self, seed: int, outcome: Outcome) -> None:
        """Without the predictor of a seed, jobs that share it cannot run."""
        for task in [task for task in self.waiting if task.seed == seed]:
            if task.job is not None and task.job.shares_predictor:
                self.waiting.remove(task)
                why = f"the predictor of the seed could not be fitted ({outcome.reason})"
                self._fail(task.job, why, outcome.traceback)

    def status(self, n_workers: int) -> str:
        """What is running, and how long the rest will take."""
        now = clock.monotonic()
        running = [
            (task, now - self.started.get((task.label, task.seed), now))
            for task in self.running.values()
        ]
        left = time_left(
            [task.label for task in self.waiting],
            [(task.label, elapsed) for task, elapsed in running],
            self.seconds,
            n_workers,
        )
        titles = "; ".join(self.title(task, elapsed) for task, elapsed in running)
        return ", ".join(part for part in (left, titles) if part)

    def title(self, task: Task, elapsed: float = 0.0) -> str:
        """What, of which seed, how far and for how long."""
        tuning = self.tunings.get(task.job.name) if task.job else None
        n_done = len(tuning.trials) if tuning else 0
        details = [f"trial {n_done} of {self.setup.n_trials}"] if n_done else []
        if elapsed >= 60:
            details.append(duration(elapsed))
        name = f"{task.label} {task.seed}"
        return f"{name} ({', '.join(details)})" if details else name


def _outcome(future: Future[Outcome]) -> Outcome:
    """What came of a task, also if the worker died or refused it."""
    error = future.exception()
    if error is None:
        return future.result()
    if worker_died(error):
        return Outcome(reason="its process was killed, probably for lack of memory; try --jobs 1")
    details = "".join(traceback.format_exception(error))
    return Outcome(reason=one_line(error), traceback=details)


def time_left(
    waiting: Sequence[str],
    running: Iterable[tuple[str, float]],
    known: Mapping[str, Sequence[float]],
    n_jobs: int,
    *,
    ignored: frozenset[str] = frozenset({"predictor"}),
) -> str:
    """Say how long it will take until the last task has ended; empty until that can be estimated.

    A kind that has not ended once is assumed to take as long as the others, or as long as it has
    been running; the estimate is then a lower bound.

    Args:
        waiting: The kind of every task that has not begun, in the order in which they begin.
        running: The kind of every task that is running, and for how many seconds it has been.
        known: By kind, how many seconds the tasks took that have ended.
        n_jobs: How many run at once.
        ignored: Kinds that do not predict how long others take.
    """
    running = list(running)
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in known.items() if seconds}
    telling = [seconds for kind, seconds in means.items() if kind not in ignored]
    if not telling or not (waiting or running):
        return ""
    guesses: dict[str, float] = {}
    for kind, elapsed in [*((kind, 0.0) for kind in waiting), *running]:
        if kind not in means:
            typical = sum(telling) / len(telling)
            guesses[kind] = max(guesses.get(kind, typical), elapsed * (1 + _OVERDUE))
    expected = {**means, **guesses}
    ends = [max(expected[kind] - elapsed, _OVERDUE * elapsed) for kind, elapsed in running]
    ends += [0.0] * (n_jobs - len(ends))
    heapq.heapify(ends)
    for kind in waiting:  # each begins when the first of those before it has ended
        heapq.heapreplace(ends, ends[0] + expected[kind])
    return f"{'at least' if guesses else 'about'} {duration(max(ends))} left"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, in a few characters: 40 s, 7 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
