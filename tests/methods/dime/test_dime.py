"""DIME: the next slot by expected drop of the loss per cost, under the environment's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.rollout import rollout
from nocta.methods.dime.method import Dime, DimePolicy
from nocta.methods.dime.training import Episodes, Rules, ValueNet, earliest
from nocta.methods.fixed import RandomPolicy
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import EncodedCohort, InputEncoder
from nocta.predictors.fitting import fit_predictor
from nocta.testing import check_policy, tiny_cohort, tiny_counter_cohort

Parts = list[Cohort]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"order": "value"},
    {"stop": "budget"},
    {"stop": "confidence"},
]


@pytest.fixture(scope="module")
def counter() -> tuple[Parts, CrossFittedPredictor]:
    parts = tiny_counter_cohort(900, n_times=3).split((0.6, 0.2, 0.2), seed=0)
    return parts, fit_predictor(parts[0], parts[1], seed=0, quick=True)


def fitted(parts: Parts, predictor: CrossFittedPredictor, **options: Any) -> Dime:
    method = Dime(**{"n_updates": 30, "hidden": 16, **options})
    return method.fit(parts[0], parts[1], seed=0, predictor=predictor)


class Ranking(ValueNet):
    """Values every slot the same whatever is known."""

    def __init__(self, drops: list[list[float]]) -> None:
        torch.nn.Module.__init__(self)
        self.drops = torch.tensor(drops)

    def forward(self, inputs: torch.Tensor, clock: Any, pending: Any) -> torch.Tensor:
        return self.drops.expand(len(inputs), *self.drops.shape)


def ranked(parts: Parts, drops: list[list[float]], limit: float, **options: Any) -> DimePolicy:
    predictor = fit_predictor(parts[0], parts[1], preset="paper", quick=True)
    return DimePolicy(predictor, Ranking(drops), "threshold", limit, **options)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_policies_keep_the_contract(
    options: dict[str, Any], clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    method = fitted(clinic, predictor, **options)
    setting = method.settings(clinic[1], 3)[-1]
    check_policy(lambda _: method.policy(setting), clinic[2].subset(slice(0, 12)), n_alone=3)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_one_fit_gives_settings_from_cheap_to_dear(
    options: dict[str, Any], clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    method = fitted(clinic, predictor, **options)
    settings = method.settings(clinic[1], 4)
    costs = [rollout(method.policy(s), clinic[1], budget=s.get("budget")).cost for s in settings]
    assert 1 < len(settings) <= 4
    assert costs == sorted(costs)


def test_nothing_is_acquired_at_the_highest_limit(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    method = fitted(clinic, predictor)
    high = method._highest_limit(clinic[1])
    assert rollout(method.policy({"threshold": high}), clinic[1]).cost == 0.0
    assert rollout(method.policy({"threshold": 0.99 * high}), clinic[1]).cost > 0.0


def test_it_learns_to_beat_random_at_equal_cost(
    counter: tuple[Parts, CrossFittedPredictor],
) -> None:
    (train, val, test), predictor = counter
    method = Dime(n_updates=250, hidden=64).fit(train, val, seed=0, predictor=predictor)
    middle = method.settings(val, 5)[2]
    found = rollout(method.policy(middle), test)
    share = found.cost / test.catalog.price_of_everything
    chance = rollout(RandomPolicy(share * 1.1, predictor), test)
    gain = chance.summary()["cross_entropy"] - found.summary()["cross_entropy"]
    assert 0.2 < share < 0.8
    assert gain > 0.1


def test_the_given_predictor_is_left_as_it_was(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    before = {k: v.clone() for k, v in predictor.members[0].net_.state_dict().items()}
    fitted(clinic, predictor)
    after = predictor.members[0].net_.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_same_seed_same_method(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    first, again = (fitted(clinic, predictor).settings(clinic[1], 3) for _ in range(2))
    assert first == again


def test_published_networks_have_the_published_size(clinic: Parts) -> None:
    method = Dime(preset="paper", quick=True, n_updates=5).fit(clinic[0], clinic[1], seed=0)
    assert method.value_.layers[0].out_features == 10
    assert type(method.predictor_.members[0]).__name__ == "MLPPredictor"


DROPS = [[0.2, 0.6], [0.1, 0.1], [0.9, 0.3], [0.1, 0.1]]  # per cost: blood 1.5, scan 3


def test_value_order_takes_the_best_ratio_and_closes_what_lies_before(clinic: Parts) -> None:
    policy = ranked(clinic, DROPS, 0.05, order="value")
    asked = rollout(policy, clinic[2]).history.requested
    assert asked[0].tolist() == [[0, 0], [0, 0], [1, 1], [1, 0]]


def test_time_order_takes_all_that_is_worth_it(clinic: Parts) -> None:
    policy = ranked(clinic, DROPS, 0.05, order="time")
    asked = rollout(policy, clinic[2]).history.requested
    assert asked[0].tolist() == [[1, 1], [1, 0], [1, 1], [1, 0]]


@pytest.mark.parametrize("order", ["time", "value"])
def test_a_visit_is_ended_before_the_next_decision(clinic: Parts, order: Any) -> None:
    policy = ranked(clinic, DROPS, 0.05, order=order)
    after, at_once = (rollout(policy, clinic[2], results=r) for r in ("after-visit", "at-once"))
    assert np.array_equal(after.history.requested, at_once.history.requested)
    n_visits = after.history.requested[0].any(axis=1).sum()
    assert after.n_decisions[0] == at_once.n_decisions[0] - 1 + n_visits


def test_pending_orders_reach_the_value_network_without_their_values(clinic: Parts) -> None:
    train = clinic[0]
    data = EncodedCohort(InputEncoder().fit(train), train)
    seen: list[tuple[torch.Tensor, Any]] = []

    class Spy(Ranking):
        def forward(self, inputs: torch.Tensor, clock: Any, pending: Any) -> torch.Tensor:
            seen.append((inputs, pending))
            return super().forward(inputs, clock, pending)

    for results in ("after-visit", "at-once"):
        rules = Rules(results=results)
        episodes = Episodes(data, train.catalog, np.arange(4), np.zeros(4), rules)
        episodes.act(np.full(4, 2), np.ones(4, dtype=bool))  # blood at the second visit
        episodes.values(Spy(DROPS))
    (hidden, pending), (shown, nothing) = seen
    known = data.inputs(np.arange(4), episodes.requested)
    assert torch.equal(shown, known)
    assert not torch.equal(hidden, known)
    assert pending.sum(axis=(1, 2)).tolist() == [1] * 4
    assert not nothing.any()


def test_training_waits_for_results_before_it_moves_on(clinic: Parts) -> None:
    train = clinic[0]
    data = EncodedCohort(InputEncoder().fit(train), train)
    episodes = Episodes(data, train.catalog, np.arange(2), np.zeros(2), Rules())
    everybody = np.ones(2, dtype=bool)
    episodes.act(np.array([0, 0]), everybody)
    episodes.act(np.array([1, 4]), everybody)  # one adds to the visit, one wants to leave
    assert episodes.requested.sum(axis=(1, 2)).tolist() == [2, 1]
    assert episodes.pending.sum(axis=(1, 2)).tolist() == [2, 0]
    assert not episodes.open_slots[1, 0].any()
    episodes.act(np.array([4, 4]), everybody)
    assert episodes.clock.tolist() == [0, 2]


def test_a_slot_the_budget_does_not_allow_is_passed_over(clinic: Parts) -> None:
    policy = ranked(clinic, [[0.1, 3.0]] * 4, 0.0, order="value")
    done = rollout(policy, clinic[2], budget=2.0)
    assert not done.history.requested[..., 1].any()
    assert done.history.requested[..., 0].any()


def test_confident_predictions_stop(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    method = fitted(clinic, predictor, stop="confidence")
    assert rollout(method.policy({"confidence": 0.0}), clinic[2]).cost == 0.0
    assert rollout(method.policy({"confidence": 1.0}), clinic[2]).cost > 0.0


def test_earliest_is_the_best_of_the_first_eligible_visit() -> None:
    ratios = np.array([[[9.0, 1.0], [2.0, 3.0]]])
    assert earliest(ratios, np.array([[[False, False], [True, True]]])).tolist() == [3]
    assert earliest(ratios, np.array([[[False, True], [True, True]]])).tolist() == [1]


def test_before_the_first_visit_is_as_at_it_with_nothing_known(clinic: Parts) -> None:
    predictor = fit_predictor(clinic[0], clinic[1], preset="paper", quick=True)
    encoder = predictor.members[0].encoder_
    net = ValueNet(encoder.slot_width, encoder.width - encoder.slot_width - 4, (4, 2), 8, 0.0)
    inputs = encoder.encode(History.empty(clinic[2].catalog, clinic[2].context))
    nothing = np.zeros((len(inputs), 4, 2), dtype=bool)
    start, first, later = (net(inputs, np.full(len(inputs), t), nothing) for t in (-1, 0, 1))
    assert torch.equal(start, first)
    assert not torch.equal(first, later)


def test_known_absences_are_never_asked_for(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    method = fitted(clinic, predictor, stop="budget")
    done = rollout(method.policy({"budget": 1e9}), clinic[2], availability="known")
    assert not done.history.unavailable.any()


def test_impossible_options_and_early_calls_say_so(clinic: Parts) -> None:
    with pytest.raises(ConfigError, match="stop is 'never'; use 'threshold', 'budget' or"):
        Dime(stop="never").fit(clinic[0], clinic[1], seed=0)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError, match="'dime' is not fitted yet"):
        Dime().settings(clinic[1], 3)


def test_nobody_to_decide_for_is_no_problem(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    policy = fitted(clinic, predictor).policy({"threshold": 0.0})
    nobody = clinic[2].subset(slice(0, 0))
    empty = Observation(
        history=History.empty(nobody.catalog, nobody.context),
        time=np.zeros(0, dtype=np.int64),
        remaining=np.zeros(0),
        catalog=nobody.catalog,
        rows=np.zeros(0, dtype=np.int64),
    )
    assert policy.decide(empty).time.shape == (0,)


def test_what_is_free_does_not_hide_the_rest_of_the_frontier() -> None:
    cohort = tiny_cohort(120)
    first, *others = cohort.catalog.features
    free = replace(cohort.catalog, features=(replace(first, cost=0.0), *others))
    train, val = replace(cohort, catalog=free).split((0.6, 0.4), seed=0)
    method = Dime(n_updates=60, hidden=16, quick=True).fit(train, val, seed=0)
    costs = [rollout(method.policy(s), val).cost for s in method.settings(val, 5)]
    assert len({round(cost, 3) for cost in costs}) >= 3


def test_an_unknown_order_is_named(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    with pytest.raises(ConfigError, match="order is 'foo'"):
        fitted(clinic, predictor, order="foo")


def test_a_budget_is_kept_without_the_help_of_the_environment(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    method = fitted(clinic, predictor, stop="budget")
    done = rollout(method.policy({"budget": 5.0}), clinic[2])
    assert 0 < done.costs.max() <= 5.0


@pytest.mark.parametrize("setting", [{}, {"treshold": 0.1}, {"budget": 1.0}])
def test_a_setting_of_something_else_is_refused(
    setting: dict[str, float], clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    with pytest.raises(ConfigError, match="A setting of method 'dime' is"):
        fitted(clinic, predictor).policy(setting)
