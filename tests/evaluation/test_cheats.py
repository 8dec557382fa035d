"""Somebody who tries: each way to reach the hidden values is caught, or leads nowhere."""

from __future__ import annotations

import gc
import io
import os
import pickle
import sys
import time

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, LeakageError, ProcessKilled
from nocta.core.policy import Decision
from nocta.core.rollout import rollout
from nocta.evaluation.audit import audit
from nocta.evaluation.isolation import Cell, IsolatedPolicy, pack, plain_loads
from nocta.methods.fixed import FixedPlanPolicy, RandomPolicy
from nocta.testing import RunningMeanPredictor, check_policy, check_predictor, tiny_cohort

PREDICTOR = RunningMeanPredictor(2)
QUICK = {"budget_shares": [None], "availabilities": ["on-arrival"], "n_alone": 2, "n_cuts": 2}
#: What a careless or clever author leaves in a module.
NOTES: dict[str, object] = {}


@pytest.fixture
def cohort():
    NOTES.clear()
    return tiny_cohort(40)


class Cheat(FixedPlanPolicy):
    """Acquires for those whose first label is 1, as far as `labels` can find it out."""

    def __init__(self, cohort):
        super().__init__(cohort.catalog.open_slots, PREDICTOR)

    def labels(self, observation):
        raise NotImplementedError

    def decide(self, observation):
        decision, known = super().decide(observation), self.labels(observation)
        if known is None:
            return decision
        worth = np.asarray(known)[observation.rows, 0] == 1
        return Decision(np.where(worth, decision.time, Decision.STOP), decision.features)


class Holds(Cheat):
    def __init__(self, cohort):
        super().__init__(cohort)
        self.c = cohort

    def labels(self, observation):
        return self.c.labels


class HoldsAView(Holds):
    def __init__(self, cohort):
        super().__init__(cohort)
        self.c = cohort.labels[1:]  # its `base` is all of them

    def labels(self, observation):
        return self.c if self.c.base is None else self.c.base


class HoldsACopyOfSome(Cheat):
    """No whole array: records of every other subject, as a list of arrays."""

    def __init__(self, cohort):
        super().__init__(cohort)
        self.table = [cohort.values[i : i + 1].copy() for i in range(0, len(cohort), 2)]

    def labels(self, observation):
        return [[i % 2] for i in range(100)]


class CollectsGarbage(Cheat):
    def labels(self, observation):
        found = [item for item in gc.get_objects() if type(item) is Cohort and len(item) == 40]
        return found[0].labels if found else None


class ReadsFrames(Cheat):
    def labels(self, observation):
        frame = sys._getframe()
        while frame is not None:
            for name in ("cohort", "_cohort"):
                if isinstance(frame.f_locals.get(name), Cohort):
                    return frame.f_locals[name].labels
            frame = frame.f_back
        return None


class ReadsReferrers(Cheat):
    """Climbs from what it is shown to whoever else holds it."""

    def labels(self, observation):
        referrers = [r for r in gc.get_referrers(observation.catalog) if isinstance(r, dict)]
        return next((r["labels"] for r in referrers if "labels" in r and "visits" in r), None)


class ReadsAGlobal(Cheat):
    def __init__(self, cohort):
        super().__init__(cohort)
        NOTES["labels"] = cohort.labels

    def labels(self, observation):
        return NOTES.get("labels")


class UsesGlobalRandomness(Cheat):
    def labels(self, observation):
        return np.random.randint(2, size=(100, 1))


class CountsCalls(Cheat):
    """Says something about a subject by how often it was asked before."""

    calls = 0

    def begin(self, n_subjects, seed):
        self.calls = 0

    def labels(self, observation):
        self.calls += 1
        return np.full((100, 1), self.calls % 2)


class KeepsNotesByRow(Cheat):
    """What an earlier roll-out showed, by position."""

    def __init__(self, cohort):
        super().__init__(cohort)
        self.notes = {i: int(label) for i, label in enumerate(cohort.labels[:, 0])}

    def labels(self, observation):
        return [[self.notes.get(i, 1)] for i in range(2 * len(self.notes))]


def _first_labels(cohort):
    return zip(cohort.context[:, 0], cohort.labels[:, 0], strict=True)


class KeepsNotesByValue(Cheat):
    """What an earlier roll-out showed, by the age that identifies a subject."""

    def __init__(self, cohort):
        super().__init__(cohort)
        self.notes = {age.tobytes(): int(x) for age, x in _first_labels(cohort)}

    def labels(self, observation):
        out = np.ones((1000, 1))
        for row, age in zip(observation.rows, observation.history.context[:, 0], strict=True):
            out[row] = self.notes.get(age.tobytes(), 1)
        return out


CAUGHT = {
    Holds: "holds the values and labels",
    HoldsAView: "acts differently in a process that never held",
    HoldsACopyOfSome: "holds the values",
    CollectsGarbage: "acts differently in a process that never held",
    ReadsFrames: "acts differently in a process that never held",
    ReadsReferrers: "acts differently in a process that never held",
    ReadsAGlobal: "acts differently in a process that never held",
    UsesGlobalRandomness: "acts differently in a process that never held",
    KeepsNotesByRow: "by the position of a subject",
    KeepsNotesByValue: "by exact values",
}


@pytest.mark.parametrize("kind", CAUGHT, ids=lambda kind: kind.__name__)
def test_the_documented_check_fails_every_cheat(kind, cohort):
    policy = kind(cohort)
    with pytest.raises(LeakageError, match=CAUGHT[kind]):
        check_policy(lambda world: policy, cohort, **QUICK)


@pytest.mark.parametrize("kind", [Holds, HoldsAView, HoldsACopyOfSome, ReadsAGlobal])
def test_a_cheat_that_is_built_for_each_world_fails_too(kind, cohort):
    first = kind(cohort)
    with pytest.raises(LeakageError):
        check_policy(lambda world: first if NOTES.get("honest") else kind(cohort), cohort, **QUICK)


def test_a_factory_cannot_close_over_the_cohort(cohort):
    class Closes(Cheat):
        def labels(self, observation):
            return cohort.labels

    with pytest.raises(LeakageError, match=r"holds the (values|labels)"):
        check_policy(lambda world: Closes(world), cohort, **QUICK)


def test_the_number_of_calls_says_nothing(cohort):
    with pytest.raises((AssertionError, LeakageError)):
        check_policy(lambda world: CountsCalls(world), cohort, **QUICK)


class RemembersRollouts(Cheat):
    """Buys everything once, and decides by what it saw from then on."""

    def __init__(self, cohort):
        super().__init__(cohort)
        self.seen = {}

    def labels(self, observation):
        history = observation.history
        for row, values in zip(observation.rows, history.values, strict=True):
            self.seen[row] = max(self.seen.get(row, 0.0), float(np.nan_to_num(values).max()))
        return None if len(self.seen) < 40 or not self.was_here else self._known()

    was_here = False

    def begin(self, n_subjects, seed):
        self.was_here = bool(getattr(self, "seen", None))

    def _known(self):
        return [[int(self.seen.get(i, 9) > 1)] for i in range(100)]


def test_what_an_earlier_rollout_showed_is_forgotten_or_caught(cohort):
    with pytest.raises((AssertionError, LeakageError)):
        check_policy(lambda world: RemembersRollouts(world), cohort, **QUICK)
    policy = RemembersRollouts(cohort)
    with IsolatedPolicy.of(policy) as first:
        before = rollout(first, cohort)
    with IsolatedPolicy.of(policy) as second:  # another process: it knows nothing of the first
        assert np.array_equal(rollout(second, cohort).costs, before.costs)


class LooksUp(RunningMeanPredictor):
    """Predicts the label of whoever has this age."""

    def __init__(self, cohort):
        super().__init__(2)
        self.table = {a.tobytes(): int(x) for a, x in _first_labels(cohort)}

    def predict_proba(self, history):
        out = super().predict_proba(history)
        for i, age in enumerate(history.context[:, 0]):
            label = self.table.get(age.tobytes(), -1)
            if label >= 0:
                out[i] = np.eye(2)[label]
        return out


def test_a_predictor_that_looks_labels_up_by_context_is_caught(cohort):
    with pytest.raises(LeakageError, match="predicts by exact values"):
        check_predictor(LooksUp(cohort), cohort)
    policy = FixedPlanPolicy(cohort.catalog.open_slots, LooksUp(cohort))
    with pytest.raises(LeakageError, match="predicts by exact values"):
        check_policy(lambda world: policy, cohort, **QUICK)


# -- isolation -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CollectsGarbage, ReadsFrames, ReadsReferrers, ReadsAGlobal])
def test_there_is_nothing_to_find_in_a_cell(kind, cohort):
    honest = rollout(FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR), cohort)
    policy = kind(cohort)
    assert rollout(policy, cohort).cost < honest.cost  # here it works
    with IsolatedPolicy.of(policy) as isolated:
        assert np.array_equal(rollout(isolated, cohort).costs, honest.costs)


def test_an_isolated_policy_acts_to_the_bit_as_it_does_here(cohort):
    policy = RandomPolicy(0.4, PREDICTOR)
    with IsolatedPolicy.of(policy) as isolated:
        there, here = rollout(isolated, cohort, budget=7.0), rollout(policy, cohort, budget=7.0)
    assert np.array_equal(there.probabilities, here.probabilities)
    assert np.array_equal(there.history.requested, here.history.requested)


def test_an_audit_runs_nothing_of_a_packed_policy_here(cohort):
    NOTES["here"] = True
    report = audit(pack(_made_only_there), cohort, n_subjects=8, n_cuts=2)
    assert report.policy == "FixedPlanPolicy"


def _made_only_there():
    assert "here" not in NOTES
    return FixedPlanPolicy(tiny_cohort(2).catalog.open_slots, PREDICTOR)


class AnswersWithCode(Cheat):
    def decide(self, observation):
        return Decision(_Bomb(), _Bomb())


class _Bomb:
    def __array__(self, dtype=None, copy=None):
        return np.array([os.getcwd], dtype=object)


def test_an_answer_cannot_bring_code(cohort):
    with (
        pytest.raises(LeakageError, match="answered with a"),
        IsolatedPolicy.of(AnswersWithCode(cohort)) as isolated,
    ):
        rollout(isolated, cohort)
    with pytest.raises(LeakageError, match="plain data"):
        plain_loads(pickle.dumps(os.system))


class Dies(Cheat):
    def decide(self, observation):
        os._exit(1)


class Complains(Cheat):
    def decide(self, observation):
        raise ValueError("no bananas")


def test_errors_of_a_cell_are_errors_here(cohort):
    with pytest.raises(ValueError, match="no bananas"), IsolatedPolicy.of(Complains(cohort)) as one:
        rollout(one, cohort)
    with pytest.raises(ProcessKilled, match="ended in the middle"):
        audit(pack(lambda: Dies(cohort)), cohort, n_subjects=4)


def test_a_policy_that_cannot_travel_says_why(cohort):
    policy = FixedPlanPolicy(cohort.catalog.open_slots, PREDICTOR)
    policy.log = io.TextIOWrapper(io.BytesIO())
    with pytest.raises(ConfigError, match="FixedPlanPolicy cannot be sent"):
        check_policy(lambda world: policy, cohort, **QUICK)


def test_a_cell_ends_when_it_is_closed():
    cell = Cell()
    pid = cell._pid
    cell.close()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the cell is still running")
