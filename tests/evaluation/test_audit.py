"""The audit catches each kind of leak by name, and lets honest policies pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.environment import Environment
from nocta.core.errors import LeakageError, PlanError
from nocta.core.history import History
from nocta.core.policy import Decision, Policy
from nocta.evaluation.audit import audit, audit_factory, check_rules
from nocta.evaluation.custody import held_data
from nocta.evaluation.replay import RecordingPolicy, Terms, record, replay
from nocta.methods.fixed import FixedPlanPolicy, RandomPolicy
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots
from nocta.testing import (
    LEAKY_POLICIES,
    NonCausalPredictor,
    RunningMeanPredictor,
    tiny_cohort,
)

DEPENDS_ON = {
    "value": "a value that was never acquired",
    "future": "a value of a later time",
    "label": "a label",
    "availability": "which later values, visits or labels exist",
    "result": "a result that is pending until the visit is over",
}


@pytest.fixture
def cohort():
    return tiny_cohort(40)


@pytest.fixture
def everything(cohort):
    return FixedPlanPolicy(cohort.catalog.open_slots, RunningMeanPredictor(2))


def test_an_honest_policy_passes_and_is_counted(cohort, everything):
    report = audit(everything, cohort, n_subjects=30)
    assert report.n_subjects == 30
    assert report.n_decisions >= 30
    assert report.n_predictions == 30 * (1 + 2 + 3 + 4)
    assert report.cuts == (-1, 0, 1, 2, 3)
    assert "No leak found in FixedPlanPolicy" in str(report)
    assert report.to_dict()["kinds"] == ("value", "future", "label", "availability")


@pytest.mark.parametrize("kind", LEAKY_POLICIES)
def test_each_kind_of_leak_is_caught_by_name(cohort, kind):
    with pytest.raises(LeakageError, match=f"its decision .* depends on {DEPENDS_ON[kind]}"):
        audit_factory(LEAKY_POLICIES[kind], cohort, Terms())


@pytest.mark.parametrize("kind", ["value", "future", "label", "result"])
def test_leaks_are_caught_when_availability_is_known(cohort, kind):
    with pytest.raises(LeakageError, match=DEPENDS_ON[kind]):
        audit_factory(LEAKY_POLICIES[kind], cohort, Terms(availability="known"))


def test_results_shown_at_once_are_no_leak(cohort):
    policy = ReadsWhatItOrdered(RunningMeanPredictor(2))
    report = audit(policy, cohort, results="at-once")
    assert report.results == "at-once"
    assert "result" not in report.kinds
    assert "result" in audit(policy, cohort).kinds


def test_an_environment_that_shows_pending_results_is_caught(cohort, monkeypatch):
    policy = ReadsWhatItOrdered(RunningMeanPredictor(2))
    nothing = property(lambda self: np.zeros_like(self._requested))
    monkeypatch.setattr(Environment, "_pending", nothing)
    with pytest.raises(PlanError, match="shown before its visit was over"):
        audit(policy, cohort)


@pytest.mark.parametrize("kind", LEAKY_POLICIES)
def test_a_policy_that_holds_the_test_subjects_is_refused(cohort, kind):
    policy = LEAKY_POLICIES[kind](cohort)
    with pytest.raises(LeakageError, match="holds the values and labels of the subjects"):
        audit(policy, cohort)


def test_a_non_causal_predictor_is_caught(cohort):
    policy = FixedPlanPolicy(cohort.catalog.open_slots, NonCausalPredictor(2))
    with pytest.raises(LeakageError, match=r"its prediction .* depends on a value of a later time"):
        audit(policy, cohort)


class ReadsWhatItOrdered(Policy):
    """Orders blood, and a scan where the blood, as far as it is shown, is high."""

    acts_within_visit = True

    def __init__(self, predictor):
        self.predictor = predictor

    def decide(self, observation):
        n = np.arange(len(observation))
        blood = observation.history.values[n, observation.time, 0]
        scan = (
            (blood > 0)
            & observation.visiting
            & affordable_slots(observation)[n, observation.time, 1]
        )
        later = np.where(observation.time < 3, 2 * observation.time + 2, -1)
        return acquire_slot(np.where(scan, 2 * observation.time + 1, later), observation)


class CountsLater(RunningMeanPredictor):
    """Not causal, but blind to values: it looks at how much was acquired in all."""

    def predict_proba(self, history):
        share = history.acquired.mean(axis=(1, 2))[:, None, None]
        return np.broadcast_to(
            np.concatenate([1 - share, share], axis=2), (*history.acquired.shape[:2], 2)
        ).astype(np.float32)


def test_a_prediction_from_later_acquisitions_is_caught(cohort):
    plan = cohort.catalog.open_slots
    with pytest.raises(LeakageError, match="which later values, visits or labels exist"):
        audit(FixedPlanPolicy(plan, CountsLater(2)), cohort)
    # Where availability is known beforehand, only forgetting what came later shows it.
    with pytest.raises(LeakageError, match="changed with what was acquired later"):
        audit(FixedPlanPolicy(plan, CountsLater(2)), cohort, availability="known")


class FollowsTheCrowd(RandomPolicy):
    """Stops for some by a number computed from all: subjects leak into each other."""

    def decide(self, observation):
        decision = super().decide(observation)
        crowd = int(1000 * np.nansum(observation.history.values))
        stop = (observation.rows + crowd) % 4 == 0
        return Decision(np.where(stop, Decision.STOP, decision.time), decision.features)


def test_a_policy_that_mixes_subjects_is_caught(cohort):
    policy = FollowsTheCrowd(0.3, RunningMeanPredictor(2))
    with pytest.raises(LeakageError, match="its decision"):
        audit(policy, cohort)


class LooksAtLabelAndValue(Policy):
    """A look at two things at once: none of them alone changes anything it does."""

    def __init__(self, cohort):
        self.cohort = cohort
        self.predictor = RunningMeanPredictor(2)

    def decide(self, observation):
        world, truth = self.cohort, tiny_cohort(40)
        both = (world.labels[observation.rows] != truth.labels[observation.rows]).any(axis=1)
        both &= (
            (world.values[observation.rows] != truth.values[observation.rows])
            & ~np.isnan(truth.values[observation.rows])
        ).any(axis=(1, 2))
        time = np.where(both, 0, Decision.STOP)
        return Decision(time, np.ones((len(time), 2), dtype=bool))


def test_a_leak_of_two_things_together_is_still_caught(cohort):
    with pytest.raises(LeakageError, match="depends on a combination of things"):
        audit_factory(LooksAtLabelAndValue, cohort, Terms(availability="known"))


def test_the_sample_follows_the_seed_and_budgets_follow_the_sample(cohort, everything):
    limits = np.linspace(0, 18, len(cohort))
    report = audit(everything, cohort, n_subjects=12, seed=3, budget=limits)
    assert report.n_subjects == 12


def test_many_slots_are_cut_at_a_few_places(cohort, everything):
    assert audit(everything, cohort, n_cuts=3).cuts == (-1, 1, 3)


def test_an_earlier_rollout_leaves_no_suspicion(cohort, everything):
    class Remembers(FixedPlanPolicy):
        def begin(self, n_subjects, seed):
            self.notes = []

        def decide(self, observation):
            self.notes.append(observation.history.values)
            return super().decide(observation)

    policy = Remembers(cohort.catalog.open_slots, RunningMeanPredictor(2))
    record(policy, cohort, Terms(), 0)
    audit(policy, cohort)


def test_rules_are_judged_from_the_records(cohort, everything):
    recording = record(everything, cohort, Terms(budget=6.0), 0)
    check_rules(recording, cohort)
    observation, decision = recording.rounds[0]
    recording.rounds.append((observation, decision))
    with pytest.raises(PlanError, match="went back in time"):
        check_rules(recording, cohort)


def test_rules_notice_a_wrong_bill(cohort, everything):
    recording = record(everything, cohort, Terms(), 0)
    recording.rollout.cost_per_visit[0, 0] += 1
    with pytest.raises(PlanError, match="charges differ from the prices"):
        check_rules(recording, cohort)


def test_a_recording_keeps_every_round(cohort, everything):
    recorder = RecordingPolicy(everything)
    recording = record(recorder, cohort, Terms(), 0)
    assert len(recorder.rounds) == len(recording.rounds) == cohort.n_times
    assert (recording.requested == cohort.catalog.open_slots).all()


def test_a_replay_in_the_same_world_changes_nothing(cohort):
    policy = RandomPolicy(0.4, RunningMeanPredictor(2))
    recording = record(policy, cohort, Terms(budget=7.0), 5)
    rounds = list(replay(policy, cohort, recording, cohort.n_times - 1))
    assert len(rounds) == len(recording.rounds)
    assert not any(r.changed_view().any() or r.changed_decision().any() for r in rounds)


def test_a_replay_ends_where_everybody_passed_the_cut(cohort, everything):
    recording = record(everything, cohort, Terms(), 0)
    assert len(list(replay(everything, cohort, recording, 0))) == 2


@pytest.mark.parametrize(
    "hide",
    [
        lambda cohort: cohort,
        lambda cohort: {"a": [(cohort.values,)]},
        lambda cohort: cohort.values[3:],
        lambda cohort: cohort.values.copy(),
        lambda cohort: lambda: cohort.labels,
        lambda cohort: cohort.subset,
    ],
    ids=["cohort", "nested", "view", "copy", "closure", "method"],
)
def test_held_data_is_found_wherever_it_is(cohort, hide):
    assert held_data(hide(cohort), cohort)


def test_held_data_is_found_in_tensors(cohort):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 2)
    module.register_buffer("bank", torch.from_numpy(cohort.values))
    assert held_data(module, cohort) == "values"


def test_other_subjects_may_be_held(cohort, everything):
    assert not held_data(tiny_cohort(40, seed=9), cohort)
    assert not held_data(everything, cohort)


def test_an_environment_that_shows_too_much_is_caught(cohort, everything, monkeypatch):
    def show_all(self, rows=None):
        chosen = self._cohort if rows is None else self._cohort.subset(rows)
        asked = self._requested if rows is None else self._requested[rows]
        return replace(History.of(chosen, asked), values=chosen.values)

    monkeypatch.setattr(Environment, "history", show_all)
    with pytest.raises(LeakageError, match="what the environment showed for subject"):
        audit(everything, cohort)
