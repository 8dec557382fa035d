"""Few subjects: networks that see no values, shares, and softened labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nocta.core.errors import ConfigError, NotFittedError
from nocta.core.history import History
from nocta.core.policy import Observation
from nocta.core.random_plans import uniform_plans
from nocta.model.nocta import NOCTA
from nocta.model.presets.options import DefaultOptions
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.committee import CommitteeEstimator, PopulationEstimator
from nocta.planning.estimators.targets import LossTargets
from nocta.predictors.cross_fitted import CrossFittedPredictor
from small_models import QUICK, Parts


@pytest.fixture
def committee(tiny_models: dict[str, NOCTA]) -> CommitteeEstimator:
    found = tiny_models["amortized"].planner_.amortized  # type: ignore[union-attr]
    assert isinstance(found, CommitteeEstimator)
    return found


def observe(parts: Parts, time: int = 0, shift: float = 0.0) -> Observation:
    """The test subjects after everything up to `time`, their values moved by `shift`."""
    test = parts[2]
    asked = np.zeros_like(test.recorded)
    asked[:, : time + 1] = True
    history = History.of(test, asked)
    return Observation(
        history=replace(history, values=history.values + np.float32(shift)),
        time=np.full(len(test), time),
        remaining=np.full(len(test), np.inf),
        catalog=test.catalog,
        rows=np.arange(len(test)),
    )


def plans_after(parts: Parts, time: int) -> np.ndarray:
    open_slots = parts[2].catalog.open_slots & (np.arange(parts[2].n_times) > time)[:, None]
    return uniform_plans(12, open_slots, np.random.default_rng(0))


@pytest.mark.parametrize("time", [-1, 0, 2])
def test_the_population_sees_requests_and_no_values(
    committee: CommitteeEstimator, tiny_parts: Parts, time: int
) -> None:
    plans = plans_after(tiny_parts, time)
    for network in committee.populations:
        here = network.score_plans(observe(tiny_parts, time), plans)
        assert torch.equal(here, network.score_plans(observe(tiny_parts, time, 1.0), plans))
        assert here.std() > 0


def test_the_individuals_see_values(committee: CommitteeEstimator, tiny_parts: Parts) -> None:
    plans = plans_after(tiny_parts, 0)
    network = committee.individuals[0]
    here, moved = (network.score_plans(observe(tiny_parts, 0, s), plans) for s in (0.0, 1.0))
    assert not torch.allclose(here, moved)


def test_what_was_asked_for_before_changes_what_the_population_expects(
    committee: CommitteeEstimator, tiny_parts: Parts
) -> None:
    plans = plans_after(tiny_parts, 0)
    asked = observe(tiny_parts, 0)
    nothing = History.empty(tiny_parts[2].catalog, tiny_parts[2].context)
    network = committee.populations[0]
    idle = network.score_plans(replace(asked, history=nothing), plans)
    assert not torch.allclose(network.score_plans(asked, plans), idle)


def test_the_shares_mix_both_kinds(committee: CommitteeEstimator, tiny_parts: Parts) -> None:
    seen, plans = observe(tiny_parts, 1), plans_after(tiny_parts, 1)
    scores = {s: committee.with_share(s).score_plans(seen, plans) for s in (0.0, 0.25, 1.0)}
    common = torch.stack([n.score_plans(seen, plans) for n in committee.populations]).mean(0)
    torch.testing.assert_close(scores[0.0], common)
    torch.testing.assert_close(scores[0.25], 0.25 * scores[1.0] + 0.75 * scores[0.0])


def test_a_committee_is_restored_as_it_was(
    committee: CommitteeEstimator, tiny_parts: Parts
) -> None:
    seen, plans = observe(tiny_parts, 1), plans_after(tiny_parts, 1)
    again = CommitteeEstimator.from_state(*committee.state())
    assert again.individual_share == committee.individual_share
    assert torch.equal(again.score_plans(seen, plans), committee.score_plans(seen, plans))


def test_a_given_share_is_kept(tiny_parts: Parts, tiny_predictor: CrossFittedPredictor) -> None:
    train, val, _ = tiny_parts
    model = NOCTA("amortized", options={**QUICK, "individual_share": 0.25})
    planner = model.fit(train, val, predictor=tiny_predictor).planner_
    assert planner.amortized.individual_share == 0.25  # type: ignore[union-attr]


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"individual_share is 1\.5"):
        DefaultOptions(individual_share=1.5)


def test_a_population_network_must_be_fitted(tiny_parts: Parts) -> None:
    with pytest.raises(NotFittedError):
        PopulationEstimator().start(observe(tiny_parts))
    assert issubclass(PopulationEstimator, AmortizedEstimator)


# -- softened labels ---------------------------------------------------------------------


def losses(
    parts: Parts, predictor: CrossFittedPredictor, share: float
) -> tuple[torch.Tensor, np.ndarray]:
    train = parts[0]
    targets = LossTargets(train, predictor.members, predictor.fold, hindsight=share)
    asked = np.zeros_like(train.recorded)
    asked[:, 0] = True
    return targets(np.arange(len(train)), asked), train.labeled


def test_softened_losses_lie_between_label_and_informed_prediction(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    realized, labeled = losses(tiny_parts, tiny_predictor, 0.0)
    mixed, _ = losses(tiny_parts, tiny_predictor, 0.4)
    informed, _ = losses(tiny_parts, tiny_predictor, 1.0)
    torch.testing.assert_close(mixed, 0.6 * realized + 0.4 * informed)
    assert not torch.allclose(realized, informed)
    assert not mixed[~torch.from_numpy(labeled)].any()


def test_softened_losses_vary_less_than_realized_ones(
    tiny_parts: Parts, tiny_predictor: CrossFittedPredictor
) -> None:
    realized, labeled = losses(tiny_parts, tiny_predictor, 0.0)
    informed, _ = losses(tiny_parts, tiny_predictor, 1.0)
    there = torch.from_numpy(labeled)
    assert informed[there][:, 0].std() < realized[there][:, 0].std()
