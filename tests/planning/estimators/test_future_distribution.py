import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from nocta.planning.estimators.future_distribution import (
    contrastive_loss,
    future_distribution,
    jensen_shannon,
    similarity,
    spread_of_plans,
)

# Two slots, two features; candidate 0 is the empty plan.
PLANS = torch.tensor(
    [[[0, 0], [0, 0]], [[1, 0], [0, 0]], [[1, 0], [1, 0]], [[1, 1], [1, 1]]], dtype=torch.bool
)


def test_each_plan_spreads_its_mass_evenly():
    spread = spread_of_plans(PLANS)
    expected = [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0.5, 0, 0.5, 0, 0], [0.25] * 4 + [0]]
    torch.testing.assert_close(spread, torch.tensor(expected))


def test_weights_follow_the_exponential_of_noct():
    scores = torch.tensor([[5.0, 1.0, 2.0, 3.0]])
    zeta = future_distribution(PLANS, scores, n_top_plans=2)[0]
    first = 1 / (1 + math.exp(-1.0))
    torch.testing.assert_close(zeta[0], torch.tensor(first + (1 - first) / 2))
    torch.testing.assert_close(zeta[2], torch.tensor((1 - first) / 2))
    assert zeta[4] == 0


def test_plans_worse_than_stopping_count_as_stopping():
    scores = torch.tensor([[1.5, 1.0, 2.0, 3.0]])
    zeta = future_distribution(PLANS, scores, n_top_plans=4)[0]
    weights = torch.softmax(-torch.tensor([1.0, 1.5, 1.5, 1.5]), 0)
    torch.testing.assert_close(zeta[0], weights[0])
    torch.testing.assert_close(zeta[4], weights[1:].sum())


def test_who_should_stop_has_all_mass_on_stopping():
    zeta = future_distribution(PLANS, torch.tensor([[0.1, 1.0, 2.0, 3.0]]), n_top_plans=3)[0]
    torch.testing.assert_close(zeta, torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0]))


def test_count_is_how_often_a_slot_appears():
    scores = torch.tensor([[9.0, 1.0, 2.0, 3.0]])
    zeta = future_distribution(PLANS, scores, n_top_plans=3, weighting="count")[0]
    # Seven appearances in all: slot (0, 0) three times, (1, 0) twice, the others once.
    torch.testing.assert_close(zeta, torch.tensor([3.0, 1.0, 2.0, 1.0, 0.0]) / 7)


def test_more_top_plans_than_candidates_is_all_of_them():
    scores = torch.rand(3, 4)
    torch.testing.assert_close(
        future_distribution(PLANS, scores, 50), future_distribution(PLANS, scores, 4)
    )


@pytest.mark.parametrize("weighting", ["softmax", "count"])
@given(seed=st.integers(0, 10_000), kappa=st.integers(1, 12))
def test_it_is_a_distribution(weighting, seed, kappa):
    generator = torch.Generator().manual_seed(seed)
    plans = torch.rand(10, 3, 2, generator=generator) < 0.5
    plans[0] = False
    scores = 50 * torch.rand(4, 10, generator=generator)
    zeta = future_distribution(plans, scores, kappa, weighting)
    assert (zeta >= 0).all()
    torch.testing.assert_close(zeta.sum(1), torch.ones(4))


def random_distributions(n, width, seed):
    rng = np.random.default_rng(seed)
    out = rng.dirichlet(np.ones(width), size=n)
    out[:, rng.integers(width)] = 0
    return out / out.sum(1, keepdims=True)


@given(seed=st.integers(0, 10_000))
def test_divergence_agrees_with_scipy(seed):
    a, b = random_distributions(5, 7, seed), random_distributions(5, 7, seed + 1)
    ours = jensen_shannon(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(ours, jensenshannon(a, b, axis=1) ** 2, atol=1e-9)


def test_divergence_of_all_pairs_by_broadcasting():
    a = torch.from_numpy(random_distributions(4, 6, 0))
    pairs = jensen_shannon(a[:, None], a[None])
    assert pairs.shape == (4, 4)
    torch.testing.assert_close(pairs, pairs.T)
    torch.testing.assert_close(pairs[1, 2], jensen_shannon(a[1], a[2]))


def test_strangers_diverge_by_log_two():
    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert float(jensen_shannon(a, b)) == pytest.approx(math.log(2))
    assert float(similarity(a, b, 2.0)) == pytest.approx(0.25)
    assert float(similarity(a, a, 2.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("distance", "alike", "expected"),
    [(0.0, 1.0, 0.0), (4.0, 1.0, 2.0), (0.0, 0.0, 0.5), (2.0, 0.0, 0.0), (0.5, 0.5, 0.1875)],
)
def test_contrastive_loss_by_hand(distance, alike, expected):
    loss = contrastive_loss(torch.tensor(distance), torch.tensor(alike), margin=1.0)
    assert float(loss) == pytest.approx(expected)
