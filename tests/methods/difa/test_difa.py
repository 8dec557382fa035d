"""DiFA: the contract, episodes whose gradient reaches the policy, and that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nocta.core.cohort import Cohort
from nocta.core.environment import Results
from nocta.core.errors import ConfigError
from nocta.core.rollout import rollout
from nocta.methods.difa.episodes import Subjects, _Run
from nocta.methods.difa.method import Difa, DifaOptions
from nocta.methods.difa.networks import DifaPolicy
from nocta.methods.retrained import N_FITS_QUICK
from nocta.predictors.training import TrainingConfig
from nocta.testing import check_policy, tiny_cohort, tiny_counter_cohort

SHORT = TrainingConfig(epochs=4, batch_size=64, check_every=2)
OPTIONS = DifaOptions(
    hidden=16,
    dropouts=(0.0,),
    epochs=4,
    min_steps=12,
    end_logit=-3.0,
    imputer=SHORT,
    predictor=SHORT,
)


def changed(**options: Any) -> DifaOptions:
    return OPTIONS.model_copy(update=options)


@pytest.fixture(scope="module")
def clinic() -> tuple[Difa, list[Cohort]]:
    parts = list(tiny_cohort(160).split((0.6, 0.25, 0.15)))
    return Difa(OPTIONS, grid=[0.0, 0.02]).fit(*parts[:2], seed=0), parts


@pytest.fixture(scope="module")
def subjects(clinic: tuple[Difa, list[Cohort]]) -> Subjects:
    method, parts = clinic
    policy = method.policy({"cost_weight": 0.02})
    assert isinstance(policy, DifaPolicy)
    return Subjects(policy.model, parts[0])


def test_it_keeps_the_policy_contract(clinic: tuple[Difa, list[Cohort]]) -> None:
    method, parts = clinic
    policy = method.policy({"cost_weight": 0.0})
    assert rollout(policy, parts[2]).cost > 0
    check_policy(lambda _: policy, parts[2], n_cuts=4, n_alone=3)


def test_several_features_may_be_acquired_at_one_visit(
    clinic: tuple[Difa, list[Cohort]],
) -> None:
    method, parts = clinic
    found = rollout(method.policy({"cost_weight": 0.0}), parts[2]).history
    assert (found.requested.sum(axis=2) > 1).any()


def test_a_high_cost_weight_acquires_less() -> None:
    train, val = tiny_counter_cohort(300).split((0.7, 0.3))
    options = changed(epochs=30)
    method = Difa(options, grid=[0.0, 5.0]).fit(train, val, seed=0)
    assert method.costs_[5.0] < method.costs_[0.0]


def test_probabilities_of_stopping_sum_to_one(subjects: Subjects) -> None:
    episode = subjects.episode(np.arange(20), 200, temperature=0.5)
    torch.testing.assert_close(episode.stops.sum(dim=0), torch.ones(20))
    torch.testing.assert_close(episode.visited.sum(dim=0), torch.ones(20))


def test_simulated_charges_are_those_of_the_catalog(subjects: Subjects) -> None:
    rows = np.arange(20)
    episode = subjects.episode(rows, 200)
    acquired = (episode.requested[-1] > 0.5) & subjects.recorded[rows]
    expected = subjects.catalog.cost_of(acquired.numpy())
    np.testing.assert_allclose(episode.cost[-1].detach(), expected, rtol=1e-5)


def test_an_episode_acquires_in_the_order_of_time_and_nothing_twice(
    subjects: Subjects, clinic: tuple[Difa, list[Cohort]]
) -> None:
    one_by_one = Subjects(subjects.model, clinic[1][0], results="at-once")
    episode = one_by_one.episode(np.arange(20), 200, temperature=1.0)
    added = episode.requested.detach().diff(dim=0).round()
    assert bool(((added == 0) | (added == 1)).all())
    assert bool((added.sum(dim=(2, 3)) <= 1).all())
    time = added.sum(dim=3).argmax(dim=2)  # 0 where an episode is over
    moving = added.sum(dim=(2, 3)) > 0
    backwards = (time.diff(dim=0) < 0) & moving[1:]
    assert not bool(backwards.any())


def test_the_limit_on_acquisitions_holds_in_training_and_after(
    subjects: Subjects, clinic: tuple[Difa, list[Cohort]]
) -> None:
    episode = subjects.episode(np.arange(20), 2, temperature=1.0)
    assert float(episode.requested[-1].detach().sum(dim=(1, 2)).max()) < 2.5
    _, parts = clinic
    found = rollout(DifaPolicy(subjects.model, 2), parts[2]).history
    assert found.requested.sum(axis=(1, 2)).max() <= 2


def test_the_loss_reaches_the_policy_through_the_acquisitions(subjects: Subjects) -> None:
    networks = subjects.model.networks
    networks.zero_grad()
    rows = np.arange(20)
    episode = subjects.episode(rows, 200, temperature=1.0)
    pairs = subjects.pairs(rows)
    subjects.loss(rows, episode.requested[-1], pairs).backward()
    slots = networks.policy.head.weight.grad
    assert slots is not None
    assert float(slots[:-1].abs().sum()) > 0


def test_losses_along_an_episode_are_those_of_its_steps(subjects: Subjects) -> None:
    rows = np.arange(20)
    pairs = subjects.pairs(rows)
    with torch.no_grad():
        episode = subjects.episode(rows, 200, temperature=1.0)
        table = subjects.losses_along(rows, episode, pairs)
        for step, requested in enumerate(episode.requested):
            expected = subjects.loss(rows, requested, pairs)
            torch.testing.assert_close(table[step].mean(), expected, rtol=1e-4, atol=1e-5)


def test_what_is_known_to_be_missing_is_not_asked_for_in_training(
    clinic: tuple[Difa, list[Cohort]], subjects: Subjects
) -> None:
    _, parts = clinic
    known = Subjects(subjects.model, parts[0], availability="known")
    rows = np.arange(40)
    asked = known.episode(rows, 200, temperature=1.0).requested[-1] > 0.5
    assert not bool((asked & ~known.recorded[rows]).any())


def test_the_same_seed_gives_the_same_policy() -> None:
    train, val, test = tiny_cohort(60).split((0.5, 0.25, 0.25))
    found = [
        rollout(
            Difa(OPTIONS, grid=[0.01]).fit(train, val, seed=3).policy({"cost_weight": 0.01}), test
        ).probabilities
        for _ in range(2)
    ]
    assert np.array_equal(*found)


def test_a_quick_run_is_shorter() -> None:
    train, val = tiny_cohort(60).split((0.7, 0.3))
    options = changed(dropouts=(0.0, 0.5), epochs=30)
    method = Difa(options, quick=True).fit(train, val, seed=0)
    assert len(method.costs_) == N_FITS_QUICK
    assert method._options.epochs == 10
    assert method._options.dropouts == (0.0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_share": 3.0}, "step_share is 3.0"),
        ({"ramp": 0.0}, "ramp is 0.0"),
        ({"dropouts": ()}, "dropouts is"),
        ({"hidden": 0}, "hidden is 0"),
        ({"max_acquisitions": 0}, "max_acquisitions is 0"),
    ],
)
def test_impossible_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DifaOptions(**options)


def test_everything_may_be_acquired_unless_a_limit_is_given() -> None:
    train, val = tiny_cohort(60).split((0.7, 0.3))
    method = Difa(changed(dropouts=(0.0,)), grid=[0.01], quick=True)
    method.fit(train, val, seed=0)
    assert method.policies_[0.01].max_acquisitions == train.catalog.open_slots.sum()


def test_a_step_is_a_visit_where_results_come_after_it(subjects: Subjects) -> None:
    episode = subjects.episode(np.arange(20), 200, temperature=1.0)
    added = episode.requested.detach().diff(dim=0).round()
    n_visits = added.any(dim=3).sum(dim=2)
    assert int(n_visits.max()) == 1
    assert float(added.sum(dim=(2, 3)).max()) == 2


def test_pending_values_do_not_reach_the_policy_in_training(subjects: Subjects) -> None:
    def logits(run: _Run) -> torch.Tensor:
        first = torch.zeros(10, 8)
        first[:, 0] = 1
        run.acquire(rows, first)
        return run.logits(rows, under_way=True)

    rows = torch.arange(10)
    run, other = (_Run(subjects, np.arange(10), 200, None) for _ in range(2))
    other.slots = other.slots.flip(0)
    other.context = run.context
    torch.testing.assert_close(logits(run), logits(other))
    assert not torch.allclose(run.logits(rows), other.logits(rows))


@pytest.mark.parametrize("results", ["after-visit", "at-once"])
def test_training_and_roll_outs_follow_the_same_rule(
    clinic: tuple[Difa, list[Cohort]], subjects: Subjects, results: Results
) -> None:
    _, parts = clinic
    same = Subjects(subjects.model, parts[2], results=results)
    policy = DifaPolicy(subjects.model, 200)
    simulated = same.episode(np.arange(len(parts[2])), 200).requested[-1] > 0.5
    found = rollout(policy, parts[2], results=results).history.requested
    assert np.array_equal(simulated.numpy(), found)


def test_options_are_given_by_name() -> None:
    train, val = tiny_cohort(60).split((0.7, 0.3))
    given = {"hidden": 8, "dropouts": (0.0,), "min_steps": 12, "imputer": SHORT, "predictor": SHORT}
    policy = (
        Difa(given, grid=[0.01], quick=True).fit(train, val, seed=0).policy({"cost_weight": 0.01})
    )
    assert isinstance(policy, DifaPolicy)
    assert policy.model.networks.policy.head.in_features == 8


@pytest.mark.slow
def test_it_beats_the_guess_on_the_counter_task() -> None:
    train, val, test = tiny_counter_cohort(2400).split((0.7, 0.15, 0.15))
    options = DifaOptions(dropouts=(0.0,), epochs=20)
    policy = Difa(options, grid=[0.02]).fit(train, val, seed=0).policy({"cost_weight": 0.02})
    found = rollout(policy, test)
    assert found.summary()["accuracy"] > 0.9
    assert found.cost < 0.95 * test.catalog.price_of_everything
