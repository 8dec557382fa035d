"""One job: rows of results.csv, details for the report, an audit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from nocta.core.errors import ConfigError, LeakageError
from nocta.core.rollout import rollout
from nocta.exact.task import synthetic_task
from nocta.methods.fixed import FixedPlanPolicy
from nocta.predictors.bayes import BayesPredictor
from nocta.runs.details import ledger
from nocta.runs.job import run_job
from nocta.runs.learning import FittedPredictor, build_method
from nocta.runs.operating_points import operating_points
from nocta.runs.record import Job, JobRecord
from nocta.runs.results import COLUMNS, TIMES, plain
from nocta.runs.setup import DataSource, Setup
from nocta.testing import RunningMeanPredictor, tiny_cohort


def run(setup: Setup, job: Job) -> JobRecord:
    exact = FittedPredictor(BayesPredictor(synthetic_task()), 1.5)
    return run_job(setup, job, exact if job.shares_predictor else None)


def without_times(record: JobRecord) -> list[dict[str, Any]]:
    """The rows as plain data; NaN is equal to NaN there."""
    rows = [{k: v for k, v in vars(row).items() if k not in TIMES} for row in record.rows]
    return [{k: v if v == v else None for k, v in row.items()} for row in rows]


def test_a_job_gives_one_row_per_operating_point(small_setup: Setup) -> None:
    record = run(small_setup, Job("random", 3))
    assert {tuple(vars(row)) for row in record.rows} == {COLUMNS}
    assert len(record.details) == len(record.rows) == 5
    costs = [row.cost for row in record.rows]
    assert costs == sorted(costs)
    row = record.rows[1]
    assert (row.dataset, row.method, row.seed, row.split) == (
        "synthetic",
        "random",
        3,
        "test",
    )
    assert list(json.loads(row.setting)) == ["probability"]
    assert (row.n_subjects, row.n_labels) == (9, 90)


def test_the_threshold_of_alarms_is_the_share_of_positives_in_training() -> None:
    setup = Setup(DataSource("pbc-stage", max_subjects=80), n_points=2, audit_subjects=0)
    record = run_job(setup, Job("static", 0), FittedPredictor(RunningMeanPredictor(2), 0.0))
    train, _, test = setup.source.split(setup.source.load(0), 0)
    share = (train.labels[train.labeled] == 1).mean()
    assert share != pytest.approx((test.labels[test.labeled] == 1).mean())
    for row, entry in zip(record.rows, record.details, strict=True):
        assert row.threshold == entry.threshold == pytest.approx(share)
        assert 0 <= row.detection_delay < 10
        assert (row.tests, row.visits) == (entry.tests, entry.visits)
        assert row.tests >= row.visits >= 0
    assert record.rows[-1].tests > 0


def test_the_same_job_gives_the_same_numbers(small_setup: Setup) -> None:
    first, second = (run(small_setup, Job("static", 1)) for _ in range(2))
    assert without_times(first) == without_times(second)
    assert plain(first.details) == plain(second.details)


def test_another_seed_gives_other_numbers(small_setup: Setup) -> None:
    first, second = (run(small_setup, Job("random", seed)) for seed in (0, 1))
    assert [r.cost for r in first.rows] != [r.cost for r in second.rows]


def test_fitting_the_shared_predictor_counts_as_fitting(small_setup: Setup) -> None:
    assert run(small_setup, Job("nothing", 0)).rows[0].fit_seconds >= 1.5
    assert run(small_setup, Job("fake-honest", 0)).rows[0].fit_seconds < 1.5


def test_the_audit_is_kept_with_the_job(small_setup: Setup) -> None:
    found = run(small_setup, Job("everything", 0)).audit
    assert found.n_subjects == 6
    assert found.n_decisions > 0
    assert run(replace(small_setup, audit_subjects=0), Job("everything", 0)).audit is None


def test_every_operating_point_is_audited(small_setup: Setup) -> None:
    found = run(replace(small_setup, audit_subjects=20), Job("random", 0))
    points = found.audit.points
    assert [json.dumps(p.setting) for p in points] == [r.setting for r in found.rows]
    assert [p.n_subjects for p in points] == [8] * 5
    assert found.audit.n_points == 5
    assert found.audit.n_subjects == 40
    assert found.audit.n_decisions == sum(p.n_decisions for p in points)


def test_a_leak_at_the_last_operating_point_is_found(small_setup: Setup) -> None:
    with pytest.raises(LeakageError):
        run(small_setup, Job("fake-leaking-late", 0))


def test_a_leaking_method_gives_no_rows(small_setup: Setup) -> None:
    with pytest.raises(LeakageError):
        run(small_setup, Job("fake-leaking", 0))


def test_presets_and_options_reach_the_method(small_setup: Setup) -> None:
    method: Any = build_method(
        replace(small_setup, preset="paper"), Job("fake-honest", 0, {"n_visits": 4})
    )
    assert (method.preset, method.n_visits) == ("paper", 4)


def test_the_availability_rule_reaches_the_method(small_setup: Setup) -> None:
    setup = replace(small_setup, availability="known")
    assert build_method(setup, Job("fake-honest", 0)).availability == "known"
    assert build_method(small_setup, Job("fake-honest", 0)).availability == "on-arrival"


def test_the_rule_of_results_reaches_method_roll_out_and_audit(small_setup: Setup) -> None:
    setup = replace(small_setup, results="at-once")
    method = build_method(setup, Job("fake-honest", 0))
    assert method.results == "at-once"
    record = run_job(setup, Job("fake-honest", 0))
    assert record.audit.results == "at-once"


def test_an_unknown_option_is_refused_with_a_hint(small_setup: Setup) -> None:
    with pytest.raises(ConfigError, match=r"no option 'n_visit'.*Did you mean 'n_visits'"):
        build_method(small_setup, Job("fake-honest", 0, {"n_visit": 4}))


def test_a_label_replaces_the_name(small_setup: Setup) -> None:
    job = Job("fake-honest", 2, {"n_visits": 1}, label="honest, K = 1/2")
    assert job.name == "honest_K_=_1_2-seed2"
    assert run(small_setup, job).rows[0].method == "honest, K = 1/2"


def test_given_cost_weights_replace_those_of_the_method(small_setup: Setup) -> None:
    setup = replace(small_setup, cost_weights=(1.0, 0.25))
    rows = run(setup, Job("fake-weighted", 0)).rows
    assert [row.cost_weight for row in rows] == [1.0, 0.25]
    assert [row.cost for row in rows] == [2.0, 8.0]
    assert json.loads(rows[0].setting) == {"cost_weight": 1.0}


def test_methods_without_a_cost_weight_keep_their_grid(small_setup: Setup) -> None:
    rows = run(replace(small_setup, cost_weights=(1.0,)), Job("fake-honest", 0)).rows
    assert [row.cost_weight for row in rows] == [None] * 4


def test_a_curve_ends_at_nothing_and_everything(small_setup: Setup) -> None:
    ours, nothing, everything = (
        run(small_setup, Job(name, 0)).rows for name in ("static", "nothing", "everything")
    )
    for end, alone in ((ours[0], nothing), (ours[-1], everything)):
        (only,) = alone
        assert (end.cost, end.cross_entropy) == (only.cost, only.cross_entropy)
        assert end.expected_loss == pytest.approx(only.expected_loss, abs=1e-5)
        assert end.expected_cost == pytest.approx(only.expected_cost)
        assert end.realized_loss == only.realized_loss
    assert [json.loads(row.setting)["acquire"] for row in (ours[0], ours[-1])] == [
        "nothing",
        "everything",
    ]


def test_budgets_are_never_exceeded(small_setup: Setup) -> None:
    rows = run(replace(small_setup, budgets=(3.0, 1.0)), Job("everything", 0)).rows
    assert [(row.budget, row.cost) for row in rows] == [(1.0, 1.0), (3.0, 3.0)]


def test_under_a_budget_the_knob_is_chosen_on_validation(small_setup: Setup) -> None:
    setup = replace(small_setup, budgets=(4.0,))
    train, val, _ = setup.source.split(setup.source.load(0), 0)
    method = build_method(setup, Job("static", 0))
    method.fit(train, val, seed=0, predictor=BayesPredictor(synthetic_task()))
    (chosen,) = operating_points(method, val, setup, 0)
    assert chosen["budget"] == 4.0

    def loss(n_slots: int) -> float:
        found = rollout(method.policy({"n_slots": n_slots}), val, budget=4.0)
        return float(found.summary()["cross_entropy"])

    tried = [s["n_slots"] for s in method.settings(val, setup.n_points)]
    assert loss(chosen["n_slots"]) == min(loss(n) for n in tried)


def test_the_ledger_adds_up_to_the_cost() -> None:
    cohort = tiny_cohort()
    policy = FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2))
    outcome = rollout(policy, cohort)
    spent = ledger(outcome, cohort.catalog)
    assert set(spent) == {"blood", "scan", "draw fee"}
    assert sum(spent.values()) == pytest.approx(outcome.cost)
    assert spent["draw fee"] == pytest.approx(spent["blood"] / 2)
