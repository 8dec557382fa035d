"""What a policy expects before the first visit, against what happens."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.environment import Environment
from nocta.core.errors import PlanError
from nocta.core.losses import TrajectoryLoss, trajectory_losses
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.rollout import rollout
from nocta.evaluation.isolation import IsolatedPolicy
from nocta.exact.task import synthetic_task
from nocta.methods.contract import Method
from nocta.methods.reference.method import Everything, Nothing, Static
from nocta.methods.reference.periodic import Periodic
from nocta.methods.references import EVERYTHING, ReferencePolicy
from nocta.methods.saving import SavedMethod, load_saved, save_method
from nocta.model.nocta import NOCTA
from nocta.predictors.bayes import BayesPredictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.runs.job import run_job
from nocta.runs.learning import FittedPredictor
from nocta.runs.promise import Promise, ask
from nocta.runs.record import Job, JobRecord
from nocta.runs.results import TIMES
from nocta.runs.setup import DataSource, Setup
from nocta.testing import RunningMeanPredictor, tiny_cohort
from small_models import Parts


def promise(policy: Policy, cohort: Cohort, budget: float | None = None) -> Promise:
    expected = ask(policy, cohort, budget=budget, availability="on-arrival", seed=0)
    return Promise.of(expected, rollout(policy, cohort, budget=budget))


def fitted(kind: type[Method]) -> Method:
    val = tiny_cohort(60, seed=1)
    return kind().fit(val, val, seed=0, predictor=RunningMeanPredictor(2))


@pytest.mark.parametrize("kind", [Nothing, Everything, Static, Periodic])
def test_a_fixed_schedule_keeps_its_promise_on_its_own_validation(kind: type[Method]) -> None:
    val, method = tiny_cohort(60, seed=1), fitted(kind)
    for setting in method.settings(val, 3):
        policy = method.policy(setting)
        found = promise(policy, val).measures()
        assert found["expected_loss"] == pytest.approx(found["realized_loss"])
        assert found["expected_cost"] == pytest.approx(rollout(policy, val).cost)


def test_a_schedule_that_the_budget_cuts_short_promises_nothing() -> None:
    found = promise(fitted(Everything).policy({}), tiny_cohort(), budget=2.0)
    assert np.isnan(found.expected_losses).all()
    assert math.isnan(found.measures()["expected_cost"])


@pytest.mark.parametrize("kind", [Everything, Static])
def test_a_saved_schedule_keeps_its_promise(
    kind: type[Method], tiny_predictor: CrossFittedPredictor, tmp_path: Path
) -> None:
    val = tiny_cohort(60, seed=1)
    method = kind().fit(val, val, seed=0, predictor=tiny_predictor)
    save_method(SavedMethod.of(method, val, 0), tmp_path / "m")
    setting = method.settings(val, 2)[-1]
    before, after = (
        promise(m.policy(setting), val).measures()
        for m in (method, load_saved(tmp_path / "m").method)
    )
    assert before == after


def test_the_planner_promises_the_plan_it_begins_with(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    policy = tiny_models["amortized"].policy(0.01)
    found = promise(policy, test)
    again = promise(policy, test)  # asking changes nothing
    np.testing.assert_array_equal(found.expected_losses, again.expected_losses)
    plans = policy.best_plans(Environment(test).observe()).plans[:, 0]
    listed = test.catalog.cost_of(plans)
    assert (found.expected_costs <= listed + 1e-9).all()
    assert found.expected_costs.max() > 0
    limited = promise(policy, test, budget=0.0)
    assert limited.expected_costs.tolist() == [0.0] * len(test)
    assert limited.expected_losses.mean() >= found.expected_losses.mean()


def test_a_policy_promises_in_a_process_of_its_own_what_it_does_here(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts
) -> None:
    test = tiny_parts[2]
    policy = tiny_models["amortized"].policy(0.01)
    policy.promised_loss = "mean-cross-entropy"
    here = promise(policy, test, budget=5.0)
    with IsolatedPolicy.of(policy) as isolated:
        there = promise(isolated, test, budget=5.0)
    for name, expected in vars(here).items():
        np.testing.assert_array_equal(getattr(there, name), expected)
    end = ReferencePolicy(policy, {"acquire": EVERYTHING, "at": {}})
    with IsolatedPolicy.of(end) as isolated:
        assert np.isnan(promise(isolated, test).expected_losses).all()
        assert rollout(isolated, test).cost == rollout(end, test).cost


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("cross-entropy", 2 * np.log(2)), ("mean-cross-entropy", np.log(2)), ("error", 1.0)],
)
def test_losses_of_a_trajectory(kind: TrajectoryLoss, expected: float) -> None:
    labels = np.array([[0, 1, -1], [-1, -1, -1]])
    found = trajectory_losses(labels, np.full((2, 3, 2), 0.5), kind)
    assert found == pytest.approx([expected, 0.0])


class Silent(Policy):
    """Acquires nothing and promises nothing, or too little."""

    predictor = RunningMeanPredictor(2)

    def decide(self, observation: Observation) -> Decision:
        n, m = len(observation), observation.catalog.n_features
        return Decision(np.full(n, Decision.STOP), np.zeros((n, m), dtype=bool))


def test_a_policy_need_not_promise_but_then_for_everybody() -> None:
    cohort, policy = tiny_cohort(5), Silent()
    found = promise(policy, cohort).measures()
    assert math.isnan(found["expected_loss"])
    assert found["realized_loss"] > 0
    policy.promise = lambda observation: (np.zeros(1), np.zeros(1))  # type: ignore[method-assign]
    with pytest.raises(PlanError, match="a loss and a charge of each of 5 subjects"):
        promise(policy, cohort)


def test_jobs_record_what_was_promised_and_what_happened() -> None:
    setup = Setup(DataSource("synthetic", max_subjects=40), n_points=2, audit_subjects=0)
    record = run_job(setup, Job("static", 0), FittedPredictor(BayesPredictor(synthetic_task()), 0))
    for row, entry in zip(record.rows, record.details, strict=True):
        assert row.expected_loss == entry.expected_loss >= 0
        assert row.expected_cost == pytest.approx(row.cost, rel=0.5)
        assert row.realized_loss == pytest.approx(row.cross_entropy * row.n_labels / row.n_subjects)


@pytest.mark.parametrize("method", ["static", "nothing"])
def test_isolation_changes_no_number_of_a_job(method: str) -> None:
    setup = Setup(DataSource("pbc-stage", max_subjects=60), n_points=2, audit_subjects=0)
    shared = FittedPredictor(RunningMeanPredictor(2), 0.0)
    open_, isolated = (
        run_job(replace(setup, audit_subjects=n), Job(method, 0), shared) for n in (0, 6)
    )
    assert isolated.audit is not None

    def plain(record: JobRecord) -> str:
        rows = [{k: v for k, v in vars(row).items() if k not in TIMES} for row in record.rows]
        return str((rows, [replace(entry, together=[]) for entry in record.details]))

    assert plain(open_) == plain(isolated)
