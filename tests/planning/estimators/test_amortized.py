"""The recurrent amortized estimator: what it reads, what it predicts, what it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.errors import NotFittedError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.model.nocta import NOCTA
from nocta.planning.estimators.amortized import LOSSES, AmortizedEstimator, random_plans
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import tiny_cohort
from small_models import Parts

SHORT = TrainingConfig(epochs=3, batch_size=32, check_every=1)


@pytest.fixture(scope="module")
def fitted(tiny_models: dict[str, NOCTA]) -> AmortizedEstimator:
    return tiny_models["amortized"].planner_.amortized.individuals[0]  # type: ignore


def observe(parts: Parts, time: int, density: float = 0.5) -> Observation:
    cohort = parts[2]
    asked = np.random.default_rng(0).uniform(size=cohort.recorded.shape) < density
    asked[:, time + 1 :] = False
    return Observation(
        history=History.of(cohort, asked),
        time=np.full(len(cohort), time),
        remaining=np.full(len(cohort), np.inf),
        catalog=cohort.catalog,
        rows=np.arange(len(cohort)),
    )


def two_plans(time: int) -> np.ndarray:
    """Nothing, and everything later."""
    plans = np.zeros((2, 4, 2), dtype=bool)
    plans[1, time + 1 :] = True
    return plans


def test_slots_one_by_one_equal_one_pass_over_the_plan(
    fitted: AmortizedEstimator, tiny_parts: Parts
) -> None:
    import torch

    observation = observe(tiny_parts, 1)
    plan = two_plans(1)[1]
    inputs = fitted.encoder_.encode(observation.history)
    frame = inputs[:, :, fitted.encoder_.slot_width :]
    steps = torch.from_numpy(plan).float().expand(len(observation), -1, -1)
    planned = (torch.arange(4) > 1).expand(len(observation), 1, -1)
    with torch.no_grad():
        whole = fitted.net_(inputs, torch.cat([steps, frame], dim=2), planned)
    expected = whole[:, 0, 2:, LOSSES.index(fitted.loss)].sum(dim=1)
    scored = fitted.score_plans(observation, plan[None])[:, 0]
    np.testing.assert_allclose(scored, expected, atol=2e-5)


@pytest.mark.parametrize("time", [-1, 0, 2])
def test_scores_depend_on_nothing_after_the_slot(
    fitted: AmortizedEstimator, tiny_parts: Parts, time: int
) -> None:
    observation = observe(tiny_parts, time)
    history = observation.history
    values = history.values.copy()
    values[:, time + 1 :] = 99.0
    changed = Observation(
        history=History(values, history.acquired, history.unavailable, history.context),
        time=observation.time,
        remaining=observation.remaining,
        catalog=observation.catalog,
        rows=observation.rows,
    )
    np.testing.assert_array_equal(
        fitted.score_plans(observation, two_plans(time)),
        fitted.score_plans(changed, two_plans(time)),
    )


def test_scores_depend_on_what_was_acquired(fitted: AmortizedEstimator, tiny_parts: Parts) -> None:
    known, unknown = observe(tiny_parts, 1, 1.0), observe(tiny_parts, 1, 0.0)
    before, after = (fitted.score_plans(o, two_plans(1)).numpy() for o in (unknown, known))
    assert np.abs(before - after).max() > 0.01


def test_either_loss_comes_from_the_same_fit(fitted: AmortizedEstimator, tiny_parts: Parts) -> None:
    observation = observe(tiny_parts, 0)
    again = AmortizedEstimator.from_state(*fitted.state())
    again.loss = "error"
    error = again.score_plans(observation, two_plans(0))
    entropy = fitted.score_plans(observation, two_plans(0))
    assert not np.allclose(error, entropy)
    assert float(error.max()) < 3.5  # at most one error at each of three times


def test_a_saved_estimator_scores_the_same(fitted: AmortizedEstimator, tiny_parts: Parts) -> None:
    observation = observe(tiny_parts, 0)
    again = AmortizedEstimator.from_state(*fitted.state())
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(
        fitted.score_plans(observation, two_plans(0)), again.score_plans(observation, two_plans(0))
    )


def test_warm_start_goes_on_where_it_was(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    train, val, _ = tiny_parts
    targets = LossTargets(train, tiny_predictor.members, tiny_predictor.fold, expected=True)
    val_targets = LossTargets(val, tiny_predictor.members[:1], expected=True)
    estimator = AmortizedEstimator(hidden=8, training=SHORT).fit(train, targets, val, val_targets)
    encoder, weight = estimator.encoder_, estimator.net_.head[0].weight.detach().clone()
    slow = TrainingConfig(epochs=1, batch_size=32, learning_rate=1e-6, schedule="constant")
    estimator.training = slow
    estimator.fit(train, targets, val, val_targets, warm_start=True)
    assert estimator.encoder_ is encoder
    np.testing.assert_allclose(estimator.net_.head[0].weight.detach(), weight, atol=1e-4)
    estimator.fit(train, targets, val, val_targets)
    assert float((estimator.net_.head[0].weight.detach() - weight).abs().max()) > 1e-3


def test_starts_are_never_before_the_plan_was_made(fitted: AmortizedEstimator) -> None:
    earliest = np.array([-1, 0, 2, 2])
    starts = fitted._draw_starts(np.repeat(earliest, 50), np.random.default_rng(0))
    assert (starts >= np.repeat(earliest, 50)[:, None]).all()
    assert starts.max() == 2  # after the last slot there is nothing left to plan


def test_random_plans_hold_from_the_very_start() -> None:
    asked, earliest = random_plans(np.ones((4, 2), dtype=bool))(
        np.arange(9), np.random.default_rng(0)
    )
    assert asked.shape == (9, 4, 2)
    assert (earliest == -1).all()


def test_unfitted_estimator_says_so(tiny_parts: Parts) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        AmortizedEstimator().start(observe(tiny_parts, 0))


def test_it_learns_that_looking_helps() -> None:
    """With losses that fall by a known amount for every scan, it predicts that amount."""
    import torch

    class Told(LossTargets):
        def __init__(self) -> None:
            self.kinds = LOSSES

        def __call__(self, index, requested):  # type: ignore[no-untyped-def]
            scans = torch.from_numpy(requested[..., 1].cumsum(axis=1)).float()
            return (2.0 - 0.25 * scans)[..., None].expand(-1, -1, 2)

    train, val = tiny_cohort(150, seed=1), tiny_cohort(40, seed=2)
    training = TrainingConfig(epochs=60, batch_size=50, learning_rate=1e-2, check_every=10)
    estimator = AmortizedEstimator(hidden=16, training=training)
    estimator.fit(train, Told(), val, Told())
    observation = observe((val, val, val), -1)
    plans = np.zeros((3, 4, 2), dtype=bool)
    plans[1, :, 0] = True  # blood at every visit: no use
    plans[2, :, 1] = True
    scores = estimator.score_plans(observation, plans).mean(dim=0).tolist()
    assert scores[0] == pytest.approx(8.0, abs=0.4)
    assert scores[1] == pytest.approx(8.0, abs=0.4)
    assert scores[2] == pytest.approx(8.0 - 0.25 * 10, abs=0.4)
