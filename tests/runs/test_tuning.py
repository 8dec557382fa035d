"""Tuning: defaults first, the same number of trials for all, continued after a kill, no test."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, MissingExtraError
from nocta.core.rollout import rollout
from nocta.methods.contract import Method
from nocta.methods.fixed import FixedPlanPolicy
from nocta.methods.registry import METHODS
from nocta.report.build import render
from nocta.runs.compare import compare, make_jobs
from nocta.runs.job import run_job
from nocta.runs.method_options import make_method, option_defaults
from nocta.runs.record import Job, TuningRecord
from nocta.runs.results import plain
from nocta.runs.setup import DataSource, Setup
from nocta.runs.store import JobStore
from nocta.runs.sweep import _Sweep
from nocta.runs.tasks import Task
from nocta.runs.tuning import Tuning, ValidationArea, class_frequencies
from nocta.runs.tuning import tune as run_trials
from nocta.testing import RunningMeanPredictor, tiny_cohort


@pytest.fixture
def tuned_setup(small_setup: Setup) -> Setup:
    return replace(small_setup, n_trials=4)


def search(n_trials: int, seed: int = 0, **fixed: Any) -> Tuning:
    defaults = {"n_visits": 2, "sharpness": 1.0, "order": "early"}
    return Tuning(make_method("fake-tunable", {}), seed, n_trials, fixed, defaults)


def tune(
    tuning: Tuning, score: Callable[[dict[str, Any]], float], journal: Path | None = None
) -> Tuning:
    tuning.open(journal)
    return run_trials(tuning, score)


def taste(options: dict[str, Any]) -> float:
    """Likes eight visits."""
    return -abs(options.get("n_visits", 2) - 8) + 0.01 * options.get("sharpness", 1.0)


def tried(found: Any) -> list[dict[str, Any]]:
    return [trial.options for trial in found.trials]


# -- trials ---------------------------------------------------------------------------------


def test_the_defaults_come_first_and_the_best_is_chosen() -> None:
    found = tune(search(12), taste)
    assert tried(found)[0] == {}
    assert len(found.trials) == 12
    scores = [trial.score for trial in found.trials]
    assert taste(found.chosen) == max(s for s in scores if s is not None) >= taste({})
    assert found.names == ("n_visits", "sharpness", "order")


def test_of_equals_the_defaults_win() -> None:
    assert tune(search(6), lambda options: 0.5).chosen == {}


def test_nothing_is_tried_twice() -> None:
    options = tried(tune(search(40, order="late", sharpness=1.0), taste))
    assert len(options) == 10  # the defaults, spelled out, count as tried
    assert all(a != b for i, a in enumerate(options) for b in options[:i])


def test_the_same_seed_tries_the_same_and_another_does_not() -> None:
    first, again, other = (tune(search(8, seed=s), taste) for s in (3, 3, 4))
    assert tried(first) == tried(again)
    assert tried(first)[1:] != tried(other)[1:]


def test_later_trials_learn_from_scores() -> None:
    liked = tune(search(30), taste)
    loathed = tune(search(30), lambda options: -taste(options))
    mean = [np.mean([o["n_visits"] for o in tried(found)[10:]]) for found in (liked, loathed)]
    assert mean[0] > mean[1] + 1


def test_options_that_were_given_are_not_tuned() -> None:
    found = tune(search(5, n_visits=5), taste)
    assert found.names == ("sharpness", "order")
    assert all("n_visits" not in options for options in tried(found))


def test_a_trial_that_fails_is_noted_and_never_chosen() -> None:
    def picky(options: dict[str, Any]) -> float:
        if options.get("order", "early") == "late":
            raise RuntimeError("the loss\nis not a number")
        return taste(options)

    found = tune(search(12), picky)
    failed = [trial for trial in found.trials if trial.score is None]
    assert failed
    assert {trial.error for trial in failed} == {"RuntimeError: the loss is not a number"}
    assert found.chosen.get("order", "early") == "early"


def test_defaults_that_fail_are_an_error() -> None:
    def broken(options: dict[str, Any]) -> float:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        tune(search(3), broken)


def test_a_score_that_is_not_defined_is_not_chosen() -> None:
    found = tune(search(4), lambda options: float("nan") if options else 0.1)
    assert [trial.score for trial in found.trials] == [0.1, None, None, None]
    assert found.chosen == {}


def test_a_killed_tuning_goes_on_and_ends_with_the_same_choice(tmp_path: Path) -> None:
    whole = tune(search(9), taste)
    journal = tmp_path / "journal.log"
    calls: list[dict[str, Any]] = []

    def dying(options: dict[str, Any]) -> float:
        calls.append(options)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return taste(options)

    with pytest.raises(KeyboardInterrupt):
        tune(search(9), dying, journal)
    again = search(9)
    again.open(journal)
    assert len(again.trials) == 4
    rest = tune(again, dying, journal)
    assert len(calls) == 5 + 5
    assert tried(rest) == tried(whole)
    assert rest.chosen == whole.chosen


def test_trials_of_another_job_are_dropped(tmp_path: Path) -> None:
    store, job = JobStore(tmp_path), Job("fake-tunable", 0)
    tune(search(3), taste, store.tuning(job, ["n_visits"]))
    assert store.tuning(job, ["n_visits"]).is_file()
    assert not store.tuning(job, ["order"]).exists()
    tune(search(3), taste, store.tuning(job, ["order"]))
    assert not store.tuning(replace(job, options={"n_visits": 3}), ["order"]).exists()


@pytest.mark.parametrize("damage", ['{"op_code"', '{"op_code"\n{"op_code": 0}\n'])
def test_a_damaged_journal_begins_again(damage: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    tune(search(3), taste, journal)
    whole = journal.read_text("utf-8")
    journal.write_text(f"{whole}{damage}", "utf-8")
    found = tune(search(3), taste, journal)
    assert len(found.trials) == 3
    tune(search(4), taste, journal)
    assert len(tune(search(5), taste, journal).trials) == 5


def test_without_optuna_the_extra_is_named(
    tuned_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"nocta\[tune\]"):
        compare(tuned_setup, [Job("fake-tunable", 0)], tmp_path, n_jobs=1)


# -- the score ------------------------------------------------------------------------------


def test_the_score_is_the_area_from_nothing_to_nine_tenths_of_everything() -> None:
    train, val = tiny_cohort(80).split((0.5, 0.5))
    area = ValidationArea.of(train, val, "ap")
    everything = float(val.catalog.cost_of(val.recorded).mean())
    assert area.high == pytest.approx(0.9 * everything)
    policy = FixedPlanPolicy(train.catalog.open_slots, RunningMeanPredictor(2))
    done = rollout(policy, val)
    quality = done.summary()[area.metric]
    share = area.high / everything  # linear from the common start to the only point
    expected = area.start + share * (quality - area.start) / 2
    assert area.score([done]) == pytest.approx(expected)


def test_all_curves_start_at_the_frequencies_of_the_classes() -> None:
    train, val = tiny_cohort(80).split((0.5, 0.5))
    nothing = FixedPlanPolicy(np.zeros_like(train.catalog.open_slots), RunningMeanPredictor(2))
    area = ValidationArea.of(train, val, "ap")
    own = rollout(nothing, val).summary()[area.metric]
    assert area.score([rollout(nothing, val)]) == pytest.approx(own)  # a point at no cost counts
    rates = class_frequencies(train)
    np.testing.assert_allclose(rates.sum(axis=1), 1.0)
    at_first = train.labels[:, 0][train.labels[:, 0] >= 0]
    assert rates[0, 1] == pytest.approx((at_first == 1).mean(), abs=0.05)


# -- in a job -------------------------------------------------------------------------------


def test_the_record_holds_every_trial_and_the_choice(tuned_setup: Setup) -> None:
    record = run_job(tuned_setup, Job("fake-tunable", 0))
    tuning = record.tuning
    assert len(tuning.trials) == tuning.n_trials == 4
    scores = [trial.score for trial in tuning.trials]
    assert scores[tuning.best] == max(scores) >= scores[0]
    assert tuning.chosen == tuning.trials[tuning.best].options
    chosen = {"n_visits": 2, **tuning.chosen}["n_visits"]
    # The method has an operating point per visit; nothing and everything are the ends.
    assert len(record.rows) == chosen + 2
    assert record.job.options == {}
    json.dumps(record.to_dict(), allow_nan=False)


def test_the_chosen_options_give_the_rows(tuned_setup: Setup) -> None:
    tuned = run_job(tuned_setup, Job("fake-tunable", 1))
    by_hand = run_job(replace(tuned_setup, n_trials=0), Job("fake-tunable", 1, tuned.tuning.chosen))
    assert by_hand.tuning is None
    assert plain(by_hand.details) == plain(tuned.details)


def test_methods_without_options_say_so(tuned_setup: Setup) -> None:
    tuning = run_job(tuned_setup, Job("fake-honest", 0)).tuning
    assert (tuning.tuned, tuning.trials, tuning.chosen) == ([], [], {})


def test_tuning_never_sees_test_subjects(
    tuned_setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("fake-tunable", 0)
    before = run_job(tuned_setup, job)
    usual = DataSource.split

    def other_test(self: DataSource, cohort: Cohort, seed: int) -> tuple[Cohort, Cohort, Cohort]:
        train, val, test = usual(self, cohort, seed)
        labels = np.where(test.labels >= 0, test.n_classes - 1 - test.labels, -1)
        return train, val, replace(test, labels=labels, values=test.values[::-1].copy())

    monkeypatch.setattr(DataSource, "split", other_test)
    after = run_job(tuned_setup, job)
    assert [d.accuracy for d in after.details] != [d.accuracy for d in before.details]
    assert _without_seconds(after.tuning) == _without_seconds(before.tuning)


def _without_seconds(tuning: TuningRecord | None) -> TuningRecord:
    assert tuning is not None
    return replace(tuning, seconds=0.0, trials=[replace(t, seconds=0.0) for t in tuning.trials])


def test_a_killed_job_goes_on_with_its_trials(
    tuned_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes.txt"
    tuned_setup = replace(tuned_setup, audit_subjects=0)  # so that trials run in this process
    jobs = make_jobs(["fake-tunable"], [0], {"fake-tunable": {"notes": str(notes)}})
    store = JobStore(tmp_path / "d")
    score, calls = ValidationArea.score, []

    def dying(self: ValidationArea, rollouts: Any) -> float:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(self, rollouts)

    monkeypatch.setattr(ValidationArea, "score", dying)
    with pytest.raises(KeyboardInterrupt):
        compare(tuned_setup, jobs, store.directory, n_jobs=1)
    state = _Sweep(tuned_setup, store, [])
    assert state.title(state._with_options(Task(0, jobs[0]))) == "fake-tunable 0 (trial 2 of 4)"
    compare(tuned_setup, jobs, store.directory, n_jobs=1)
    assert len(notes.read_text("utf-8").splitlines()) == 3 + 2 + 1  # and the choice is fitted
    assert [path.name for path in store.jobs.iterdir()] == ["fake-tunable-seed0.json"]


def test_other_numbers_of_trials_do_not_mix(tuned_setup: Setup, tmp_path: Path) -> None:
    jobs = [Job("fake-honest", 0)]
    compare(tuned_setup, jobs, tmp_path, n_jobs=1)
    with pytest.raises(ConfigError, match="n_trials is 4 there and 5 here"):
        compare(replace(tuned_setup, n_trials=5), jobs, tmp_path, n_jobs=1)


def test_a_folder_from_before_there_was_tuning_is_continued(small_setup: Setup) -> None:
    older = {k: v for k, v in small_setup.to_dict().items() if k != "n_trials"}
    assert small_setup.differences(older) == []
    assert replace(small_setup, n_trials=2).differences(older) == ["n_trials is 0 there and 2 here"]


def test_the_report_shows_choices_and_scores(
    tuned_setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nocta.report.build.report_figures", lambda view: defaultdict(str))
    jobs = make_jobs(["fake-tunable", "fake-honest"], [0])
    found = compare(tuned_setup, jobs, tmp_path, n_jobs=1)
    page = render(found)
    scores = [t.score for t in found.records[0].tuning.trials]
    assert ", ".join(f"{s:.3f}" for s in scores) in page
    assert "nothing to tune" in page
    assert "had 4 trials per seed" in page
    assert "--tune 4" in page


# -- search spaces --------------------------------------------------------------------------


def _spaces() -> list[tuple[str, str]]:
    return [(name, preset) for name in METHODS for preset in ("default", "paper")]


@pytest.mark.parametrize(("name", "preset"), _spaces())
def test_every_search_space_is_made_of_options_of_the_method(name: str, preset: str) -> None:
    method: Method = make_method(name, {}, preset=preset)
    for seed in range(3):
        found = tune(Tuning(method, seed, 3), lambda options: 0.0)
        for trial in found.trials:
            make_method(name, trial.options, preset=preset)


@pytest.mark.parametrize("estimator", ["amortized", "contrastive", "ensemble"])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_nocta_is_tuned_around_its_defaults(estimator: str, preset: str) -> None:
    name = f"nocta-{estimator}"
    defaults = option_defaults(name, preset)
    looked = Tuning(make_method(name, {}, preset=preset), 0, 1, {}, defaults)
    assert len(looked.names) >= 3
    tune(looked, lambda options: 0.5)
    (first,) = looked._study.trials
    assert first.params == {option: defaults[option] for option in looked.names}


@pytest.mark.parametrize("name", ["asac", "ras", "as", "dime", "difa"])
def test_baselines_are_tuned_around_their_defaults(name: str) -> None:
    defaults = option_defaults(name)
    looked = Tuning(make_method(name, {}), 0, 1, {}, defaults)
    assert len(looked.names) >= 2
    tune(looked, lambda options: 0.5)
    (first,) = looked._study.trials
    assert first.params == {option: defaults[option] for option in looked.names}
