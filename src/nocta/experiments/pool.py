"""Processes to run jobs on, behind the one interface of `concurrent.futures`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any


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
            max_workers=n_jobs, timeout=300, env={"OMP_NUM_THREADS": "1"}
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


def _end(executor: Any) -> None:
    """End the pool's own processes, by their number, without waiting for what they do."""
    for process in list(getattr(executor, "_processes", {}).values()):
        with suppress(OSError):
            os.kill(process.pid, signal.SIGTERM)
    executor.shutdown(wait=False)
