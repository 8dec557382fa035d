"""Run every job that is not finished yet, on several processes, and survive what goes wrong.

At most `n_jobs` jobs are in flight. A job that raises is noted and the rest goes on; a job whose
process dies (out of memory, say) takes its neighbours' processes with it, so those are run again,
one at a time, until the guilty one is known.
"""

from __future__ import annotations

import os
import time as clock
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nocta.core.progress import progress_bar
from nocta.runs.job import Job, run_job
from nocta.runs.pool import is_death, process_pool, run_tasks, use_one_thread
from nocta.runs.setup import Setup
from nocta.runs.shared import is_kept, shared_predictor
from nocta.runs.store import JobStore
from nocta.runs.time_left import duration, time_left
from nocta.runs.tuning import count_trials


@dataclass(frozen=True)
class Task:
    """A unit of work for one process: fit the shared predictor of a seed, or run a job."""

    kind: Literal["predictor", "job"]
    seed: int
    job: Job | None = None

    @property
    def label(self) -> str:
        """What it is, whatever the seed."""
        return self.job.label if self.job else "predictor"

    def title(self, setup: Setup, store: JobStore, elapsed: float = 0.0) -> str:
        """What, of which seed, for how long and how far, for the progress bar."""
        name = f"{self.label} {self.seed}"
        n_done = count_trials(store.trials(self.job)) if self.job and setup.n_trials else 0
        details = [f"trial {n_done} of {setup.n_trials}"] if n_done else []
        if elapsed >= 60:
            details.append(duration(elapsed))
        return f"{name} ({', '.join(details)})" if details else name


@dataclass(frozen=True)
class Failure:
    """A job that did not finish, and why in one line; its `.error` file has the traceback."""

    label: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.label}, seed {self.seed}: {self.reason}"


@dataclass(frozen=True)
class _Outcome:
    task: Task
    seconds: float | None  # unknown of a process that was killed
    reason: str = ""
    traceback: str = ""


def sweep(
    setup: Setup,
    jobs: Sequence[Job],
    store: JobStore,
    *,
    n_jobs: int | None = None,
    progress: bool = False,
    on_finished: Callable[[], None] | None = None,
) -> list[Failure]:
    """Run what is left of `jobs`.

    Args:
        setup: What the jobs have in common.
        jobs: All jobs of the comparison; finished ones are left alone.
        store: Where finished jobs are kept.
        n_jobs: Processes; one per core by default. With one, jobs run in this process.
        progress: Show a bar with an estimate of the time left.
        on_finished: Called after every job that finished well.

    Returns:
        The jobs that failed.
    """
    left = [job for job in jobs if not store.is_finished(job)]
    if not left:
        return []
    n_jobs = max(1, min(n_jobs or os.cpu_count() or 1, len(left)))
    state = _Sweep(setup, store, _plan(setup, left), progress, seconds=_known_times(jobs, store))
    with progress_bar(
        show=progress,
        total=len(jobs),
        initial=len(jobs) - len(left),
        desc="jobs",
        bar_format="{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}{postfix}]",
    ) as bar:
        state.on_start = lambda: bar.set_postfix_str(state.standing(n_jobs))
        with process_pool(n_jobs) as pool:
            for outcome in state.outcomes(pool, n_jobs):
                if outcome is None:
                    bar.set_postfix_str(state.standing(n_jobs))
                    continue
                if outcome.task.job is not None and not outcome.reason and on_finished is not None:
                    on_finished()
                bar.n = len(jobs) - state.n_left
                bar.set_postfix_str(state.standing(n_jobs))  # draws both
    return state.failures


def _plan(setup: Setup, left: Sequence[Job]) -> list[Task]:
    """Seed by seed, so that paired results come early; the predictor before those who share it."""
    tasks: list[Task] = []
    for seed in sorted({job.seed for job in left}):
        jobs = [job for job in left if job.seed == seed]
        if is_kept(setup) and any(job.shares_predictor for job in jobs):
            tasks.append(Task("predictor", seed))
        tasks += [Task("job", seed, job) for job in jobs]
    return tasks


def _known_times(jobs: Sequence[Job], store: JobStore) -> dict[str, list[float]]:
    """By method, how long the jobs took that were finished before."""
    found: dict[str, list[float]] = {}
    for job in jobs:
        if store.is_finished(job):
            found.setdefault(job.label, []).append(store.read(job).seconds)
    return found


@dataclass
class _Sweep:
    """What is waiting, what failed, how long things took."""

    setup: Setup
    store: JobStore
    waiting: list[Task]
    progress: bool = False
    failures: list[Failure] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    flying: dict[Future[_Outcome], Task] = field(default_factory=dict)
    started: dict[tuple[str, int], float] = field(default_factory=dict)
    on_start: Callable[[], object] = field(default=lambda: None)

    @property
    def n_left(self) -> int:
        """Jobs that are waiting or running."""
        return sum(task.job is not None for task in (*self.waiting, *self.flying.values()))

    def outcomes(self, pool: Callable[[], Executor], n_jobs: int) -> Iterator[_Outcome | None]:
        """Run everything; yield as things end, and nothing now and then while they run."""
        # With one process nobody watches the trials from outside.
        show = self.progress and n_jobs == 1

        def submit(task: Task) -> Future[_Outcome]:
            # This process may do the task itself and return only when it has ended.
            soon: Future[_Outcome] = Future()
            self.flying[soon] = task
            self.started[task.label, task.seed] = clock.monotonic()
            self.on_start()
            del self.flying[soon]
            return pool().submit(run_task, self.setup, task, self.store.directory, show)

        for ended in run_tasks(self._next, submit, lambda: n_jobs, self.flying):
            yield None if ended is None else self._note(_outcome(*ended))

    def _next(self, flying: Iterable[Task]) -> Task | None:
        """The first task that can start: its predictor is not still being fitted."""
        fitting = {task.seed for task in (*flying, *self.waiting) if task.kind == "predictor"}
        for task in self.waiting:
            if task.job is None or not (task.job.shares_predictor and task.seed in fitting):
                self.waiting.remove(task)
                return task
        return None

    def _note(self, outcome: _Outcome) -> _Outcome:
        task = outcome.task
        if outcome.seconds is not None:
            self.seconds.setdefault(task.label, []).append(outcome.seconds)
        if outcome.reason and task.job is not None:
            self.failures.append(Failure(task.job.label, task.seed, outcome.reason))
        elif outcome.reason:
            self._give_up_on(task.seed, outcome)
        return outcome

    def _give_up_on(self, seed: int, outcome: _Outcome) -> None:
        """Without its predictor, a seed's jobs that share it cannot run."""
        for task in [t for t in self.waiting if t.job is not None and t.seed == seed]:
            assert task.job is not None
            if task.job.shares_predictor:
                self.waiting.remove(task)
                why = f"the predictor of the seed could not be fitted ({outcome.reason})"
                self.failures.append(Failure(task.job.label, seed, why))
                if outcome.traceback:
                    self.store.save_error(task.job, outcome.traceback)

    def standing(self, n_jobs: int) -> str:
        """What is running, and for how long there is work."""
        now = clock.monotonic()
        running = [
            (task, now - self.started.get((task.label, task.seed), now))
            for task in self.flying.values()
        ]
        left = time_left(
            [task.label for task in self.waiting],
            [(task.label, elapsed) for task, elapsed in running],
            self.seconds,
            n_jobs,
        )
        titles = "; ".join(task.title(self.setup, self.store, elapsed) for task, elapsed in running)
        return ", ".join(part for part in (left, titles) if part)


def _outcome(task: Task, future: Future[_Outcome]) -> _Outcome:
    """What came of a task; `run_task` raises nothing, but its process can die."""
    if is_death(future.exception()):
        reason = "its process was killed, probably for lack of memory; try --jobs 1"
        return _Outcome(task, None, reason)
    return future.result()


def run_task(setup: Setup, task: Task, directory: Path, show_trials: bool = False) -> _Outcome:
    """Do one task in this process and keep what comes of it; never raises an `Exception`."""
    use_one_thread()
    store = JobStore(directory)
    started = clock.perf_counter()
    reason = details = ""
    try:
        _do(setup, task, store, show_trials)
    except Exception as error:
        kind = type(error).__name__
        reason, details = " ".join(f"{kind}: {error}".split()), traceback.format_exc()
        if task.job is not None:
            store.save_error(task.job, details)
    return _Outcome(task, clock.perf_counter() - started, reason, details)


def _do(setup: Setup, task: Task, store: JobStore, show_trials: bool) -> None:
    if task.job is None:
        shared_predictor(setup, task.seed, store.jobs)
        return
    needs = task.job.shares_predictor
    shared = shared_predictor(setup, task.seed, store.jobs) if needs else None
    trials = store.trials(task.job)
    store.save(task.job, run_job(setup, task.job, shared, trials=trials, show_trials=show_trials))
