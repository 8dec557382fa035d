"""Constraints: how they are said, what cannot hold, and that no policy ever breaks one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.cohort import Cohort
from nocta.core.constraints import Constraints, parse
from nocta.core.errors import BudgetTooSmall, ConfigError, DataError, PlanError
from nocta.core.policy import Decision, Observation, Policy
from nocta.core.rollout import rollout
from nocta.methods.fixed import FixedPlanPolicy, RandomPolicy, first_affordable
from nocta.methods.one_at_a_time import acquire_slot, affordable_slots
from nocta.testing import RunningMeanPredictor, check_policy, tiny_cohort
from obedience import broken

PREDICTOR = RunningMeanPredictor(2)
FULL = np.ones((4, 2), dtype=bool)
NOTHING = np.zeros((4, 2), dtype=bool)


def requested(plan: NDArray[np.bool_], constraints: Any, **how: Any) -> NDArray[np.bool_]:
    """What everybody is asked for under a fixed plan, `(n, L, M)`; nothing is missing."""
    cohort = complete(6).constrained(constraints)
    return rollout(FixedPlanPolicy(plan, PREDICTOR), cohort, **how).history.requested


def complete(n_subjects: int) -> Cohort:
    cohort = tiny_cohort(n_subjects)
    visits = np.ones_like(cohort.visits)
    return replace(cohort, values=np.nan_to_num(cohort.values), visits=visits)


# -- in words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("always blood", {"always": {"blood": True}}),
        ("always blood at 0,2", {"always": {"blood": [0, 2]}}),
        ("never scan at first", {"never": {"scan": [0]}}),
        ("at most 2 scan", {"at_most": {"scan": 2}}),
        ("at most 3 visits", {"max_visits": 3}),
        ("2 apart scan", {"apart": {"scan": 2}}),
        ("together blood, scan", {"together": [["blood", "scan"]]}),
        ("look at me after CT at rest", {"after": {"look at me": ["CT at rest"]}}),
    ],
)
def test_a_constraint_can_be_said_in_words(text, expected):
    assert parse(text) == expected
    assert Constraints.read(text) == Constraints.read(expected)
    assert Constraints.read(Constraints.read(expected).to_dict()) == Constraints.read(expected)


def test_an_unknown_form_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'sometimes scan' is not a constraint. Write 'always"):
        Constraints.read("sometimes scan")


def test_the_stricter_of_two_limits_holds():
    both = Constraints.read(["at most 3 scan", "at most 2 scan", "2 apart scan", "3 apart scan"])
    assert (both.at_most, both.apart) == ({"scan": 2}, {"scan": 3})


def test_a_catalog_with_constraints_survives_saving():
    catalog = tiny_cohort(2).catalog.constrained(["always blood at 1", "scan after blood"])
    assert Catalog.from_dict(catalog.to_dict()) == catalog


def test_a_catalog_without_constraints_is_saved_as_before():
    assert {"constraints", "protocols"}.isdisjoint(tiny_cohort(2).catalog.to_dict())


# -- conflicts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("never scn", r"never names 'scn', which is not a feature. Did you mean 'scan'\?"),
        ("always scan at 9", "names slot 9, but slots run from 0 to 3"),
        (["always scan at 1", "never scan"], "always acquired at slot 1, but never acquired"),
        (["always scan", "at most 2 scan"], "always acquired at 4 slots, but at most 2 times"),
        (["always scan", "2 apart scan"], "always acquired at slots 0 and 1, but"),
        (["always scan", "at most 3 visits"], r"4 slots \(0, 1, 2, 3\), but max_visits is 3"),
        (["scan after blood", "blood after scan"], "'scan' would be acquired only after itself"),
        (["always scan at 0", "scan after blood"], "'scan' is always acquired at slot 0, but only"),
        (["together blood, scan", "scan after blood"], "but also together with it"),
        (
            ["always blood at 1", "together blood, scan", "never scan at 1"],
            "'scan' is always acquired, with its partners, at slot 1, but never",
        ),
        (["scan after blood", "never blood"], "so it can never be acquired"),
    ],
)
def test_what_cannot_hold_is_refused_with_the_conflict(given, message):
    with pytest.raises(DataError, match=message):
        tiny_cohort(2).constrained(given)


def test_a_budget_below_what_is_always_acquired_is_refused_before_any_work():
    class Untouched(Policy):
        def decide(self, observation: Observation) -> Decision:
            raise AssertionError("nothing should be decided")

    cohort = tiny_cohort(4).constrained("always scan")
    with pytest.raises(BudgetTooSmall, match="always acquire, which costs 12"):
        rollout(Untouched(), cohort, budget=11)


# -- what they do -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "plan", "expected"),
    [
        ("never scan at 0,1", FULL, [[1, 0], [1, 0], [1, 1], [1, 1]]),
        ("at most 2 blood", FULL, [[1, 1], [1, 1], [0, 1], [0, 1]]),
        ("3 apart scan", FULL, [[1, 1], [1, 0], [1, 0], [1, 1]]),
        ("at most 2 visits", FULL, [[1, 1], [1, 1], [0, 0], [0, 0]]),
        ("scan after blood", FULL, [[1, 0], [1, 1], [1, 1], [1, 1]]),
        ("always scan at 2", NOTHING, [[0, 0], [0, 0], [0, 1], [0, 0]]),
        (["always scan at 2", "together blood, scan"], NOTHING, [[0, 0], [0, 0], [1, 1], [0, 0]]),
        (["always scan at 3", "at most 1 scan"], FULL, [[1, 0], [1, 0], [1, 0], [1, 1]]),
        (["always scan at 3", "2 apart scan"], FULL, [[1, 1], [1, 0], [1, 0], [1, 1]]),
        (["always scan at 3", "at most 2 visits"], FULL, [[1, 1], [0, 0], [0, 0], [1, 1]]),
    ],
)
def test_a_fixed_plan_is_carried_out_as_far_as_allowed(given, plan, expected):
    assert (requested(plan, given) == np.array(expected, dtype=bool)).all()


def test_the_budget_for_what_is_always_acquired_is_set_aside():
    found = requested(FULL, "always scan at 3", budget=4.5)
    assert (found == np.array([[1, 0], [0, 0], [0, 0], [0, 1]], dtype=bool)).all()


def test_what_belongs_together_is_left_out_if_the_budget_is_short():
    blood = np.array([[1, 0]] * 4, dtype=bool)
    found = requested(blood, "together blood, scan", budget=10)
    assert (found == np.array([[1, 1], [1, 1], [0, 0], [0, 0]], dtype=bool)).all()


def test_what_comes_after_something_unavailable_is_not_acquired():
    cohort = complete(3)
    cohort.values[:, 0, 0] = np.nan  # the first blood test is lost
    cohort = cohort.constrained(["always blood at 0", "always scan at 1", "scan after blood"])
    done = rollout(FixedPlanPolicy(NOTHING, PREDICTOR), cohort)
    assert done.history.unavailable[:, 0, 0].all()
    assert not done.history.acquired.any()


class _Stubborn(Policy):
    """Requests what it likes, and does not ask what is open."""

    predictor = PREDICTOR

    def decide(self, observation: Observation) -> Decision:
        later = observation.time + 1
        return Decision(later, np.ones((len(later), 2), dtype=bool))


def test_a_policy_that_ignores_what_is_closed_is_stopped():
    cohort = complete(3).constrained("at most 1 scan")
    with pytest.raises(PlanError, match=r"'scan' at slot 1.*acquired at most once"):
        rollout(_Stubborn(), cohort)


# -- never broken -------------------------------------------------------------------------


class _OneAtATime(Policy):
    """Acquires random affordable slots one after the other, within visits."""

    acts_within_visit = True
    predictor = PREDICTOR

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def decide(self, observation: Observation) -> Decision:
        rng = np.random.default_rng([self.seed, int(observation.requested.sum())])
        worth = np.where(affordable_slots(observation), rng.random(FULL.shape), -1.0)
        flat = worth.reshape(len(worth), -1)
        return acquire_slot(np.where(flat.max(axis=1) > 0.3, flat.argmax(axis=1), -1), observation)


class _Whole(Policy):
    """Plans random slots of all visits to come, as far as they are open and affordable."""

    predictor = PREDICTOR

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def decide(self, observation: Observation) -> Decision:
        rng = np.random.default_rng([self.seed, int(observation.requested.sum())])
        shape = observation.open_slots.shape
        return first_affordable(observation, (rng.random(shape) < 0.6) & observation.open_slots)


slots = st.one_of(st.just(True), st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True))
names = st.sampled_from(["blood", "scan"])
tables = st.fixed_dictionaries(
    {},
    optional={
        "always": st.dictionaries(names, slots, max_size=2),
        "never": st.dictionaries(names, slots, max_size=1),
        "at_most": st.dictionaries(names, st.integers(1, 3), max_size=2),
        "apart": st.dictionaries(names, st.integers(1, 3), max_size=2),
        "max_visits": st.integers(1, 4),
        "together": st.just([["blood", "scan"]]),
        "after": st.sampled_from([{"blood": "scan"}, {"scan": "blood"}]),
    },
)


@settings(max_examples=120, deadline=None)
@given(
    table=tables,
    seed=st.integers(0, 999),
    kind=st.sampled_from(["fixed", "random", "whole", "one"]),
    share=st.sampled_from([None, 0.0, 0.3, 0.7]),
    results=st.sampled_from(["after-visit", "at-once"]),
    known=st.booleans(),
)
def test_no_policy_ever_breaks_a_constraint(table, seed, kind, share, results, known):
    cohort = tiny_cohort(12, seed=seed % 7)
    try:
        cohort = cohort.constrained(table)
    except DataError:
        assume(False)
    catalog = cohort.catalog
    policy: Policy = {
        "fixed": FixedPlanPolicy(catalog.open_slots, PREDICTOR),
        "random": RandomPolicy(0.5, PREDICTOR),
        "whole": _Whole(seed),
        "one": _OneAtATime(seed),
    }[kind]
    budget = None
    if share is not None:
        budget = max(share * catalog.price_of_everything, catalog.price_of_required)
    availability = "known" if known else "on-arrival"
    done = rollout(
        policy, cohort, budget=budget, seed=seed, results=results, availability=availability
    )
    kept = Constraints.read(table)
    wrong = broken(kept, catalog, done.history)
    if known:  # what is known to be missing is not requested
        wrong = [kind for kind in wrong if kind != "always"]
    assert not wrong
    assert budget is None or done.costs.max() <= budget + 1e-9


@pytest.mark.parametrize(
    "given",
    [
        ["always blood at 1,3", "at most 3 visits"],
        ["scan after blood", "2 apart scan"],
        ["together blood, scan", "at most 2 blood"],
    ],
)
@pytest.mark.parametrize("make", [lambda: RandomPolicy(0.5, PREDICTOR), lambda: _OneAtATime(1)])
def test_the_contract_of_policies_holds_under_constraints(given, make):
    cohort = tiny_cohort(16).constrained(given)
    if isinstance(make(), RandomPolicy):
        check_policy(lambda _: make(), cohort, n_alone=2)
    else:
        rollout(make(), cohort)
