"""Comparisons and scores on a real Dask cluster equal those made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import RealCluster, Victim
from test_score_run import FEW, score_inputs

from nocta.core.errors import ConfigError, ProcessKilled
from nocta.model.nocta import NOCTA
from nocta.runs import cluster, score_run
from nocta.runs.compare import compare, make_jobs
from nocta.runs.record import Job
from nocta.runs.scheduler import ThisProcess, open_workers
from nocta.runs.score_run import ScoreRequest, score_cohort
from nocta.runs.setup import DataSource, Setup
from nocta.runs.store import JobStore
from nocta.runs.sweep import sweep
from nocta.runs.tasks import DataCheck, Task, run_task
from nocta.runs.tuning import Tuning
from nocta.runs.versions import all_versions

pytest.importorskip("distributed")
METHODS = ("nothing", "everything", "first-visit", "periodic")
TIMES = ["fit_seconds", "rollout_seconds"]
SCHEMA = """subject = "id"
visit = "visit"
label = "ill"
[features.alt]
cost = 3
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("dask")) as started:
        started.add_worker("first")
        yield started


def rows_of(store: JobStore) -> list[dict[str, object]]:
    """What was measured, without how long it took."""
    rows = [row for record in store.records() for row in record.rows]
    return [{name: value for name, value in vars(row).items() if name not in TIMES} for row in rows]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def exact() -> Setup:
    """Few synthetic subjects and the exact predictor: a job takes a fraction of a second."""
    source = DataSource("synthetic", max_subjects=60)
    return Setup(source, n_points=3, predictor="bayes", audit_subjects=6)


@pytest.fixture
def victim(real: RealCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
    """A second worker that is killed while it holds a task.

    It stands still from when it was looked at, so it finishes nothing of what it is given.
    """
    check = cluster._check_versions
    with Victim(real) as found:

        def check_and_stop(client: Any, here: dict[str, str]) -> None:
            check(client, here)
            found.stand_still()

        monkeypatch.setattr(cluster, "_check_versions", check_and_stop)
        yield found


def test_a_killed_worker_loses_nothing_and_changes_nothing(
    real: RealCluster, victim: Victim, exact: Setup, tmp_path: Path
) -> None:
    jobs = make_jobs(METHODS, [0, 1])
    here, there = JobStore(tmp_path / "here"), JobStore(tmp_path / "there")
    assert sweep(exact, jobs, here, n_jobs=1) == []
    assert sweep(exact, jobs, there, dask=real.address) == []
    assert victim.held
    assert len(there.records()) == len(jobs)
    assert rows_of(here) == rows_of(there)


def test_jobs_that_share_a_predictor_equal_the_local_ones(
    real: RealCluster, exact: Setup, tmp_path: Path
) -> None:
    learned = replace(exact, predictor="learned", quick=True, audit_subjects=0, n_points=2)
    jobs = make_jobs(["nothing", "first-visit"], [0])
    here, there = JobStore(tmp_path / "here"), JobStore(tmp_path / "there")
    sweep(learned, jobs, here, n_jobs=1)
    sweep(learned, jobs, there, dask=real.address)
    assert rows_of(here) == rows_of(there)
    # The predictor came back from its worker and serves jobs that are added later.
    kept = [(store.jobs / "predictor-seed0" / "arrays.safetensors") for store in (here, there)]
    assert kept[0].read_bytes() == kept[1].read_bytes()
    changed = kept[1].stat().st_mtime_ns
    assert sweep(learned, make_jobs(["periodic"], [0]), there, dask=real.address) == []
    assert kept[1].stat().st_mtime_ns == changed


def test_a_finished_job_is_not_run_twice(
    real: RealCluster, exact: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"dask": real.address}
    compare(exact, make_jobs(["nothing"], [0]), tmp_path, **options)
    finished = tmp_path / "jobs" / "nothing-seed0.json"
    before = finished.stat().st_mtime_ns
    more = make_jobs(["nothing", "everything"], [0])
    found = compare(exact, more, tmp_path, **options)
    assert [record.job.label for record in found.records] == ["nothing", "everything"]
    assert finished.stat().st_mtime_ns == before
    # With nothing left, nobody is asked.
    monkeypatch.setattr(cluster, "connect", None)
    assert sweep(exact, more, JobStore(tmp_path), dask=real.address) == []


def test_other_data_on_a_worker_are_noticed(
    real: RealCluster, exact: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = DataCheck(exact.source, "something else")
    with cluster.connect(real.address) as workers:
        task = workers.submit(run_task, exact, Task(0, Job("nothing", 0)), None, None, check)
        with pytest.raises(ConfigError, match="has different contents on the worker"):
            task.result()
    monkeypatch.setattr("nocta.runs.sweep.hash_data", lambda cohort: "something else")
    jobs = [Job("nothing", 0)]
    (failure,) = sweep(exact, jobs, JobStore(tmp_path), dask=real.address)
    assert "has different contents on the worker" in failure.reason
    assert "Traceback" in (tmp_path / "jobs" / "nothing-seed0.error").read_text()


def test_a_stopped_tuning_continues_on_the_cluster(
    real: RealCluster, exact: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = replace(exact, n_trials=3, audit_subjects=0, n_points=2, quick=True)
    job = Job("ras", 0, {"grid": [0.1], "rounds": 1, "steps_per_round": 1})
    here, there = JobStore(tmp_path / "here"), JobStore(tmp_path / "there")
    assert sweep(tuned, [job], here, n_jobs=1) == []
    tell, told = Tuning.tell, []

    def stop(self: Tuning, *result: Any) -> None:
        tell(self, *result)
        told.append(result)
        if len(told) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Tuning, "tell", stop)
        with pytest.raises(KeyboardInterrupt):
            sweep(tuned, [job], there, dask=real.address)
    assert sweep(tuned, [job], there, dask=real.address) == []
    found = [store.records()[0].tuning for store in (here, there)]
    trials = [[(t.options, t.score) for t in tuning.trials] for tuning in found if tuning]
    assert len(trials[0]) == 3
    assert trials[0] == trials[1]
    assert rows_of(here) == rows_of(there)


def test_a_job_that_fails_leaves_the_others_alone(
    real: RealCluster, exact: Setup, tmp_path: Path
) -> None:
    jobs = [Job("nothing", 0), Job("periodic", 0, {"wrong": 1})]
    store = JobStore(tmp_path)
    (failure,) = sweep(exact, jobs, store, dask=real.address)
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
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_scores_survive_a_killed_worker(
    real: RealCluster, victim: Victim, tiny_models: dict[str, NOCTA], tmp_path: Path
) -> None:
    model, cohort = score_inputs(tiny_models["amortized"], tmp_path, FEW)
    request = ScoreRequest.of(model, 0.005)
    score_cohort(request, cohort, tmp_path / "here", n_jobs=1)
    score_cohort(request, cohort, tmp_path / "there", dask=real.address)
    assert victim.held
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_stopped_score_goes_on_on_the_cluster(
    real: RealCluster,
    tiny_models: dict[str, NOCTA],
    tmp_path: Path,
    interrupted: Callable[[str], pytest.MonkeyPatch],
) -> None:
    model, cohort = score_inputs(tiny_models["amortized"], tmp_path, FEW)
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "there"
    score_cohort(request, cohort, tmp_path / "here", n_jobs=1)
    stop = interrupted("part-1.parquet")
    with pytest.raises(KeyboardInterrupt):
        score_cohort(request, cohort, out, dask=real.address)
    stop.undo()
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("*.parquet")}
    said: list[str] = []
    score_cohort(request, cohort, out, dask=real.address, say=said.append)
    assert said == ([f"{len(before)} of 3 parts were finished before."] if before else [])
    for name, changed in before.items():
        assert (out / name).stat().st_mtime_ns == changed
    assert contents(tmp_path / "here") == contents(out)


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_part_that_kills_its_workers_is_told_in_a_sentence(
    deaths: int, tiny_models: dict[str, NOCTA], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import KilledWorker

    class Killing(ThisProcess):
        """Dask's error for a task whose workers all died, for this many tasks."""

        n_workers, left = 2, deaths

        def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
            if self.left and args[0].part.name == "part-1":
                self.left -= 1
                future: Future[Any] = Future()
                future.set_exception(KilledWorker("part-1", None, 3))  # type: ignore[no-untyped-call]
                return future
            return super().submit(function, *args)

    @contextmanager
    def workers(n_jobs: int, dask: str | None) -> Iterator[Killing]:
        yield Killing()

    model, cohort = score_inputs(tiny_models["amortized"], tmp_path, FEW)
    monkeypatch.setattr(score_run, "open_workers", workers)
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "out"
    if deaths == 1:
        assert score_cohort(request, cohort, out, dask="there") == sum(FEW)
    else:
        with pytest.raises(ProcessKilled, match="Part 'part-1' crashed its process twice"):
            score_cohort(request, cohort, out, dask="there")
        assert (out / "part-0.parquet").is_file()


def test_changed_data_are_read_again_by_a_worker_that_knew_them(
    real: RealCluster, tmp_path: Path
) -> None:
    table, schema = tmp_path / "clinic.csv", tmp_path / "clinic.toml"
    schema.write_text(SCHEMA)
    source = DataSource(str(table), str(schema), fractions=(0.4, 0.3, 0.3))
    setup = Setup(source, n_points=1, audit_subjects=0, quick=True)
    counts = []
    for n in (40, 60):
        lines = [f"{i},{t},{i % 3 + t},{(i + t) % 2}" for i in range(n) for t in range(2)]
        table.write_text("\n".join(["id,visit,alt,ill", *lines]) + "\n")
        store = JobStore(tmp_path / f"results-{n}")
        jobs = make_jobs(["nothing"], [0])
        assert sweep(setup, jobs, store, dask=real.address) == []
        counts += [row["n_subjects"] for row in rows_of(store)]
    assert counts == [12, 18]


@pytest.mark.parametrize("address", ["foo", "tcp://10.0.0.1", ""])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with (
        pytest.raises(ConfigError, match="is not the address of a Dask scheduler; expected a host"),
        cluster.connect(address),
    ):
        pass


def test_nobody_at_the_address_is_said_so() -> None:
    with (
        pytest.raises(ConfigError, match=r"No Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        cluster.connect("tcp://127.0.0.1:1", answer_seconds=1.0),
    ):
        pass


def test_workers_of_other_versions_are_refused() -> None:
    class Client:
        def run(self, function: Callable[[], dict[str, str]], on_error: str) -> dict[str, object]:
            return {"tcp://w": {**function(), "numpy": "99.0"}, "tcp://v": ImportError("nocta")}

    with pytest.raises(ConfigError, match="tcp://v: ImportError: nocta"):
        cluster._check_versions(Client(), all_versions())
    with pytest.raises(ConfigError, match=r"tcp://w has numpy 99.0"):
        cluster._check_versions(Client(), all_versions())


def test_a_worker_that_joins_later_refuses_what_it_would_do_otherwise(real: RealCluster) -> None:
    with cluster.connect(real.address) as connected:
        assert {"pyarrow", "torch"} <= connected.versions.keys()
        assert connected.submit(len, [1, 2]).result() == 2
        later = cluster.DaskWorkers(connected.client, {**connected.versions, "pyarrow": "99.0"})
        with pytest.raises(ConfigError, match=r"has pyarrow .*; this command runs with 99.0"):
            later.submit(len, [1, 2]).result()


def test_a_scheduler_without_workers_is_said_so(tmp_path: Path) -> None:
    with (
        RealCluster(tmp_path) as empty,
        pytest.raises(ConfigError, match=r"has had no worker for 0.5 s. Start some with `dask"),
        cluster.connect(empty.address, worker_seconds=0.5),
    ):
        pass


def test_workers_that_join_later_get_their_share(
    real: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def run_tasks(next_task: Any, submit: Any, n_at_once: Any, running: Any) -> Iterator[None]:
        sizes.append(n_at_once())
        monkeypatch.setattr(cluster.DaskWorkers, "n_workers", 8)
        sizes.append(n_at_once())
        yield None

    monkeypatch.setattr(score_run, "run_tasks", run_tasks)
    with open_workers(1, real.address) as workers:
        assert list(score_run._results([], workers)) == []
    assert sizes == [2, 16]
