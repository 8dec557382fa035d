"""Processes to run jobs on, behind the one interface of `concurrent.futures`.

`run_tasks` is what everybody runs tasks with, here or on a cluster, and survives one that dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Seconds between two looks at what is running.
_TICK = 1.0


class InlineExecutor(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn`; an exception waits in the future, an interrupt does not."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def use_one_thread() -> None:
    """Let this process compute on one thread: small networks are fastest so, and numbers the same.

    Whether torch is loaded already or will be; loading it takes seconds, so it is not done here.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@contextmanager
def process_pool(n_jobs: int) -> Iterator[Callable[[], Executor]]:
    """A function that gives the running pool; after a crash it gives a new one.

    Each process computes on one thread. When the block is left by an exception, an interrupt
    by the user among them, the processes are ended at once.

    Args:
        n_jobs: Number of processes; with one, this process does the work itself.
    """
    if n_jobs == 1:
        inline = InlineExecutor()
        yield lambda: inline
        return
    from joblib.externals.loky import get_reusable_executor

    latest: list[Any] = []

    def current() -> Executor:
        executor: Executor = get_reusable_executor(
            max_workers=n_jobs,
            timeout=300,
            env={"OMP_NUM_THREADS": "1"},
            initializer=_share_no_bars,
        )
        latest[:] = [executor]
        return executor

    try:
        yield current
    except BaseException:
        for executor in latest:
            _end(executor)
        raise
    for executor in latest:
        executor.shutdown(wait=True)


def run_tasks(
    next_task: Callable[[Iterable[T]], T | None],
    submit: Callable[[T], Future[R]],
    n_at_once: Callable[[], int],
    running: dict[Future[R], T],
) -> Iterator[tuple[T, Future[R]] | None]:
    """Run tasks, some at a time, and yield each with its future when it has ended.

    A process that dies can take its neighbours along, so all of theirs are run once more, one at
    a time. A future with the error of a dead process is therefore that of the guilty task.

    Args:
        next_task: The next task that can start beside those that are running, if there is one.
        submit: Starts a task.
        n_at_once: How many may be running now.
        running: Holds what is running, for whoever wants to look.

    Yields:
        Ended tasks, those that went well first; and nothing now and then while none ends.
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
            if is_death(future.exception()):
                suspects.append(task)
            else:
                yield task, future
        while suspects and not running:
            task = suspects.pop(0)
            alone = submit(task)
            wait([alone])
            yield task, alone


def is_death(error: BaseException | None) -> bool:
    """Whether an error says that the process, or the worker of a cluster, is gone."""
    dask = sys.modules.get("distributed")
    return isinstance(error, BrokenExecutor) or (
        dask is not None and isinstance(error, dask.KilledWorker)
    )


def _share_no_bars() -> None:
    """Let bars in this process be locked by its threads alone.

    The lock between processes, which `tqdm` makes otherwise, is a semaphore that nobody removes
    when the process is killed, and Python warns of it.
    """
    from tqdm.std import tqdm

    tqdm.set_lock(threading.RLock())


def _end(executor: Any) -> None:
    """End the pool's own processes, by their number, without waiting for what they do."""
    for process in list(getattr(executor, "_processes", {}).values()):
        with suppress(OSError):
            os.kill(process.pid, signal.SIGTERM)
    executor.shutdown(wait=False)
