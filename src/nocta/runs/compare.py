"""Compare methods: run the jobs, merge their rows, summarize."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.catalog import Catalog
from nocta.core.errors import ConfigError
from nocta.exact.curve import ExactCurve
from nocta.exact.yardstick import Yardstick
from nocta.methods.reference.protocol import PROTOCOL, protocol_plans
from nocta.methods.registry import method_names
from nocta.model.files import only_process, write_atomically
from nocta.runs.learning import build_method
from nocta.runs.optimum import known_yardstick
from nocta.runs.predictors import unfitted_predictor
from nocta.runs.record import Job, JobRecord
from nocta.runs.results import results_frame, write_results
from nocta.runs.scheduler import check_workers_know, n_processes
from nocta.runs.setup import Setup, hash_data
from nocta.runs.shares import share_of_optimum
from nocta.runs.store import JobStore
from nocta.runs.summary import summarize_results
from nocta.runs.sweep import Failure, sweep
from nocta.runs.tuning import load_optuna

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """The finished jobs of a folder, read together.

    `command` repeats it, if that is not `nocta compare`. `judged` says on which subjects, if it is
    the evaluation of one saved model.
    """

    directory: Path
    setup: Setup
    records: list[JobRecord]
    failures: list[Failure]
    command: str = ""
    judged: str = ""

    @property
    def dataset(self) -> str:
        return self.records[0].cohort.name

    @property
    def quality(self) -> str:
        """The metric to look at first."""
        return self.setup.source.headline

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order in which they were requested."""
        return list(dict.fromkeys(record.job.label for record in self.records))

    @property
    def seeds(self) -> list[int]:
        return sorted({record.job.seed for record in self.records})

    @cached_property
    def results(self) -> pd.DataFrame:
        """The rows of results.csv."""
        return results_frame(row for record in self.records for row in record.rows)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The rows of summary.csv; see `summarize_results`."""
        return summarize_results(self.results, self.methods)

    @cached_property
    def yardstick(self) -> Yardstick | None:
        """The exact curves, if they are known for these data at these prices."""
        return known_yardstick(self.setup.source)

    @property
    def optimum(self) -> ExactCurve | None:
        """The greatest accuracy at each cost, if it is known."""
        return None if self.yardstick is None else self.yardstick.optimum

    @cached_property
    def share_of_optimum(self) -> pd.DataFrame | None:
        """The rows of optimum.csv; see `nocta.runs.shares.share_of_optimum`."""
        return None if self.yardstick is None else share_of_optimum(self.results, self.yardstick)


def make_jobs(
    methods: Iterable[str],
    seeds: Iterable[int],
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """Every method at every seed; `options` are by method, those that are not the defaults."""
    seeds, options = list(seeds), options or {}
    return [Job(method, seed, options.get(method, {})) for method in methods for seed in seeds]


def compare(
    setup: Setup,
    jobs: Sequence[Job],
    directory: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    progress: bool = False,
    dask: str | None = None,
) -> Comparison:
    """Run every job that is not finished, and write the results of all jobs.

    Args:
        setup: What the jobs share.
        jobs: Methods at seeds; see `make_jobs`.
        directory: Folder of the results. A folder with finished jobs of the same setup is
            continued.
        n_jobs: Number of processes; one per core by default.
        progress: Show a progress bar with the estimated time left.
        dask: Address of a Dask scheduler whose workers run the jobs.

    Raises:
        ConfigError: The folder holds results of another setup, or there is nothing to run.
    """
    store = JobStore(Path(directory))
    jobs = list({job.name: job for job in jobs}.values())
    _check(setup, jobs)
    cohort = setup.source.load(0)
    jobs = with_protocols(cohort.catalog, jobs)
    n_left = sum(not store.is_finished(job) for job in jobs)
    if dask is not None or n_processes(n_jobs, n_left) > 1:
        dataset = setup.source.data if setup.source.schema is None else None
        check_workers_know(dataset, (job.method for job in jobs))
    for budget in setup.budgets:
        cohort.catalog.check_budget(budget)
    setup.source.split(cohort, 0)
    with only_process(store.directory):
        store.open(setup, hash_data(cohort), jobs)
        return _run(setup, jobs, store, n_jobs=n_jobs, progress=progress, dask=dask)


def _run(setup: Setup, jobs: Sequence[Job], store: JobStore, **how: Any) -> Comparison:
    """Run what is left, and write the results of all jobs."""
    labels = list(dict.fromkeys(job.label for job in jobs))

    def merge() -> None:
        rows = (row for record in store.records(labels) for row in record.rows)
        write_results(results_frame(rows), store.directory / "results.csv")

    failures = sweep(setup, jobs, store, on_finished=merge, **how)
    comparison = Comparison(store.directory, setup, store.records(labels), failures)
    if comparison.records:
        merge()
        tables = {"summary.csv": comparison.summary, "optimum.csv": comparison.share_of_optimum}
        for name, table in tables.items():
            if table is not None:
                text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
                write_atomically(comparison.directory / name, text)
    return comparison


def with_protocols(catalog: Catalog, jobs: Sequence[Job]) -> list[Job]:
    """The jobs and, at every seed, the protocols of the schema if they are not among them.

    Raises `ConfigError` for a protocol that the schema does not have.
    """
    for job in jobs:
        if job.method.partition("-")[0] == PROTOCOL and job.method not in method_names():
            protocol_plans(catalog, job.method)
    seeds = dict.fromkeys(job.seed for job in jobs)
    added = make_jobs(protocol_plans(catalog), seeds)
    there = {(job.method, job.seed) for job in jobs}
    return [*jobs, *(job for job in added if (job.method, job.seed) not in there)]


def own_predictor_notes(setup: Setup, jobs: Sequence[Job]) -> list[str]:
    """Which methods `--predictor` does not apply to; nothing if it is the default."""
    if setup.predictor == "learned":
        return []
    by_label = {job.label: job for job in jobs}
    own = [name for name, job in by_label.items() if not build_method(setup, job).shares_predictor]
    if not own:
        return []
    train = "trains its" if len(own) == 1 else "train their"
    names = " and ".join(filter(None, [", ".join(own[:-1]), own[-1]]))
    it = "it" if len(own) == 1 else "them"
    return [f"{names} {train} own predictor; --predictor does not apply to {it}."]


def _check(setup: Setup, jobs: Sequence[Job]) -> None:
    """Refuse a setup or job that cannot work before anything is run."""
    if not jobs:
        raise ConfigError("There is nothing to compare: name at least one method and one seed.")
    predictor = unfitted_predictor(setup.predictor, setup.source)
    if setup.n_trials:
        load_optuna()
    for job in {job.label: job for job in jobs}.values():
        method = build_method(setup, job)
        if predictor is not None and method.shares_predictor:
            method.check_predictor(predictor)
