"""The workers of a Dask cluster, behind the interface of `nocta.runs.scheduler`.

One task at a time runs in a worker's process, on one thread, however the worker was started:
training uses the process's random stream, and two tasks at once would mix theirs.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from nocta.core.errors import ConfigError, MissingExtraError
from nocta.runs.scheduler import use_one_thread
from nocta.runs.versions import all_versions

R = TypeVar("R")
_ALONE = threading.Lock()


class DaskWorkers:
    """Workers of a running cluster; one with other `versions` than here refuses its task."""

    n_ahead = 1

    def __init__(self, client: Any, versions: dict[str, str]) -> None:
        self.client = client
        self.versions = versions
        self._executor = client.get_executor(pure=False)

    @property
    def n_workers(self) -> int:
        """How many workers there are now; at least 1, for one may join again."""
        return max(len(self.client.scheduler_info(n_workers=-1)["workers"]), 1)

    def submit(self, function: Callable[..., R], *args: Any) -> Future[R]:
        """Run a function on a worker; if the worker dies, another one runs it again."""
        future: Future[R] = self._executor.submit(one_at_a_time, self.versions, function, *args)
        return future


@contextmanager
def connect(
    address: str, answer_seconds: float = 15.0, worker_seconds: float = 60.0
) -> Iterator[DaskWorkers]:
    """Use the cluster whose scheduler has this address, for example `tcp://10.0.0.1:8786`.

    The scheduler has to answer, and then a first worker to join, within these times.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("A cluster needs Dask: pip install 'nocta[dask]'.") from None
    if not address.rpartition(":")[2].isdecimal():
        raise ConfigError(
            f"'{address}' is not the address of a Dask scheduler; expected a host and a port, "
            f"such as tcp://10.0.0.1:8786."
        )
    try:
        client = Client(address, timeout=answer_seconds, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with `dask scheduler` "
            f"and workers with `dask worker {address}`, and give the address it prints."
        ) from None
    try:
        _wait_for_a_worker(client, address, worker_seconds)
        here = all_versions()
        _check_versions(client, here)
        yield DaskWorkers(client, here)
    finally:
        client.close()  # type: ignore[no-untyped-call]


def _wait_for_a_worker(client: Any, address: str, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        raise ConfigError(
            f"The Dask scheduler at '{address}' has had no worker for {seconds:g} s. Start some "
            f"with `dask worker {address}`."
        ) from None


def _check_versions(client: Any, here: dict[str, str]) -> None:
    """Refuse workers that would give other numbers before anything is sent to them."""
    wrong = []
    for worker, found in client.run(all_versions, on_error="return").items():
        if isinstance(found, BaseException):
            wrong.append(f"{worker}: {type(found).__name__}: {found}")
        else:
            wrong += _differences(worker, found, here)
    _refuse(wrong)


def _differences(worker: str, found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [
        f"{worker} has {name} {found.get(name)}; this command runs with {wanted[name]}"
        for name in wanted
        if found.get(name) != wanted[name]
    ]


def _refuse(wrong: Sequence[str]) -> None:
    if wrong:
        raise ConfigError(
            f"Workers have different package versions: {'; '.join(wrong[:4])}. Install the same "
            f"versions everywhere."
        )


def one_at_a_time(versions: dict[str, str], function: Callable[..., R], *args: Any) -> R:
    """On a worker: call a function while nothing else of ours runs in this process.

    The worker may have joined after the others were checked, so its versions are checked here.
    """
    _refuse(_differences(f"'{platform.node()}'", all_versions(), versions))
    with _ALONE:
        use_one_thread()
        return function(*args)
