"""Comparisons and scores on a real Dask cluster equal those made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dask_cluster import RealCluster
from test_score_run import FEW, score_inputs

from nocta.exceptions import ConfigError
from nocta.experiments import cluster
from nocta.experiments.compare import compare, make_jobs
from nocta.experiments.job import Job
from nocta.experiments.score_run import ScoreRequest, score_cohort
from nocta.experiments.setup import DataSource, Setup
from nocta.experiments.store import JobStore
from nocta.experiments.sweep import sweep
from nocta.model import NOCTA

pytest.importorskip("distributed")
METHODS = ("nothing", "everything", "first-visit", "periodic")
TIMES = ["fit_seconds", "rollout_seconds"]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("dask")) as started:
        started.add_worker("first")
        yield started


def rows_of(store: JobStore) -> list[dict[str, object]]:
    """What was measured, without how long it took."""
    rows = [row for record in store.records() for row in record["rows"]]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def exact() -> Setup:
    """Few synthetic subjects and the exact predictor: a job takes a fraction of a second."""
    source = DataSource("synthetic", max_subjects=60)
    return Setup(source, n_points=3, predictor="bayes", audit_subjects=6)


def test_a_killed_worker_loses_nothing_and_changes_nothing(
    real: RealCluster, exact: Setup, tmp_path: Path
) -> None:
    jobs = make_jobs(METHODS, [0, 1])
    here, there = JobStore(tmp_path / "here"), JobStore(tmp_path / "there")
    assert sweep(exact, jobs, here, n_jobs=1) == []
    victim = real.add_worker("victim")
    real.wait_for_workers(2)
    assert cluster.sweep_on_cluster(exact, jobs, there, real.address, on_finished=victim.kill) == []
    assert victim.wait() != 0
    assert len(there.records()) == len(jobs)
    assert rows_of(here) == rows_of(there)


def test_jobs_that_share_a_predictor_equal_the_local_ones(
    real: RealCluster, exact: Setup, tmp_path: Path
) -> None:
    learned = replace(exact, predictor="learned", quick=True, audit_subjects=0, n_points=2)
    jobs = make_jobs(["nothing", "first-visit"], [0])
    here, there = JobStore(tmp_path / "here"), JobStore(tmp_path / "there")
    sweep(learned, jobs, here, n_jobs=1)
    cluster.sweep_on_cluster(learned, jobs, there, real.address)
    assert rows_of(here) == rows_of(there)
    # The predictor came back from its worker and serves jobs that are added later.
    kept = [(store.jobs / "predictor-seed0" / "arrays.safetensors") for store in (here, there)]
    assert kept[0].read_bytes() == kept[1].read_bytes()
    changed = kept[1].stat().st_mtime_ns
    assert (
        cluster.sweep_on_cluster(learned, make_jobs(["periodic"], [0]), there, real.address) == []
    )
    assert kept[1].stat().st_mtime_ns == changed


def test_a_finished_job_is_not_run_twice(
    real: RealCluster, exact: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"report": False, "dask": real.address}
    compare(exact, make_jobs(["nothing"], [0]), tmp_path, **options)
    finished = tmp_path / "jobs" / "nothing-seed0.json"
    before = finished.stat().st_mtime_ns
    more = make_jobs(["nothing", "everything"], [0])
    found = compare(exact, more, tmp_path, **options)
    assert [record["job"]["label"] for record in found.records] == ["nothing", "everything"]
    assert finished.stat().st_mtime_ns == before
    # With nothing left, nobody is asked.
    monkeypatch.setattr(cluster, "connect", None)
    assert cluster.sweep_on_cluster(exact, more, JobStore(tmp_path), real.address) == []


def test_other_data_on_a_worker_are_noticed(real: RealCluster, exact: Setup) -> None:
    check = cluster.DataCheck(exact.source, "something else")
    with cluster.connect(real.address) as connected:
        report = connected.submit(cluster._job, exact, Job("nothing", 0), check, None).result()
    assert report.record is None
    assert "holds other data on the worker" in report.reason
    assert "Traceback" in report.details


def test_a_job_that_fails_leaves_the_others_alone(
    real: RealCluster, exact: Setup, tmp_path: Path
) -> None:
    jobs = [Job("nothing", 0), Job("periodic", 0, {"wrong": 1})]
    store = JobStore(tmp_path)
    (failure,) = cluster.sweep_on_cluster(exact, jobs, store, real.address)
    assert (failure.label, failure.seed) == ("periodic", 0)
    assert "has no option 'wrong'" in failure.reason
    assert "Traceback" in (tmp_path / "jobs" / "periodic-seed0.error").read_text()
    assert store.is_finished(jobs[0])


def test_scores_equal_the_local_ones_bit_for_bit(
    real: RealCluster, tiny_models: dict[str, NOCTA], tmp_path: Path
) -> None:
    model, cohort = score_inputs(tiny_models["amortized"], tmp_path, FEW)
    request = ScoreRequest.of(model, 0.005)
    score_cohort(request, cohort, tmp_path / "here", n_jobs=1)
    score_cohort(request, cohort, tmp_path / "there", dask=real.address)
    names = sorted(file.name for file in (tmp_path / "here").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "there").iterdir())
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_nobody_at_the_address_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_ANSWER", "1s")
    with (
        pytest.raises(ConfigError, match=r"No Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        cluster.connect("tcp://127.0.0.1:1"),
    ):
        pass


def test_workers_of_other_versions_are_refused() -> None:
    class Client:
        def run(self, function: Callable[[], dict[str, str]], on_error: str) -> dict[str, object]:
            return {"tcp://w": {**function(), "numpy": "99.0"}, "tcp://v": ImportError("nocta")}

    with pytest.raises(ConfigError, match="tcp://v: ImportError: nocta"):
        cluster._check_versions(Client())
    with pytest.raises(ConfigError, match=r"tcp://w has numpy 99.0"):
        cluster._check_versions(Client())
