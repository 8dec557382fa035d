"""Active sensing keeps the contract, prices follow-ups as published, and learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError
from nocta.core.rollout import rollout
from nocta.methods.fixed import RandomPolicy
from nocta.methods.ras.method import As, Ras
from nocta.methods.ras.networks import Action, ActorCritic, Intervals
from nocta.methods.ras.pretraining import auxiliary_requests
from nocta.methods.ras.simulation import Prices, Simulator, jensen_shannon
from nocta.methods.ras.training import (
    ActorTraining,
    RasTraining,
    advantages,
    discounted_returns,
    worst,
)
from nocta.methods.registry import method_class
from nocta.testing import check_policy, tiny_cohort, tiny_counter_cohort

WEIGHT = 200.0
SETTING = {"prediction_weight": WEIGHT}


@pytest.fixture(scope="module")
def parts() -> list[Cohort]:
    return list(tiny_cohort(120).split((0.6, 0.4)))


@pytest.fixture(scope="module", params=[Ras, As])
def method(request: pytest.FixtureRequest, parts: list[Cohort]) -> Ras | As:
    made = request.param(grid=[WEIGHT], quick=True, hidden=8, drop_rate=0.3)
    return made.fit(*parts, seed=0)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def simulator(parts: list[Cohort]) -> Simulator:
    ras = Ras(grid=[WEIGHT], quick=True, hidden=8, drop_rate=0.3).fit(*parts, seed=0)
    return Simulator(parts[0], ras.predictor_)


def test_it_keeps_the_policy_contract(method: Ras | As, parts: list[Cohort]) -> None:
    check_policy(lambda _: method.policy(SETTING), parts[1].subset(range(12)), n_cuts=4)


def test_the_published_encoder_keeps_the_contract(parts: list[Cohort]) -> None:
    pytest.importorskip("torchcde")
    ras = Ras(grid=[WEIGHT], quick=True, hidden=4, drop_rate=0.3, encoder="cde")
    policy = ras.fit(*parts, seed=0).policy(SETTING)
    check_policy(lambda _: policy, parts[1].subset(range(6)), n_cuts=2, budget_shares=(None,))


def test_same_seed_gives_the_same_follow_ups(method: Ras | As, parts: list[Cohort]) -> None:
    again = type(method)(grid=[WEIGHT], quick=True, hidden=8, drop_rate=0.3).fit(*parts, seed=0)
    first, second = (rollout(m.policy(SETTING), parts[1]) for m in (method, again))
    assert np.array_equal(first.history.requested, second.history.requested)


def test_both_are_registered() -> None:
    assert method_class("ras") is Ras
    assert method_class("as") is As


def test_a_fixed_interval_is_kept(parts: list[Cohort]) -> None:
    every_other = As(grid=[WEIGHT], quick=True, hidden=8, drop_rate=0.3, interval=2.0)
    found = rollout(every_other.fit(*parts, seed=0).policy(SETTING), parts[1])
    assert not found.history.requested[:, 1::2].any()
    assert found.history.requested[:, ::2].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "gur"}, "Did you mean 'gru'"),
        ({"drop_rate": 1.0}, "drop_rate is 1"),
        ({"intervals": (3.0, 1.0)}, "3 to 1"),
        ({"tail_share": 0.0}, "tail_share is 0"),
    ],
)
def test_impossible_options_are_reported(
    options: dict[str, object], message: str, parts: list[Cohort]
) -> None:
    given = {"grid": [WEIGHT], "quick": True, "hidden": 4, "drop_rate": 0.3, **options}
    with pytest.raises(ConfigError, match=message):
        Ras(**given).fit(*parts, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("time", "share", "expected"),
    [(-1, 0.9, 0), (0, 0.0, 1), (0, 0.5, 2), (1, 1.0, 4), (3, 0.0, 4)],
)
def test_waiting_leads_to_the_next_slot(time: int, share: float, expected: int) -> None:
    grid = Intervals(np.array([0.0, 1.0, 2.0, 4.0]), shortest=0.0, longest=3.5)
    assert grid.next_slot(np.array([time]), np.array([share]))[0] == expected


def test_follow_ups_are_charged_for_what_was_there(
    simulator: Simulator, parts: list[Cohort]
) -> None:
    net = ActorCritic(simulator.predictor.encoder_, 4, "gru")
    index = np.arange(len(simulator))
    grid = Intervals(np.arange(4.0), 0.0, 2.0)
    episodes = simulator.follow(net, grid, index, torch.Generator().manual_seed(0), 0.3)
    costs = simulator.stage_costs(index, episodes, Prices(0.0, 0.0))
    asked = episodes.requested.numpy()
    expected = parts[0].catalog.cost_per_visit(asked & parts[0].recorded)
    np.testing.assert_allclose(costs.numpy(), expected, rtol=1e-5)
    empty = episodes.visited.numpy() & ~asked.any(axis=2)
    penalized = simulator.stage_costs(index, episodes, Prices(0.0, 10.0)) - costs
    np.testing.assert_allclose(
        penalized.numpy(), 10.0 * empty * simulator.followed.numpy(), atol=1e-4
    )


def test_simulation_and_environment_agree(method: Ras | As, parts: list[Cohort]) -> None:
    policy = method.policy(SETTING)
    simulated = Simulator(parts[1], method.predictor_).follow(
        policy.net,  # type: ignore[attr-defined]
        policy.intervals,  # type: ignore[attr-defined]
        np.arange(len(parts[1])),
    )
    found = rollout(policy, parts[1]).history.requested
    assert np.array_equal(found, simulated.requested.numpy())


def test_returns_are_discounted_once_per_visit() -> None:
    costs = torch.tensor([[1.0, 2.0, 4.0]])
    visited = torch.tensor([[True, False, True]])
    returns, decided = discounted_returns(costs, visited, 0.5)
    assert returns[0].tolist() == [2.5, 5.0, 4.0, 4.0]
    assert decided[0].tolist() == [True, True, False, True]


def test_advantages_are_what_followed_against_what_was_expected() -> None:
    costs = torch.tensor([[1.0, 2.0, 4.0]])
    visited = torch.tensor([[True, False, True]])
    expected = torch.tensor([[3.0, 6.0, 0.0, 3.0]])
    returns, decided = discounted_returns(costs, visited, 0.5)
    to_the_end = advantages(costs, visited, expected, 0.5, trace=1.0)
    torch.testing.assert_close(to_the_end[decided], (returns - expected)[decided])
    to_the_next_visit = advantages(costs, visited, expected, 0.5, trace=0.0)
    assert to_the_next_visit[decided].tolist() == [0.5 * 6 - 3, 1 + 2 + 0.5 * 3 - 6, 4 - 3]


def test_deficiency_is_none_between_equals_and_at_most_twice_log_two() -> None:
    sure, other = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert float(jensen_shannon(sure, sure)) == pytest.approx(0.0, abs=1e-6)
    assert float(jensen_shannon(sure, other)) == pytest.approx(2 * np.log(2), abs=1e-4)


def test_the_tail_is_the_most_expensive_share() -> None:
    assert set(worst(torch.tensor([3.0, 9.0, 1.0, 8.0]), 0.5)) == {1, 3}
    assert list(worst(torch.tensor([3.0, 9.0, 1.0]), 0.01)) == [1]


def test_modes_are_where_the_interval_is_likeliest() -> None:
    action = Action(torch.tensor([0.4, 0.6]), torch.tensor(0.3), torch.tensor(20.0))
    grid = torch.linspace(0.01, 0.99, 99)
    likeliest = grid[action.interval.log_prob(grid).argmax()]  # type: ignore[no-untyped-call]
    assert float(likeliest) == pytest.approx(0.3, abs=0.011)
    assert action.modes()[0].tolist() == [False, True]


def test_the_auxiliary_policy_drops_at_its_rate() -> None:
    open_slots = np.ones((8, 3), dtype=bool)
    ask = auxiliary_requests(0.7, np.arange(8.0), open_slots)
    asked = ask(np.arange(4000), np.random.default_rng(0))
    sparse = asked[~asked.all(axis=(1, 2))]
    assert sparse[:, 0].mean() == pytest.approx(0.3, abs=0.03)  # the first slot is a visit
    assert len(sparse) == pytest.approx(2000, abs=150)


def test_published_weights_are_tried_in_the_paper_preset_only(parts: list[Cohort]) -> None:
    assert not Ras(preset="paper")._first_values(replace(parts[0], name="synthetic"))
    train = replace(parts[0], published="synthetic")
    assert not Ras()._first_values(train)
    assert list(Ras(preset="paper")._first_values(train)) == [5000.0, 7000.0, 9000.0]


def test_training_finds_out_that_a_useless_visit_can_go() -> None:
    """With no weight on prediction, only the cost and the empty-visit penalty are left."""
    train, val = tiny_counter_cohort(300).split((0.7, 0.3))
    ras = Ras(grid=[1.0], quick=True, hidden=8, drop_rate=0.3).fit(train, val, seed=0)
    simulators = Simulator(train, ras.predictor_), Simulator(val, ras.predictor_)
    training = RasTraining(rounds=10, steps_per_round=10, batch_size=128, learning_rate=1e-2)
    grid = Intervals(np.arange(4.0), 0.0, 3.0)
    actor = ActorTraining(simulators[0], grid, Prices(0.0, 10.0), training, 1.0, 8, "gru", seed=0)
    _, curve = actor.run(simulators[1])
    assert min(curve) < 0.6 * train.catalog.price_of_everything


@pytest.mark.parametrize("make", [partial(As, interval=1.0), Ras])
def test_it_learns_to_beat_random_at_equal_cost(make: Callable[..., Ras | As]) -> None:
    train, val, test = tiny_counter_cohort(1200, n_times=5).split((0.7, 0.15, 0.15), seed=0)
    method = make(hidden=32, drop_rate=0.3, options={"rounds": 40})
    method._prepare(train, val, 0, None, False)
    low, high = method._knob_range(train)
    policy = method._train((low * high) ** 0.5, train, val, 0, False)
    found = rollout(policy, test)
    share = found.cost / test.catalog.price_of_everything
    chance = rollout(RandomPolicy(min(share * 1.05, 1.0), method.predictor_), test)
    gain = chance.summary()["cross_entropy"] - found.summary()["cross_entropy"]
    assert 0.2 < share < 0.95
    assert gain > 0.05


def test_training_goes_from_everybody_to_the_tail(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = []

    def watched(totals: torch.Tensor, share: float) -> np.ndarray:
        pools.append(len(worst(totals, share)))
        return worst(totals, share)

    monkeypatch.setattr("nocta.methods.ras.training.worst", watched)
    grid, training = (
        Intervals(np.arange(4.0), 0.0, 3.0),
        RasTraining(rounds=6, steps_per_round=1, batch_size=8),
    )
    ActorTraining(simulator, grid, Prices(10.0, 10.0), training, 0.1, 8, "gru", 0).run(simulator)
    trained = pools[::2]  # every other call judges on validation
    assert trained[0] == len(simulator)
    assert trained == sorted(trained, reverse=True)
    assert trained[-1] == -(-len(simulator) // 10)


def test_what_is_known_to_be_missing_is_not_asked_for_in_training(
    simulator: Simulator, parts: list[Cohort]
) -> None:
    known = Simulator(parts[0], simulator.predictor, "known")
    net = ActorCritic(simulator.predictor.encoder_, 8, "gru")
    grid, index = Intervals(np.arange(4.0), 0.0, 0.0), np.arange(len(parts[0]))
    recorded = torch.from_numpy(parts[0].recorded)
    for world, asks_in_vain in ((simulator, True), (known, False)):
        episodes = world.follow(net, grid, index, torch.Generator().manual_seed(0))
        assert bool((episodes.requested & ~recorded).any()) == asks_in_vain
        mattered = episodes.mattered[:, :-1] & episodes.visited[..., None]
        assert bool((mattered & ~recorded).any()) == asks_in_vain


@pytest.mark.parametrize("options", [{"rounds": 0}, {"learning_rate": 0.0}, {"exploration": 0.5}])
def test_impossible_options_are_named(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        RasTraining(**options)  # type: ignore[arg-type]
