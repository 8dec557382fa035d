"""Whatever takes a shared predictor takes linear models, and means of one and a network, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nocta
from nocta.core.history import History
from nocta.core.rollout import rollout
from nocta.methods.asac.method import Asac
from nocta.methods.asac.training import JointTraining
from nocta.methods.dime.method import Dime
from nocta.model.archive import ARRAYS
from nocta.model.nocta import NOCTA
from nocta.model.presets.base import EstimatorName
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.summary import SummaryPredictor
from nocta.testing import check_policy
from small_models import QUICK, WEIGHT, Parts, linear_members


@pytest.fixture(scope="module", params=["summary", "mixed"])
def shared(request: pytest.FixtureRequest, tiny_parts: Parts) -> CrossFittedPredictor:
    return linear_members(request.param, tiny_parts)


def weights(predictor: CrossFittedPredictor) -> list[torch.Tensor]:
    return [v.clone() for m in predictor.members for v in m.net_.state_dict().values()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("gradient", ["straight-through", "policy"])
def test_asac_learns_with_it(
    gradient: Any, shared: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    train, val, test = tiny_parts
    before = weights(shared)
    method = Asac(gradient=gradient, grid=[0.01], epochs=2, quick=True)
    policy = method.fit(train, val, seed=0, predictor=shared).policy({"mu": 0.01})
    assert rollout(policy, test).cost > 0
    check_policy(lambda _: policy, test.subset(slice(0, 6)), n_alone=2)
    assert same(weights(shared), before)
    assert isinstance(policy.predictor, CrossFittedPredictor)
    assert not same(weights(policy.predictor), before)


def test_gates_learn_from_what_they_would_have_shown(
    shared: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    train = tiny_parts[0]
    joint = JointTraining(Asac(), shared, train, 0.0, seed=0)
    everybody = torch.arange(len(train))
    gates = (torch.rand(train.recorded.shape, generator=torch.manual_seed(0)) < 0.5).float()
    losses = joint._objective(everybody, gates)
    soft = gates.clone().requires_grad_()
    found = joint._objective(everybody, soft)
    torch.testing.assert_close(found.detach(), losses, atol=1e-4, rtol=1e-4)
    (gradient,) = torch.autograd.grad(found.sum(), soft)
    # Opening a gate, or closing it, changes the loss about as its gradient says.
    changes = torch.zeros_like(gates)
    for k in range(gates.shape[1]):
        for j in range(gates.shape[2]):
            turned = gates.clone()
            turned[:, k, j] = 1 - turned[:, k, j]
            step = (turned - gates)[:, k, j]
            changes[:, k, j] = (joint._objective(everybody, turned) - losses).sum(dim=1) / step
    counts = torch.from_numpy(train.recorded)
    for is_open in (0.0, 1.0):
        some = counts & (gates == is_open)
        pair = torch.stack([gradient[some], changes[some]])
        assert float(torch.corrcoef(pair)[0, 1]) > 0.6


def test_dime_learns_with_it(shared: CrossFittedPredictor, tiny_parts: Parts) -> None:
    train, val, test = tiny_parts
    before = weights(shared)
    method = Dime(n_updates=12, hidden=16).fit(train, val, seed=0, predictor=shared)
    setting = method.settings(val, 3)[-1]
    check_policy(lambda _: method.policy(setting), test.subset(slice(0, 6)), n_alone=2)
    assert same(weights(shared), before)
    assert not same(weights(method.predictor_), before)


def test_dime_has_a_size_where_the_predictor_has_none(
    shared: CrossFittedPredictor, tiny_parts: Parts
) -> None:
    method = Dime(preset="paper", hidden=16, n_updates=2)
    method.fit(tiny_parts[0], tiny_parts[1], seed=0, predictor=shared)
    is_linear = isinstance(shared.members[0], SummaryPredictor)
    assert method.value_.layers[0].out_features == (16 if is_linear else 8)


@pytest.mark.parametrize(
    ("estimator", "metric"),
    [("contrastive", "values"), ("contrastive", "predictor"), ("ensemble", "embedding")],
)
def test_a_model_with_it_decides_explains_and_is_kept(
    shared: CrossFittedPredictor,
    tiny_parts: Parts,
    tmp_path: Path,
    estimator: EstimatorName,
    metric: str,
) -> None:
    train, val, test = tiny_parts
    # Both shares by hand, so that everybody has a say.
    options = {**QUICK, "metric": metric, "individual_share": 0.7, "amortized_share": 0.4}
    model = NOCTA(estimator, seed=0, options=options).fit(train, val, predictor=shared)
    newcomer = History.empty(test.catalog, test.context[:1])
    found = model.decide(newcomer, WEIGHT)
    assert not found.stop
    assert found.plan.objective < found.stopping.objective
    model.save(tmp_path / "model")
    again = nocta.load(tmp_path / "model")
    assert again.decide(newcomer, WEIGHT).to_dict() == found.to_dict()
    some = test.subset(np.arange(6))
    ours, theirs = (m.rollout(some, WEIGHT) for m in (model, again))
    np.testing.assert_array_equal(ours.history.requested, theirs.history.requested)
    np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)
    kept = (tmp_path / "model" / ARRAYS).read_bytes()
    assert kept.count(train.values.tobytes()) == 1  # though some of them count and vote
