"""Plans as a tree: every beginning once, and sums along paths as if each plan stood alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nocta.core.history import History
from nocta.core.random_plans import uniform_plans
from nocta.planning.estimators.targets import LossTargets, grows_trees, plan_losses, tree_losses
from nocta.predictors.encoding import EncodedCohort
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.plan_tree import PlanTree
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort

COHORT = tiny_cohort(40, seed=3)
TIME = 0


@pytest.fixture(scope="module")
def predictor() -> MLPPredictor:
    training = TrainingConfig(epochs=6, batch_size=16, learning_rate=1e-2)
    return MLPPredictor(training=training).fit(COHORT, tiny_cohort(30, seed=4))


@pytest.fixture(scope="module")
def plans() -> np.ndarray:
    later = np.arange(COHORT.n_times)[:, None] > TIME
    return uniform_plans(24, COHORT.catalog.open_slots & later, np.random.default_rng(0))


def test_every_beginning_is_a_node_once(plans: np.ndarray) -> None:
    tree = PlanTree.of(plans, TIME)
    later = plans[:, TIME + 1 :]
    distinct = [len({p[: k + 1].tobytes() for p in later}) for k in range(later.shape[1])]
    assert len(tree) == sum(distinct)
    assert torch.bincount(tree.depth).tolist() == distinct
    for plan, path in zip(later, tree.path, strict=True):
        for k, node in enumerate(path.tolist()):
            assert tree.depth[node] == k
            assert np.array_equal(tree.asked[node, : k + 1].bool().numpy(), plan[: k + 1])
            assert not tree.asked[node, k + 1 :].any()


def test_sums_run_along_the_path(plans: np.ndarray) -> None:
    tree = PlanTree.of(plans, TIME)
    losses = torch.rand(3, len(tree))
    together = tree.along_paths(losses)
    for p, path in enumerate(tree.path):
        torch.testing.assert_close(together[:, p], losses[:, path].sum(1))


def test_a_node_is_predicted_like_the_history_it_stands_for(
    predictor: MLPPredictor, plans: np.ndarray
) -> None:
    tree = PlanTree.of(plans, TIME)
    data = EncodedCohort(predictor.encoder_, COHORT)
    known = np.random.default_rng(1).uniform(size=COHORT.recorded.shape) < 0.5
    known &= (np.arange(COHORT.n_times) <= TIME)[:, None]
    index = np.arange(len(COHORT))
    found = predictor.tree_log_proba(data.inputs(index, known), data.slots[index], tree)
    for p, plan in enumerate(plans):
        alone = predictor.predict_proba(History.of(COHORT, known | plan))[:, TIME + 1 :]
        along = found[:, tree.path[p]].exp()
        np.testing.assert_allclose(along.numpy(), alone, atol=1e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("kind", ["cross-entropy", "error"])
def test_losses_along_the_tree_equal_those_of_plans_alone(
    predictor: MLPPredictor, plans: np.ndarray, kind: str, reduction: str
) -> None:
    targets = LossTargets(COHORT, [predictor])
    assert grows_trees(targets)
    index, asked = np.arange(len(COHORT)), COHORT.catalog.open_slots.copy()
    asked[TIME + 1 :] = False
    tree = PlanTree.of(plans, TIME)
    found = tree_losses(targets, index, asked, tree, TIME, kind, reduction)
    alone = plan_losses(targets, index, asked, plans, TIME, reduction)
    alone = alone[..., targets.kinds.index(kind)]
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)
