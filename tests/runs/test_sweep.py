"""Sweeps go on where they stopped, and around what fails."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import fake_methods
import pytest
from fake_methods import DyingJob

from nocta import datasets
from nocta.core.errors import ConfigError
from nocta.core.progress import progress_bar
from nocta.methods import registry
from nocta.runs.compare import compare, make_jobs
from nocta.runs.record import Job
from nocta.runs.results import TIMES, read_results
from nocta.runs.setup import DataSource, Setup
from nocta.runs.store import JobStore
from nocta.runs.sweep import _plan, sweep


def test_finished_jobs_are_not_run_twice(small_setup: Setup, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    jobs = [Job("fake-honest", seed, {"notes": str(notes)}) for seed in (0, 1)]
    compare(small_setup, jobs[:1], tmp_path / "d", n_jobs=1)
    compare(small_setup, jobs, tmp_path / "d", n_jobs=1)
    assert notes.read_text("utf-8").split("\n")[:-1] == ["fake-honest 0", "fake-honest 1"]
    assert sorted(set(read_results(tmp_path / "d" / "results.csv")["seed"])) == [0, 1]


def test_a_lost_job_file_is_made_again_with_the_same_numbers(
    small_setup: Setup, tmp_path: Path
) -> None:
    jobs = make_jobs(["random", "static"], [0])
    compare(small_setup, jobs, tmp_path, n_jobs=1)
    first = read_results(tmp_path / "results.csv").drop(columns=list(TIMES))
    (tmp_path / "jobs" / "random-seed0.json").unlink()
    compare(small_setup, jobs, tmp_path, n_jobs=1)
    assert first.equals(read_results(tmp_path / "results.csv").drop(columns=list(TIMES)))


def test_one_failed_job_does_not_stop_the_rest(small_setup: Setup, tmp_path: Path) -> None:
    jobs = make_jobs(["fake-failing", "fake-leaking", "nothing"], [0, 1])
    found = compare(small_setup, jobs, tmp_path, n_jobs=1)
    assert sorted(str(f).split(":")[0] for f in found.failures) == [
        "fake-failing, seed 1",
        "fake-leaking, seed 0",
        "fake-leaking, seed 1",
    ]
    reason = next(f.reason for f in found.failures if f.label == "fake-failing")
    assert reason == "RuntimeError: the flux capacitor is empty"
    assert "Traceback" in (tmp_path / "jobs" / "fake-failing-seed1.error").read_text("utf-8")
    assert set(found.results["method"]) == {"fake-failing", "nothing"}


def test_a_failed_job_is_tried_again(
    small_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("fake-failing", 1)]
    small_setup = replace(small_setup, audit_subjects=0)  # so that it is fitted in this process
    assert compare(small_setup, jobs, tmp_path, n_jobs=1).failures
    monkeypatch.setattr(fake_methods.Failing, "fit", fake_methods.Honest.fit)
    assert not compare(small_setup, jobs, tmp_path, n_jobs=1).failures
    assert not list((tmp_path / "jobs").glob("*.error"))


def test_processes_give_the_same_numbers_and_survive_one_that_dies(
    small_setup: Setup, tmp_path: Path
) -> None:
    jobs = make_jobs(["random", "nothing"], [0])
    inline = compare(small_setup, jobs, tmp_path / "inline", n_jobs=1)
    dying = DyingJob("nothing", 0, label="dying")
    pooled = compare(small_setup, [dying, *jobs], tmp_path / "pool", n_jobs=2)
    assert [f.label for f in pooled.failures] == ["dying"]
    assert "its process was killed" in pooled.failures[0].reason
    drop = list(TIMES)
    assert inline.results.drop(columns=drop).equals(pooled.results.drop(columns=drop))


def test_a_seed_without_its_predictor_fails_alone(
    small_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(setup: Setup, seed: int) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr("nocta.runs.tasks.shared_predictor", no_memory)
    monkeypatch.setattr("nocta.runs.sweep.is_kept", lambda setup: True)
    setup = replace(small_setup, predictor="learned")
    store = JobStore(tmp_path)
    failures = sweep(setup, make_jobs(["nothing", "fake-honest"], [0]), store, n_jobs=1)
    assert [str(f) for f in failures] == [
        "nothing, seed 0: the predictor of the seed could not be fitted (MemoryError: too large)"
    ]
    assert store.is_finished(Job("fake-honest", 0))
    assert "MemoryError: too large" in (store.jobs / "nothing-seed0.error").read_text("utf-8")


def test_a_predictor_is_fitted_before_the_jobs_of_its_seed(
    small_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nocta.runs.sweep.is_kept", lambda setup: True)
    jobs = make_jobs(["nothing", "fake-honest"], [0, 1])
    tasks = _plan(small_setup, jobs, JobStore(tmp_path))
    seen = [(task.label, task.seed) for task in tasks]
    one = ["predictor", "nothing", "fake-honest"]
    assert seen == [(name, seed) for seed in (0, 1) for name in one]


def test_rows_whose_jobs_are_gone_are_not_written_over(small_setup: Setup, tmp_path: Path) -> None:
    compare(small_setup, make_jobs(["nothing"], [0, 1]), tmp_path, n_jobs=1)
    before = (tmp_path / "results.csv").read_bytes()
    (tmp_path / "jobs" / "nothing-seed1.json").unlink()
    with pytest.raises(ConfigError, match=r"results of 1 job.*nothing 1.*without losing them"):
        compare(small_setup, [Job("fake-honest", 0)], tmp_path, n_jobs=1)
    assert (tmp_path / "results.csv").read_bytes() == before


def test_another_setup_in_the_same_folder_is_refused(small_setup: Setup, tmp_path: Path) -> None:
    jobs = [Job("nothing", 0)]
    compare(small_setup, jobs, tmp_path, n_jobs=1)
    with pytest.raises(ConfigError, match=r"n_points is 3 there and 4 here.*another --out"):
        compare(replace(small_setup, n_points=4), jobs, tmp_path, n_jobs=1)


def test_other_options_under_the_same_label_are_refused(small_setup: Setup, tmp_path: Path) -> None:
    def honest(n_visits: int) -> list[Job]:
        return [Job("fake-honest", 0, {"n_visits": n_visits}, label="honest")]

    compare(small_setup, honest(1), tmp_path, n_jobs=1)
    with pytest.raises(ConfigError, match="Give the job another label"):
        compare(small_setup, honest(2), tmp_path, n_jobs=1)


def test_changed_data_in_the_same_folder_are_refused(small_setup: Setup, tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.open(small_setup, "abc")
    store.open(small_setup, "abc")
    with pytest.raises(ConfigError, match="the data changed"):
        store.open(small_setup, "xyz")


def test_results_of_unknown_origin_are_not_overwritten(small_setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("mine", "utf-8")
    with pytest.raises(ConfigError, match="not known how those results were made"):
        compare(small_setup, [Job("nothing", 0)], tmp_path, n_jobs=1)
    assert (tmp_path / "results.csv").read_text("utf-8") == "mine"


def test_a_folder_that_is_a_file_is_refused(small_setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="is a file"):
        compare(small_setup, [Job("nothing", 0)], tmp_path / "out", n_jobs=1)


def test_half_a_job_file_is_no_finished_job(small_setup: Setup, tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    store.jobs.mkdir(parents=True)
    (store.jobs / ".nothing-seed0.json.1234.part").write_text('{"rows": [', "utf-8")
    assert not store.is_finished(Job("nothing", 0))
    assert store.records() == []


def test_nothing_to_compare_is_refused(small_setup: Setup, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare(small_setup, [], tmp_path, n_jobs=1)


def test_job_files_are_plain_json(small_setup: Setup, tmp_path: Path) -> None:
    compare(small_setup, [Job("nothing", 0)], tmp_path, n_jobs=1)
    text = (tmp_path / "jobs" / "nothing-seed0.json").read_text("utf-8")
    assert "NaN" not in text
    assert json.loads(text)["job"] == {
        "method": "nothing",
        "seed": 0,
        "options": {},
        "label": "nothing",
    }


def test_a_sweep_that_goes_on_knows_at_once_how_long(
    small_setup: Setup,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    often = partial(progress_bar, seconds_between_lines=0.0)
    monkeypatch.setattr("nocta.runs.sweep.progress_bar", often)
    store = JobStore(tmp_path)
    sweep(small_setup, [Job("nothing", 0)], store, n_jobs=1)
    record = store.read(Job("nothing", 0))
    assert record is not None
    store.save(Job("nothing", 0), replace(record, seconds=2400.0))
    capsys.readouterr()
    sweep(small_setup, make_jobs(["nothing"], [0, 1]), store, n_jobs=1, progress=True)
    shown = capsys.readouterr().err
    assert "1/2 [00:00, about 40 min left, nothing 1]" in shown


@pytest.mark.parametrize("mark", ["manifest.json", ".partial", ".checkpoint.json"])
def test_a_folder_of_something_else_is_refused(
    mark: str, small_setup: Setup, tmp_path: Path
) -> None:
    (tmp_path / mark).write_text('{"kind": "nocta-model"}', "utf-8")
    with pytest.raises(ConfigError, match=r"holds .*; choose another --out"):
        compare(small_setup, [Job("nothing", 0)], tmp_path, n_jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == [mark]


def test_a_damaged_job_file_is_run_again(small_setup: Setup, tmp_path: Path) -> None:
    jobs = make_jobs(["nothing"], [0, 1])
    compare(small_setup, jobs, tmp_path, n_jobs=1)
    file = tmp_path / "jobs" / "nothing-seed1.json"
    file.write_text(file.read_text("utf-8")[:100], "utf-8")
    with pytest.raises(ConfigError, match="is damaged; delete it and run the job again"):
        JobStore(tmp_path).records()
    assert len(compare(small_setup, jobs, tmp_path, n_jobs=1).records) == 2


def test_a_method_of_this_process_only_is_refused_for_others(
    small_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "is_local", lambda name: name.startswith("fake-"))
    jobs = make_jobs(["fake-honest"], [0, 1])
    for options in ({"n_jobs": 2}, {"dask": "tcp://10.0.0.1:8786"}):
        with pytest.raises(ConfigError, match=r"'fake-honest' is registered in this process only"):
            compare(small_setup, jobs, tmp_path / "out", **options)  # type: ignore[arg-type]
        assert not (tmp_path / "out").exists()
    assert not compare(small_setup, jobs, tmp_path / "out", n_jobs=1).failures


def test_a_data_set_of_this_process_only_is_refused_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "is_local", lambda name: name == "synthetic")
    setup = Setup(DataSource("synthetic", max_subjects=60), n_points=1, audit_subjects=0)
    jobs = make_jobs(["nothing", "everything"], [0])
    said = r"'synthetic' is registered in this process only.*entry point `nocta.datasets`.*--jobs 1"
    with pytest.raises(ConfigError, match=said):
        compare(setup, jobs, tmp_path / "out", n_jobs=2)
    assert not (tmp_path / "out").exists()
