"""ASAC: gates for the next visit from what was acquired, trained with the predictor."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest
import torch

from nocta.core.catalog import Catalog, Feature
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.rollout import rollout
from nocta.methods.asac.method import Asac, AsacPolicy, LSTMPredictor
from nocta.methods.asac.training import JointTraining, Selector, gate_costs
from nocta.methods.fixed import RandomPolicy
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import fit_predictor
from nocta.testing import RunningMeanPredictor, check_policy, tiny_cohort, tiny_counter_cohort

Parts = list[Cohort]
VARIANTS: list[dict[str, Any]] = [{}, {"gradient": "policy"}, {"predictor": "lstm"}]


def fitted(parts: Parts, given: CrossFittedPredictor | None, **options: Any) -> Asac:
    method = Asac(**{"quick": True, "grid": [0.01], **options})
    return method.fit(parts[0], parts[1], seed=0, predictor=given)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_policies_keep_the_contract(
    options: dict[str, Any], clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    policy = fitted(clinic, predictor, **options).policy({"mu": 0.01})
    assert rollout(policy, clinic[2]).cost > 0
    check_policy(lambda _: policy, clinic[2].subset(slice(0, 12)), n_alone=3)


def test_costs_fall_as_the_weight_of_cost_rises() -> None:
    train, val = tiny_counter_cohort(600, n_times=3).split((0.8, 0.2), seed=0)
    predictor = fit_predictor(train, val, seed=0, quick=True)
    method = Asac(grid=[0.001, 1.0], epochs=20).fit(train, val, seed=0, predictor=predictor)
    assert method.costs_[0.001] > 2 * method.costs_[1.0]
    assert [s["mu"] for s in method.settings(val, 5)] == [1.0, 0.001]  # cheapest first


@pytest.mark.parametrize("gradient", ["policy", "straight-through"])
def test_it_learns_to_beat_random_at_equal_cost(gradient: Any) -> None:
    train, val, test = tiny_counter_cohort(1500, n_times=3).split((0.7, 0.15, 0.15), seed=0)
    predictor = fit_predictor(train, val, seed=0, quick=True)
    method = Asac(grid=[0.06], epochs=30, gradient=gradient)
    found = rollout(method.fit(train, val, seed=0, predictor=predictor).policy({"mu": 0.06}), test)
    share = found.cost / test.catalog.price_of_everything
    chance = rollout(RandomPolicy(min(share * 1.1, 1.0), predictor), test)
    gain = chance.summary()["cross_entropy"] - found.summary()["cross_entropy"]
    assert 0.2 < share < 0.9
    assert gain > 0.1


def test_higher_costs_mean_fewer_acquisitions(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    method = fitted(clinic, predictor, grid=[1e-6, 10.0], epochs=120)
    assert method.costs_[10.0] < 0.2 * method.costs_[1e-6]


def test_the_selector_sees_neither_the_visit_itself_nor_later_ones() -> None:
    torch.manual_seed(0)
    selector = Selector(width=5, slot_width=3, n_features=2, hidden=8, dropout=0.0)
    inputs = torch.randn(4, 6, 5)
    changed = inputs.clone()
    changed[:, 3:, :3] += 1.0
    (before, _), (after, _) = selector(inputs), selector(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4], after[:, 4])


def test_gates_drawn_visit_by_visit_are_those_of_the_policy(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    joint = JointTraining(Asac(), predictor, clinic[0], 0.01, seed=0)
    torch.nn.init.normal_(joint.selector.gates.weight, std=2.0)
    torch.nn.init.zeros_(joint.selector.gates.bias)
    joint.selector.eval()
    with torch.no_grad():
        drawn = joint._draw(joint.data[0], torch.arange(len(clinic[0])), explore=False)
    policy = AsacPolicy(RunningMeanPredictor(2), joint.selector, joint.data[0].encoder)
    asked = rollout(policy, clinic[0]).history.requested
    assert 0 < asked.mean() < 1
    assert np.array_equal(drawn.numpy() > 0.5, asked)


def test_a_closed_slot_has_no_gate(predictor: CrossFittedPredictor) -> None:
    cohort = tiny_cohort(40)
    catalog = Catalog(
        features=(
            cohort.catalog.features[0],
            Feature("scan", ("volume", "thickness"), 3.0, at=(1,)),
        ),
        n_times=4,
        context=("age",),
        group_fees={"draw": 0.5},
    )
    parts = cohort.with_catalog(catalog).split((0.6, 0.4), seed=0)
    joint = JointTraining(Asac(), predictor, parts[0], 0.01, seed=0)
    gates = joint._draw(joint.data[0], torch.arange(len(parts[0])), explore=True)
    assert gates[:, [0, 2, 3], 1].abs().sum() == 0
    assert gates[:, 1, 1].sum() > 0


def test_gate_costs_are_the_catalogs_and_have_a_gradient() -> None:
    catalog = Catalog(
        features=(
            Feature("a", ("a",), 1.0, group="g"),
            Feature("b", ("b",), (2.0, 3.0), group="g"),
            Feature("c", ("c",), 4.0),
        ),
        n_times=2,
        group_fees={"g": 10.0},
        visit_fee=100.0,
    )
    plans = np.random.default_rng(0).random((20, 2, 3)) < 0.4
    gates = torch.from_numpy(plans).float().requires_grad_()
    costs = gate_costs(catalog, gates)
    assert np.allclose(costs.detach().numpy(), catalog.cost_per_visit(plans))
    torch.autograd.backward(costs.sum())
    assert gates.grad is not None
    assert bool((gates.grad > 0).any())


def test_what_is_missing_is_not_charged_in_training(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    joint = JointTraining(Asac(), predictor, clinic[0], 1e6, seed=0)
    joint.done = 1.0
    everybody = torch.arange(len(clinic[0]))
    total = joint._objective(everybody, torch.ones(clinic[0].recorded.shape)).sum(dim=1)
    charged = clinic[0].catalog.cost_of(clinic[0].recorded)
    assert np.allclose(total.numpy() / 1e6, charged, rtol=1e-4)


def test_the_given_predictor_is_left_as_it_was(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    before = {k: v.clone() for k, v in predictor.members[0].net_.state_dict().items()}
    fitted(clinic, predictor)
    after = predictor.members[0].net_.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_an_own_predictor_is_fitted_afresh_to_the_gates(clinic: Parts) -> None:
    method = fitted(clinic, None, predictor="lstm")
    final = method.policies_[0.01].predictor
    assert isinstance(final, LSTMPredictor)
    assert isinstance(final.net_.cell, torch.nn.LSTM)
    assert final is not method.pretrained_.members[0]


def test_without_a_predictor_to_share_one_is_fitted(clinic: Parts) -> None:
    method = Asac(quick=True, grid=[0.01])
    method.fit(clinic[0], clinic[1], seed=0)
    assert isinstance(method.pretrained_, CrossFittedPredictor)


def test_same_seed_same_method(clinic: Parts, predictor: CrossFittedPredictor) -> None:
    first, again = (
        rollout(fitted(clinic, predictor).policy({"mu": 0.01}), clinic[2]) for _ in range(2)
    )
    assert np.array_equal(first.history.requested, again.history.requested)
    assert np.array_equal(first.probabilities, again.probabilities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictor": "mlp"}, "predictor is 'mlp'; use 'shared' or 'lstm'"),
        ({"gradient": "none"}, "gradient is 'none'; use 'policy' or 'straight-through'"),
    ],
)
def test_impossible_options_say_so(options: dict[str, Any], message: str, clinic: Parts) -> None:
    with pytest.raises(ConfigError, match=message):
        Asac(**options).fit(clinic[0], clinic[1], seed=0)


def test_an_unfitted_method_says_so(clinic: Parts) -> None:
    with pytest.raises(NotFittedError, match="'asac' is not fitted yet"):
        Asac().settings(clinic[1], 3)


def test_what_is_known_to_be_missing_is_not_asked_for_in_training(
    clinic: Parts, predictor: CrossFittedPredictor
) -> None:
    index = torch.arange(len(clinic[0]))
    asked = {}
    for availability in ("on-arrival", "known"):
        options = Asac(quick=True)
        joint = JointTraining(options, predictor, clinic[0], 0.01, 0, availability)
        torch.manual_seed(0)
        gates = joint._draw(joint.data[0], index, explore=True)
        asked[availability] = gates.detach().numpy() > 0.5
    in_vain = {rule: int((gates & ~clinic[0].recorded).sum()) for rule, gates in asked.items()}
    assert in_vain["known"] == 0 < in_vain["on-arrival"]


def test_the_entropy_is_tuned_only_where_it_counts() -> None:
    def names(gradient: str) -> set[str]:
        trial = optuna.trial.FixedTrial({"hidden": 32, "gradient": gradient, "entropy": 0.01})
        return set(Asac().search_space(trial))

    assert names("policy") - names("straight-through") == {"entropy"}
