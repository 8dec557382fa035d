"""Compare methods: run the jobs, merge their rows, summarize."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nocta.core.errors import ConfigError
from nocta.exact.optimum import OptimalFrontier
from nocta.runs.files import write_atomically
from nocta.runs.job import Job, build_method
from nocta.runs.optimum import shipped_optimum
from nocta.runs.option_search import load_optuna
from nocta.runs.results import results_frame, write_results
from nocta.runs.setup import Setup, data_fingerprint
from nocta.runs.shared import unfitted_predictor
from nocta.runs.store import JobStore
from nocta.runs.summary import headline_metric, share_of_optimum, summarize_results
from nocta.runs.sweep import Failure, sweep

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """The finished jobs of a folder, read together.

    Args:
        directory: Where everything lies.
        setup: What the jobs have in common.
        records: The finished jobs, as `run_job` returned them.
        failures: The jobs that did not finish.
        command: What repeats it, where that is not `nocta compare`.
    """

    directory: Path
    setup: Setup
    records: list[dict[str, Any]]
    failures: list[Failure]
    command: str = ""

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        name: str = self.records[0]["cohort"]["name"]
        return name

    @property
    def quality(self) -> str:
        """The metric to look at first: accuracy where the paper uses it, else AP."""
        return headline_metric(self.dataset)

    @property
    def methods(self) -> list[str]:
        """Labels of the methods, in the order in which they were asked for."""
        return list(dict.fromkeys(record["job"]["label"] for record in self.records))

    @property
    def seeds(self) -> list[int]:
        """Every seed of any finished job."""
        return sorted({record["job"]["seed"] for record in self.records})

    @cached_property
    def results(self) -> pd.DataFrame:
        """The rows of results.csv."""
        return results_frame(row for record in self.records for row in record["rows"])

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The rows of summary.csv; see `summarize_results`."""
        return summarize_results(self.results, self.methods)

    @cached_property
    def optimum(self) -> OptimalFrontier | None:
        """The exact frontier, where there is one for these data at these prices."""
        return shipped_optimum(self.dataset) if self.setup.source.is_as_published else None

    @cached_property
    def share_of_optimum(self) -> pd.DataFrame | None:
        """The rows of optimum.csv; see `nocta.runs.summary.share_of_optimum`."""
        return None if self.optimum is None else share_of_optimum(self.results, self.optimum)


def make_jobs(
    methods: Iterable[str],
    seeds: Iterable[int],
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """Every method at every seed.

    Args:
        methods: Names.
        seeds: The same for every method.
        options: By method, options that are not the default.
    """
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
    """Run every job that is not finished, and write what came of all of them.

    Args:
        setup: What the jobs have in common.
        jobs: Methods at seeds; see `make_jobs`.
        directory: Where results go. A folder with finished jobs of the same setup is continued.
        n_jobs: Processes; one per core by default.
        progress: Show a bar with an estimate of the time left.
        dask: Address of a Dask scheduler, whose workers then run the jobs.

    Returns:
        The comparison; `failures` lists what did not finish.

    Raises:
        ConfigError: The folder holds results of another setup, or nothing could be run.
    """
    store = JobStore(Path(directory))
    jobs = list({job.name: job for job in jobs}.values())
    _check(setup, jobs)
    cohort = setup.source.load(0)
    setup.source.split(cohort, 0)
    store.open(setup, data_fingerprint(cohort), jobs)
    labels = list(dict.fromkeys(job.label for job in jobs))

    def merge() -> None:
        rows = (row for record in store.records(labels) for row in record["rows"])
        write_results(results_frame(rows), store.directory / "results.csv")

    if dask is None:
        failures = sweep(setup, jobs, store, n_jobs=n_jobs, progress=progress, on_finished=merge)
    else:
        from nocta.runs.cluster import sweep_on_cluster

        failures = sweep_on_cluster(setup, jobs, store, dask, progress=progress, on_finished=merge)
    comparison = Comparison(store.directory, setup, store.records(labels), failures)
    if comparison.records:
        merge()
        _write_tables(comparison)
    return comparison


def _check(setup: Setup, jobs: Sequence[Job]) -> None:
    """Report what cannot work before anything is run."""
    if not jobs:
        raise ConfigError("There is nothing to compare: name at least one method and one seed.")
    predictor = unfitted_predictor(setup.predictor, setup.source.data)
    if setup.n_trials:
        load_optuna()
    for job in {job.label: job for job in jobs}.values():
        method = build_method(setup, job)
        if predictor is not None and job.shares_predictor:
            method.check_predictor(predictor)


def _write_tables(comparison: Comparison) -> None:
    tables = {"summary.csv": comparison.summary, "optimum.csv": comparison.share_of_optimum}
    for name, table in tables.items():
        if table is not None:
            text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            write_atomically(comparison.directory / name, text)
