"""NOCT-Direct: gates, what they may see, budgets and prices, promises, and the whole planner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nocta
from nocta.core.enforce import enforce
from nocta.core.errors import ConfigError
from nocta.core.policy import Observation
from nocta.core.rollout import rollout
from nocta.model.presets.direct import _FACTORS
from nocta.planning.direct import promise
from nocta.planning.direct.network import GateNet, GateShape, log_prices
from nocta.planning.direct.unroll import all_seeing, draw, over_budget, visit_price
from nocta.planning.estimators import targets
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.gates import GatedCohort
from nocta.predictors.cross_fitted import cross_fit
from nocta.predictors.recurrent import RecurrentPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import RunningMeanPredictor, check_policy, tiny_cohort

WEIGHTS = (0.003, 0.03, 0.1, 0.3)


@pytest.fixture(scope="module")
def parts():
    return tiny_cohort(n_subjects=240, seed=0).split((0.6, 0.2, 0.2), seed=0)


@pytest.fixture(scope="module")
def predictor(parts):
    short = TrainingConfig(epochs=60, batch_size=64, learning_rate=1e-2, check_every=10)
    return cross_fit(RecurrentPredictor(hidden=12, training=short), *parts[:2], 2)


@pytest.fixture(scope="module")
def model(parts, predictor):
    train, val, _ = parts
    options = {"quick": True, "hidden": 8, "individual_share": 1.0}
    return nocta.NOCTA("direct", options=options).fit(train, val, predictor=predictor)


@pytest.fixture
def untrained(parts, predictor):
    """A network with random weights, and the training subjects seen through its encoder."""
    train = parts[0]
    data = GatedCohort(predictor.networks[0], train)
    encoder, prices = data.encoder, torch.from_numpy(train.catalog.costs)
    context = 2 * encoder.context_.width
    shape = GateShape(encoder.width, encoder.slot_width, context, encoder.n_features_, 8)
    torch.manual_seed(0)
    net = GateNet(shape, log_prices(prices, 1.0))
    torch.nn.init.normal_(net.worth.weight)  # so that gates follow what is seen
    return net.eval(), data


def start_of(cohort) -> Observation:
    n = len(cohort)
    history = nocta.History.empty(cohort.catalog, cohort.context)
    return Observation(history, np.full(n, -1), np.full(n, np.inf), cohort.catalog, np.arange(n))


# -- gates ------------------------------------------------------------------------------


def test_later_gates_see_results_only_in_closed_loop(parts, untrained) -> None:
    train, (net, data) = parts[0], untrained
    recorded = torch.from_numpy(train.recorded)
    lines = all_seeing(net, train, torch.full((len(train),), 1e-4))
    changed = replace(train, values=np.where(np.isnan(train.values), np.nan, -train.values))
    other = GatedCohort(data.member, changed)

    def gates(lines, data):
        return draw(net, data, recorded, lines, train.catalog, explore=False).states.detach()

    open_loop = lines._replace(seen_until=torch.full((len(train),), -1))
    assert (gates(lines, data)[:, 1:] != gates(lines, other)[:, 1:]).any()
    assert torch.equal(gates(open_loop, data), gates(open_loop, other))


def test_a_schedule_for_everybody_does_not_see_context(parts, untrained) -> None:
    train, (net, data) = parts[0], untrained
    lines = all_seeing(net, train, torch.full((len(train),), 1e-4))
    blind = lines._replace(
        seen_until=torch.full((len(train),), -1), blind=torch.ones(len(train)).bool()
    )
    states = draw(
        net, data, torch.from_numpy(train.recorded), blind, train.catalog, explore=False
    ).states
    assert torch.equal(states, states[:1].expand_as(states))


def test_decided_gates_carry_no_gradient(parts, untrained) -> None:
    train, (net, data) = parts[0], untrained
    lines = all_seeing(net, train, torch.full((len(train),), 1e-4))
    decided = lines._replace(learned_after=torch.full((len(train),), train.n_times))
    recorded = torch.from_numpy(train.recorded)
    gates = draw(net, data, recorded, lines, train.catalog, explore=False).gates
    assert gates.requires_grad
    fixed = draw(net, data, recorded, decided, train.catalog, explore=False).gates
    assert torch.equal(gates > 0.5, fixed > 0.5)
    (gradient,) = torch.autograd.grad(fixed.sum(), net.worth.weight, allow_unused=True)
    assert gradient is None or not gradient.any()


def test_a_budget_keeps_what_is_surest(parts) -> None:
    catalog = parts[0].catalog
    wanted = torch.ones(3, catalog.n_features, dtype=torch.bool)
    logits = torch.tensor([[2.0, 1.0], [1.0, 2.0], [1.0, 1.0]])
    prices = [float(visit_price(catalog, torch.eye(2).bool()[[m]], 0)) for m in (0, 1)]
    both = float(visit_price(catalog, wanted[:1], 0))
    remaining = torch.tensor([prices[0], prices[1], both], dtype=torch.float64)
    left_out = over_budget(catalog, wanted, logits, remaining, 0)
    assert left_out.tolist() == [[False, True], [True, False], [False, False]]


def test_gates_that_the_budget_allows_keep_their_gradient(parts, untrained) -> None:
    train, (net, data) = parts[0], untrained
    lines = all_seeing(net, train, torch.full((len(train),), 1e4))  # nothing is worth it
    tight = lines.terms.remaining.clone()
    tight[0] = 0.0
    lines = lines._replace(terms=lines.terms._replace(remaining=tight))
    gates = draw(
        net, data, torch.from_numpy(train.recorded), lines, train.catalog, explore=False
    ).gates
    (gradient,) = torch.autograd.grad(gates.sum(), net.worth.bias)
    assert not (gates > 0.5).any()
    assert gradient.all()


# -- the fitted planner ------------------------------------------------------------------


def test_one_fit_serves_every_cost_weight(parts, model) -> None:
    costs = [model.rollout(parts[2], w).cost for w in WEIGHTS]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_a_hard_budget_is_kept(parts, model) -> None:
    done = model.rollout(parts[2], WEIGHTS[0], budget=2.0)
    assert 0 < done.costs.max() <= 2.0


@pytest.mark.parametrize(
    ("rule", "budget"),
    [
        ("at most 1 visits", np.inf),
        ("at most 1 scan", np.inf),
        ("2 apart blood", np.inf),
        ("always blood at 2", 4.0),
        ("together blood, scan", 5.0),
    ],
)
def test_plans_obey_constraints_and_begin_with_the_decision(parts, model, rule, budget) -> None:
    start, policy = start_of(parts[2]), model.policy(WEIGHTS[0])
    catalog = start.catalog.constrained(rule)
    bound = replace(start, catalog=catalog, remaining=np.full(len(start), budget)).reserving()
    found = policy.best_plans(bound)
    assert found.plans[:, 0].any()
    assert all(
        catalog.rules.allow(plan) for plan in found.plans.reshape(-1, *start.open_slots[0].shape)
    )
    assert catalog.cost_of(found.plans).max() <= budget
    acted = enforce(bound, policy.decide(bound))
    planned = nocta.Decision.from_plans(found.plans[:, 0])
    np.testing.assert_array_equal(acted.time, planned.time)
    np.testing.assert_array_equal(acted.features, planned.features)


def test_a_dearer_feature_is_requested_less_without_a_new_fit(parts, model) -> None:
    test = parts[2]
    name = test.catalog.names[0]
    dear = test.with_catalog(test.catalog.with_costs({name: 50.0}))
    before, after = (
        model.rollout(c, WEIGHTS[1]).history.requested[:, :, 0].mean() for c in (test, dear)
    )
    assert after < before


def test_decisions_keep_the_leak_contract(parts, model) -> None:
    check_policy(lambda cohort: model.policy(WEIGHTS[1]), parts[2])


def test_quick_decisions_are_those_of_whole_plans(parts, model) -> None:
    start, policy = start_of(parts[2]), model.policy(WEIGHTS[1])
    whole = nocta.Decision.from_plans(policy.best_plans(start).plans[:, 0])
    quick = policy.decide(start)
    np.testing.assert_array_equal(quick.time, whole.time)
    np.testing.assert_array_equal(quick.features, whole.features)


def test_one_subject_is_decided_as_in_a_batch(parts, model) -> None:
    start, policy = start_of(parts[2]), model.policy(WEIGHTS[1])
    batch = policy.decide(start)
    for i in range(0, len(start), 9):
        one = policy.decide(start.subset(np.array([i])))
        assert one.time[0] == batch.time[i]
        np.testing.assert_array_equal(one.features[0], batch.features[i])


def test_without_individual_share_everybody_follows_one_schedule(parts, model) -> None:
    plans, test = model.planner_.plans, parts[2]
    policy = model.policy(WEIGHTS[2])
    policy.search = replace(plans, individual_share=0.0)
    asked = rollout(policy, test).history.requested
    assert (asked == asked[:1]).all()


def test_a_saved_model_decides_as_before(parts, model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = nocta.load(tmp_path / "m")
    first, second = (m.rollout(parts[2], WEIGHTS[1]) for m in (model, again))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    before, after = (m.policy(WEIGHTS[1]).promise(start_of(parts[2])) for m in (model, again))
    np.testing.assert_array_equal(before, after)


def test_a_recommendation_promises_loss_and_charge(parts, model) -> None:
    newcomer = nocta.History.empty(parts[2].catalog, parts[2].context[:1])
    advice = model.decide(newcomer, WEIGHTS[0])
    assert not advice.stop
    assert advice.plan.expected_loss > 0
    assert advice.plan.expected_charge > 0
    assert advice.stopping.expected_charge == 0


def test_promises_have_the_level_of_what_happens_on_validation(parts, model) -> None:
    _, val, _ = parts
    planner = replace(model.planner_)  # so that other tests see the model as it is
    planner.plans = replace(planner.plans, individual_share=0.0, loss_level=9.0, charge_level=9.0)
    planner._correct_level(val)
    promised, happened = np.zeros(2), np.zeros(2)
    for factor in _FACTORS:
        weight = factor * planner.cost_scale
        promised += np.mean(planner.policy(weight).promise(start_of(val)), axis=1)
        happened += np.mean(planner.realized(val, weight), axis=1)
    np.testing.assert_allclose(promised, happened, rtol=1e-6)


def test_the_given_predictor_is_left_as_it_is(parts, predictor) -> None:
    before = {k: v.copy() for k, v in predictor.state()[1].items()}
    nocta.NOCTA("direct", options={"quick": True, "hidden": 8}).fit(*parts[:2], predictor=predictor)
    for name, array in predictor.state()[1].items():
        np.testing.assert_array_equal(array, before[name])


def test_a_predictor_with_dropout_judges_and_acts_without_it(parts) -> None:
    train, val, test = parts
    short = TrainingConfig(epochs=4, batch_size=64, check_every=2)
    with_dropout = RecurrentPredictor(hidden=8, dropout=0.5, training=short)
    shared = cross_fit(with_dropout, train, val, 2)
    options = {"quick": True, "hidden": 8, "predictor_rate": 0.0}  # the predictor stays as it is
    model = nocta.NOCTA("direct", options=options).fit(train, val, predictor=shared)
    asked = nocta.History.of(test, np.ones_like(test.recorded))
    expected = shared.predict_proba(asked)
    np.testing.assert_array_equal(model.planner_.predictor.predict_proba(asked), expected)


def test_informed_labels_are_the_same_piece_by_piece(parts, predictor, monkeypatch) -> None:
    how = (parts[0], predictor.members, predictor.fold, ("cross-entropy",))
    whole = LossTargets(*how, hindsight=0.9).soft_labels
    monkeypatch.setattr(targets, "_INFORMED_AT_ONCE", 7)
    torch.testing.assert_close(LossTargets(*how, hindsight=0.9).soft_labels, whole)


def test_promises_are_learned_from_a_bounded_number_of_subjects(
    parts, predictor, untrained, monkeypatch
) -> None:
    train, (net, _) = parts[0], untrained
    losses = LossTargets(train, predictor.members, predictor.fold, ("cross-entropy",))
    monkeypatch.setattr(promise, "_MOST", 10)
    found = promise._examples(net, train, losses, (0.1, 1.0), np.random.default_rng(0))
    assert len(found.states) == len(found.losses) == 10


def test_open_loop_is_a_form_of_its_own(parts, predictor, model) -> None:
    options = {"quick": True, "hidden": 8, "individual_share": 1.0, "form": "open-loop"}
    other = nocta.NOCTA("direct", options=options).fit(*parts[:2], predictor=predictor)
    check_policy(lambda cohort: other.policy(WEIGHTS[1]), parts[2])
    mine, theirs = (m.planner_.plans.net.worth.weight for m in (model, other))
    assert not torch.equal(mine, theirs)


def test_a_predictor_without_network_is_refused_with_a_sentence(parts) -> None:
    with pytest.raises(ConfigError, match="needs a torch network"):
        nocta.NOCTA("direct").fit(*parts[:2], predictor=RunningMeanPredictor(2))
