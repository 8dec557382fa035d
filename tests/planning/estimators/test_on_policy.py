"""Plans are remembered as they were made: nothing seen later has a say in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.rollout import rollout
from nocta.model.nocta import NOCTA
from nocta.planning.algorithm import PlanningPolicy
from nocta.planning.estimators.on_policy import PlanMemory, RememberedPlans
from small_models import WEIGHT, Parts


def remember(model: NOCTA, cohort: Cohort) -> PlanMemory:
    memory = PlanMemory()
    planner = model.planner_
    policy = PlanningPolicy(
        planner.predictor, planner.search(0.0, n_best=2), WEIGHT, on_plans=memory
    )
    rollout(policy, cohort)
    return memory


@pytest.fixture(scope="module")
def memory(tiny_models: dict[str, NOCTA], tiny_parts: Parts) -> PlanMemory:
    return remember(tiny_models["amortized"], tiny_parts[0])


def entries(memory: PlanMemory, until: int) -> set[tuple[int, int, bytes]]:
    found = zip(
        np.concatenate(memory.subjects),
        np.concatenate(memory.times),
        np.concatenate(memory.requests),
        strict=True,
    )
    return {(int(s), int(t), r.tobytes()) for s, t, r in found if t <= until}


def test_a_remembered_plan_never_depends_on_later_values(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, memory: PlanMemory
) -> None:
    train = tiny_parts[0]
    for slot in range(3):
        values = train.values.copy()
        values[:, slot + 1 :] = -3.0 * values[:, slot + 1 :] + 1.0
        changed = remember(tiny_models["amortized"], replace(train, values=values))
        assert entries(changed, slot) == entries(memory, slot)
    assert entries(changed, 3) == entries(memory, 3)  # after the last slot nothing is planned


def test_what_was_asked_for_before_stays_part_of_the_plan(memory: PlanMemory) -> None:
    times, requests = np.concatenate(memory.times), np.concatenate(memory.requests)
    assert len(memory) == len(requests)
    assert (times >= 0).any()
    at = requests[np.arange(len(times)), np.maximum(times, 0)]
    assert at[times >= 0].any(axis=1).all()  # the visit the subject is at was acquired


def draw(memory: PlanMemory, n: int, **options: float) -> tuple[np.ndarray, np.ndarray]:
    open_slots = np.ones((4, 2), dtype=bool)
    sampler = RememberedPlans(memory, n, open_slots, **options)
    return sampler(np.repeat(np.arange(n), 20), np.random.default_rng(0))


def test_only_the_planned_part_is_varied(memory: PlanMemory, tiny_parts: Parts) -> None:
    n = len(tiny_parts[0])
    asked, earliest = draw(memory, n, share=1.0, flips=4.0)
    known = {
        (s, t, np.frombuffer(r, dtype=bool).reshape(4, 2)[: t + 1].tobytes())
        for s, t, r in entries(memory, 3)
    }
    who = np.repeat(np.arange(n), 20)
    for s, t, request in zip(who, earliest, asked, strict=True):
        assert (int(s), int(t), request[: t + 1].tobytes()) in known


def test_without_flips_plans_come_back_as_made(memory: PlanMemory, tiny_parts: Parts) -> None:
    n = len(tiny_parts[0])
    asked, earliest = draw(memory, n, share=1.0, flips=0.0)
    who = np.repeat(np.arange(n), 20)
    drawn = {(int(s), int(t), r.tobytes()) for s, t, r in zip(who, earliest, asked, strict=True)}
    assert drawn <= entries(memory, 3)


def test_strangers_get_random_requests(memory: PlanMemory, tiny_parts: Parts) -> None:
    n = len(tiny_parts[0])
    sampler = RememberedPlans(memory, n + 2, np.ones((4, 2), dtype=bool), share=1.0)
    _, earliest = sampler(np.array([n, n + 1, 0]), np.random.default_rng(0))
    assert earliest[:2].tolist() == [-1, -1]


def test_the_share_decides_how_many_are_remembered(memory: PlanMemory, tiny_parts: Parts) -> None:
    n = len(tiny_parts[0])
    never, _ = draw(memory, n, share=0.0, flips=0.0)
    drawn = {r.tobytes() for r in never}
    assert len(drawn) > len({r for _, _, r in entries(memory, 3)})


def test_closed_slots_are_never_drawn(memory: PlanMemory, tiny_parts: Parts) -> None:
    n = len(tiny_parts[0])
    open_slots = np.ones((4, 2), dtype=bool)
    open_slots[1, 1] = False
    asked, _ = RememberedPlans(memory, n, open_slots, flips=6.0)(
        np.repeat(np.arange(n), 10), np.random.default_rng(0)
    )
    assert not asked[:, 1, 1].any()
