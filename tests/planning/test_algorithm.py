"""Algorithm 1: plan, execute the earliest part, plan again, for each subject by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nocta.core.policy import Observation
from nocta.core.rollout import rollout
from nocta.model.nocta import NOCTA
from nocta.planning import algorithm as planner
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.search import FoundPlans
from nocta.testing import RunningMeanPredictor, check_policy, tiny_cohort
from small_models import ESTIMATORS, WEIGHT, Parts


class BloodUntil:
    """Plans blood at every later visit; drops the rest of the plan once a value was high."""

    def __init__(self, limit: float = 0.0) -> None:
        self.limit = limit
        self.sizes: list[int] = []
        self.weights: list[float] = []

    def __call__(self, observation: Observation, cost_weight: NDArray[np.float64], /) -> FoundPlans:
        self.sizes.append(len(observation))
        self.weights += cost_weight.tolist()
        assert len(np.unique(observation.time)) == 1
        plans = observation.open_slots & (np.arange(2) == 0)
        high = np.nan_to_num(observation.history.values[..., 0], nan=-9.0).max(axis=1)
        plans &= (high <= self.limit)[:, None, None]
        price = observation.catalog.cost_per_visit(plans).cumsum(axis=1)
        plans &= (price <= observation.remaining[:, None])[..., None]
        nobody = np.zeros((len(plans), 1))
        return FoundPlans(plans[:, None], nobody, nobody, cost_weight, nobody[:, 0])


def policy(search: BloodUntil, **options: object) -> PlanningPolicy:
    return PlanningPolicy(RunningMeanPredictor(2), search, 0.5, **options)  # type: ignore[arg-type]


def test_replanning_reacts_to_what_was_seen() -> None:
    cohort = tiny_cohort(60)
    done = rollout(policy(BloodUntil()), cohort)
    high = np.nan_to_num(done.history.values[..., 0], nan=-9.0) > 0
    first = np.where(high.any(axis=1), high.argmax(axis=1), cohort.n_times)
    after = np.arange(cohort.n_times)[None] > first[:, None]
    assert not done.history.requested[..., 0][after].any()
    assert (first < cohort.n_times).any()


def test_a_committed_plan_is_carried_out_whatever_is_seen() -> None:
    cohort = tiny_cohort(60)
    search = BloodUntil()
    done = rollout(policy(search, replan=False), cohort)
    assert done.history.requested[..., 0].all()
    assert len(search.sizes) == 1


def test_committed_subjects_may_come_one_at_a_time() -> None:
    cohort = tiny_cohort(6)
    together = rollout(policy(BloodUntil(), replan=False), cohort)
    acting = policy(BloodUntil(), replan=False)
    acting.begin(len(cohort), 0)
    from nocta.core.environment import Environment

    start = Environment(cohort).observe()
    for row in (3, 0, 5):
        decision = acting.decide(start.subset(np.array([row])))
        assert decision.time.tolist() == [0]
        assert decision.features.tolist() == [[True, False]]
    assert acting.decide(start).time.tolist() == [0] * 6
    assert together.history.requested[..., 0].all()


def test_a_committed_plan_keeps_to_the_budget() -> None:
    cohort = tiny_cohort(40)
    done = rollout(policy(BloodUntil(), replan=False), cohort, budget=3.2)
    assert done.costs.max() <= 3.2
    assert done.costs.max() >= 1.5


def test_a_new_roll_out_forgets_old_commitments() -> None:
    cohort = tiny_cohort(20)
    acting = policy(BloodUntil(), replan=False)
    first = rollout(acting, cohort)
    again = rollout(acting, cohort.subset(np.arange(20)[::-1]))
    np.testing.assert_array_equal(first.history.requested, again.history.requested[::-1])


def test_subjects_are_searched_for_in_chunks() -> None:
    search = BloodUntil()
    rollout(policy(search, chunk=7), tiny_cohort(40))
    assert max(search.sizes) <= 7


def test_each_subject_has_a_cost_weight_of_its_own() -> None:
    cohort = tiny_cohort(5)
    weights = np.array([0.5, 0.1, 0.4, 0.2, 0.3])
    search = BloodUntil(limit=-99.0)
    acting = PlanningPolicy(RunningMeanPredictor(2), search, weights)
    rollout(acting, cohort)
    assert sorted(search.weights) == sorted(weights.tolist())


def test_those_of_whom_the_same_is_known_are_planned_for_once() -> None:
    cohort = tiny_cohort(1)
    search = BloodUntil()
    rollout(policy(search), cohort.subset(np.zeros(30, dtype=int)))
    assert set(search.sizes) == {1}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_planning_once_for_equals_changes_nothing(
    name: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = tiny_parts[2]
    twins = test.subset(np.repeat(np.arange(8), 3))
    shared = tiny_models[name].rollout(twins, WEIGHT)

    def each(
        observation: Observation, weights: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return rows, np.arange(len(rows))

    monkeypatch.setattr(planner, "_distinct", each)
    apart = tiny_models[name].rollout(twins, WEIGHT)
    assert shared.history.requested.any()
    np.testing.assert_array_equal(shared.history.requested, apart.history.requested)


def test_whoever_watches_sees_every_plan() -> None:
    seen: list[tuple[int, int]] = []

    def watch(observation: Observation, found: FoundPlans) -> None:
        seen.extend(zip(observation.rows.tolist(), observation.time.tolist(), strict=True))
        assert len(found.plans) == len(observation)

    cohort = tiny_cohort(9)
    done = rollout(policy(BloodUntil(), on_plans=watch), cohort)
    assert len(seen) == done.n_decisions.sum()
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("replan", [True, False])
def test_planning_keeps_the_contract(replan: bool) -> None:
    check_policy(lambda _: policy(BloodUntil(), replan=replan), tiny_cohort(24))
