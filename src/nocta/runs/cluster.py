"""Run jobs on a Dask cluster: the same work on other machines, to the same numbers.

Workers read the data where they are and send back what they found; this process alone writes the
folder of results. A task whose worker dies is run again by another one. One task at a time runs in
a worker's process, on one thread, however the worker was started: training uses the process's
random stream, and two at once would mix theirs.
"""

from __future__ import annotations

import platform
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nocta.core.errors import ConfigError, MissingExtraError
from nocta.core.progress import progress_bar
from nocta.runs.job import FittedPredictor, Job, run_job
from nocta.runs.pool import use_one_thread
from nocta.runs.record import JobRecord
from nocta.runs.setup import DataSource, Setup, data_fingerprint
from nocta.runs.shared import (
    fit_timed,
    is_kept,
    keep_predictor,
    kept_predictor,
    shared_predictor,
)
from nocta.runs.store import JobStore
from nocta.runs.sweep import Failure
from nocta.runs.versions import all_versions

_ANSWER = "15s"
#: Seconds that workers have to join.
_PATIENCE = 60.0
_ALONE = threading.Lock()


@dataclass(frozen=True)
class Cluster:
    """A running Dask cluster.

    Args:
        client: Of `dask.distributed`.
        executor: The same behind the interface of `concurrent.futures`.
        versions: Those of this process; a worker with others refuses its task.
    """

    client: Any
    executor: Executor
    versions: dict[str, str]

    @property
    def n_workers(self) -> int:
        """How many workers there are now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function on a worker; gives a Dask future, which may be an argument of others."""
        return self.client.submit(one_at_a_time, self.versions, function, *args, pure=False)


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """A cluster that is running at this address.

    Args:
        address: Of its scheduler, for example `tcp://10.0.0.1:8786`.

    Raises:
        ConfigError: Nobody answers there, it has no workers, or they have other versions.
        MissingExtraError: Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("A cluster needs Dask: pip install 'nocta[dask]'.") from None
    if not address.rpartition(":")[2].isdecimal():
        raise ConfigError(
            f"'{address}' is no address of a Dask scheduler; it has a port, as in "
            f"tcp://10.0.0.1:8786."
        )
    try:
        client = Client(address, timeout=_ANSWER, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with `dask scheduler` "
            f"and workers with `dask worker {address}`, and give the address it prints."
        ) from None
    try:
        _wait_for_a_worker(client, address)
        here = all_versions()
        _check_versions(client, here)
        yield Cluster(client, _OneAtATime(client, here), here)
    finally:
        client.close()  # type: ignore[no-untyped-call]


def _wait_for_a_worker(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise ConfigError(
            f"The Dask scheduler at '{address}' has had no worker for {_PATIENCE:g} s. Start some "
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
        f"{worker} has {name} {found.get(name)}, where the command was given it is {wanted[name]}"
        for name in wanted
        if found.get(name) != wanted[name]
    ]


def _refuse(wrong: Sequence[str]) -> None:
    if wrong:
        raise ConfigError(
            f"Workers would give other numbers: {'; '.join(wrong[:4])}. Install the same versions "
            f"everywhere."
        )


def one_at_a_time(versions: dict[str, str], function: Callable[..., Any], *args: Any) -> Any:
    """On a worker: call a function while nothing else of ours runs in this process.

    Args:
        versions: That it has to have; it may have joined after the others were looked at.
        function: What to call.
        args: Its arguments.
    """
    _refuse(_differences(f"'{platform.node()}'", all_versions(), versions))
    with _ALONE:
        use_one_thread()
        return function(*args)


class _OneAtATime(Executor):
    """Dask behind the interface of `concurrent.futures`."""

    def __init__(self, client: Any, versions: dict[str, str]) -> None:
        self._executor = client.get_executor(pure=False)
        self._versions = versions

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(
            one_at_a_time, self._versions, fn, *args, **kwargs
        )
        return future


# -- comparisons ------------------------------------------------------------------------------


def sweep_on_cluster(
    setup: Setup,
    jobs: Sequence[Job],
    store: JobStore,
    address: str,
    *,
    progress: bool = False,
    on_finished: Callable[[], None] | None = None,
) -> list[Failure]:
    """Run what is left of `jobs` on a cluster; see `nocta.runs.sweep.sweep`.

    The predictor of a seed is a task as well, and goes from its worker to those of the jobs that
    need it.
    """
    left = [job for job in jobs if not store.is_finished(job)]
    if not left:
        return []
    failures = []
    with (
        connect(address) as cluster,
        progress_bar(
            total=len(jobs), initial=len(jobs) - len(left), desc="jobs", show=progress
        ) as bar,
    ):
        for job, report in _reports(cluster, setup, left, store):
            bar.update()
            if report.record is not None:
                store.save(job, report.record)
                if on_finished is not None:
                    on_finished()
                continue
            failures.append(Failure(job.label, job.seed, report.reason))
            store.save_error(job, report.details)
    return failures


@dataclass(frozen=True)
class Report:
    """What came of a job: its record, or why there is none."""

    record: JobRecord | None
    reason: str = ""
    details: str = ""

    @classmethod
    def of(cls, error: BaseException, details: str) -> Report:
        """Of a job that failed."""
        return cls(None, " ".join(f"{type(error).__name__}: {error}".split()), details)


def _reports(
    cluster: Cluster, setup: Setup, left: Sequence[Job], store: JobStore
) -> Iterator[tuple[Job, Report]]:
    """Submit everything; yield as jobs end, and keep predictors as they are fitted."""
    from distributed import as_completed

    check = DataCheck(_absolute(setup.source), data_fingerprint(setup.source.load(0)))
    there = replace(setup, source=check.source)
    seeds = {job.seed for job in left if job.shares_predictor} if is_kept(setup) else set()
    predictors, known = {}, set()
    for seed in sorted(seeds):
        kept = kept_predictor(seed, store.jobs)
        known |= {seed} if kept is not None else set()
        predictors[seed] = cluster.submit(_predictor, there, seed, check, kept)
    flying = {}
    for job in sorted(left, key=lambda job: job.seed):
        shared = predictors[job.seed] if job.shares_predictor and seeds else None
        flying[cluster.submit(_job, there, job, check, shared)] = job
    waiting = as_completed(  # type: ignore[no-untyped-call]
        [*predictors.values(), *flying], loop=cluster.client.loop
    )
    fitted = {future: seed for seed, future in predictors.items()}
    for future in waiting:
        if future in fitted:
            if future.status == "finished" and fitted[future] not in known:
                keep_predictor(future.result(), fitted[future], store.jobs)
            continue
        yield flying[future], _outcome(future)


def _outcome(future: Any) -> Report:
    """The report of a job, whatever happened to it."""
    from distributed import KilledWorker

    try:
        report: Report = future.result()
        return report
    except KilledWorker:
        reason = "its worker was killed again and again, probably for lack of memory"
        return Report(None, reason, reason)
    except Exception as error:  # of its predictor, of the cluster: the other jobs go on
        return Report.of(error, "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class DataCheck:
    """The data as they are here, to be found the same where a job runs."""

    source: DataSource
    fingerprint: str

    def __call__(self) -> None:
        """Raise unless this machine reads the same data."""
        if _fingerprint(self.source, self.source.stamp()) != self.fingerprint:
            raise ConfigError(
                f"'{self.source.data}' holds other data on the worker than where the comparison "
                f"was started. Copy the file there, or use a folder that both reach."
            )


@lru_cache(maxsize=4)
def _fingerprint(source: DataSource, stamp: tuple[Any, ...]) -> str:
    return data_fingerprint(source.load(0))


def _predictor(
    setup: Setup, seed: int, check: DataCheck, kept: FittedPredictor | None
) -> FittedPredictor:
    """On a worker: the predictor of a seed."""
    if kept is not None:
        return kept
    check()
    return fit_timed(setup, seed)


def _job(setup: Setup, job: Job, check: DataCheck, shared: FittedPredictor | None) -> Report:
    """On a worker: run one job."""
    try:
        check()
        if shared is None and job.shares_predictor:
            shared = shared_predictor(setup, job.seed, Path())  # nothing to fit, nothing kept
        return Report(run_job(setup, job, shared))
    except Exception as error:
        return Report.of(error, traceback.format_exc())


def _absolute(source: DataSource) -> DataSource:
    """The same files by names that do not depend on where a process was started."""

    def full(path: str | None) -> str | None:
        return None if path is None else str(Path(path).resolve())

    data = full(source.data) if source.schema is not None else source.data
    return replace(
        source, data=data or source.data, schema=full(source.schema), path=full(source.path)
    )
