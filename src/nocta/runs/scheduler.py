"""Run tasks on this process, on processes of this machine, or on the workers of a Dask cluster.

Workers return what they computed; the process that started them alone writes files. `run_tasks`
drives all three and survives a worker that dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from nocta.core.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")

#: Seconds between two updates of the progress bar.
_TICK = 1.0


class Workers(Protocol):
    """Where tasks run."""

    #: Short tasks that may wait at each worker while it computes another.
    n_ahead: int

    @property
    def n_workers(self) -> int:
        """How many workers there are now."""
        ...

    def submit(self, function: Callable[..., R], *args: Any) -> Future[R]: ...


class ThisProcess:
    """Runs every task at once, in this process."""

    n_workers = 1
    n_ahead = 0

    def submit(self, function: Callable[..., R], *args: Any) -> Future[R]:
        """Call the function; an exception waits in the future, an interrupt does not."""
        future: Future[R] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes:
    """Processes of this machine, each computing on one thread; replaced after a crash."""

    n_ahead = 1

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.executor: Any = None

    def submit(self, function: Callable[..., R], *args: Any) -> Future[R]:
        from joblib.externals.loky import get_reusable_executor

        self.executor = get_reusable_executor(
            max_workers=self.n_workers,
            timeout=300,
            env={"OMP_NUM_THREADS": "1"},
            initializer=_prepare_worker,
            initargs=(os.getpid(),),
        )
        future: Future[R] = self.executor.submit(function, *args)
        return future

    def end(self) -> None:
        """End the processes at once, whatever they are doing."""
        for process in list(getattr(self.executor, "_processes", {}).values()):
            with suppress(OSError):
                os.kill(process.pid, signal.SIGTERM)
        if self.executor is not None:
            self.executor.shutdown(wait=False)


@contextmanager
def open_workers(n_jobs: int, dask: str | None = None) -> Iterator[Workers]:
    """Start workers, and end them at the end of the block, at once if an exception ends it.

    With one job this process does the work itself. `dask` is the address of a scheduler whose
    workers are used instead.
    """
    if dask is not None:
        from nocta.runs.cluster import connect

        with connect(dask) as cluster:
            yield cluster
    elif n_jobs == 1:
        yield ThisProcess()
    else:
        processes = Processes(n_jobs)
        try:
            yield processes
        except BaseException:
            processes.end()
            raise
        if processes.executor is not None:
            processes.executor.shutdown(wait=True)


def n_processes(asked: int | None, n_tasks: int) -> int:
    """How many processes to start: as many as asked for or one per core, at most one per task."""
    return max(1, min(asked or os.cpu_count() or 1, n_tasks))


def run_tasks(
    next_task: Callable[[Iterable[T]], T | None],
    submit: Callable[[T], Future[R]],
    n_at_once: Callable[[], int],
    running: dict[Future[R], T],
) -> Iterator[tuple[T, Future[R]] | None]:
    """Run tasks and yield each with its future when it has ended, and `None` in idle seconds.

    A process that dies can break those beside it, so all tasks that ended this way are run once
    more, one at a time. A future that holds such an error is therefore that of the task to blame.
    `next_task` gets what is running and returns a task that can start beside it, if there is one;
    `n_at_once` says how many may be running now.
    """
    suspects: list[T] = []
    while True:
        while not suspects and len(running) < n_at_once():
            task = next_task(running.values())
            if task is None:
                break
            running[submit(task)] = task
        if not running:
            return
        done, _ = wait(running, timeout=_TICK, return_when=FIRST_COMPLETED)
        if not done:
            yield None
        ended = [future for future in running if future in done]
        for future in sorted(ended, key=lambda future: future.exception() is not None):
            task = running.pop(future)
            if worker_died(future.exception()):
                suspects.append(task)
            else:
                yield task, future
        while suspects and not running:
            task = suspects.pop(0)
            alone = submit(task)
            wait([alone])
            yield task, alone


def worker_died(error: BaseException | None) -> bool:
    """Whether an error says that the process, or the worker of a cluster, is gone."""
    dask = sys.modules.get("distributed")
    return isinstance(error, BrokenExecutor) or (
        dask is not None and isinstance(error, dask.KilledWorker)
    )


def use_one_thread() -> None:
    """Let this process compute on one thread: fastest for small networks, and reproducible."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch = sys.modules.get("torch")  # importing it takes seconds
    if torch is not None:
        torch.set_num_threads(1)


def check_workers_know(dataset: str | None, methods: Iterable[str]) -> None:
    """Refuse names that exist in this process only; `dataset` is `None` for a table."""
    from nocta import datasets
    from nocta.methods import registry

    local = [(name, "nocta.methods") for name in methods if registry.is_local(name)]
    if dataset is not None and datasets.is_local(dataset):
        local.append((dataset, "nocta.datasets"))
    for name, group in local:
        raise ConfigError(
            f"'{name}' is registered in this process only, so other processes do not know it. "
            f"Install it as an entry point `{group}`, or use --jobs 1."
        )


def _prepare_worker(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _share_no_bars()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(_TICK)
    os._exit(1)


def _share_no_bars() -> None:
    """Keep `tqdm` from making a semaphore that nobody removes if the process is killed."""
    from tqdm.std import tqdm

    tqdm.set_lock(threading.RLock())
