"""The four templates keep the contracts of nocta: nothing leaks, shapes are right."""

from __future__ import annotations

import numpy as np
import pytest
from nocta_extending.dataset import COIN_CLINIC
from nocta_extending.estimator import SlotMean
from nocta_extending.policy import CheapestFirst
from nocta_extending.predictor import Boosting

from nocta import Cohort, History, Observation
from nocta.datasets import LoadLog
from nocta.testing import RunningMeanPredictor, check_policy, check_predictor, tiny_cohort

Parts = tuple[Cohort, Cohort, Cohort]


@pytest.fixture(scope="module")
def parts() -> Parts:
    train, val, test = tiny_cohort(n_subjects=80, seed=0).split((0.5, 0.25, 0.25), seed=0)
    return train, val, test


def test_the_predictor_is_causal(parts: Parts) -> None:
    check_predictor(Boosting().fit(parts[0], parts[1], seed=0), parts[2])


def test_the_policy_does_not_leak(parts: Parts) -> None:
    train, val, test = parts
    predictor = RunningMeanPredictor(train.n_classes)  # needs no training
    method = CheapestFirst().fit(train, val, seed=0, predictor=predictor)
    settings = method.settings(val, 10)
    assert settings == [{"n_features": 1}, {"n_features": 2}]
    for setting in settings:
        policy = method.policy(setting)
        check_policy(lambda world, policy=policy: policy, test)


def test_the_estimator_expects_less_loss_from_more_slots() -> None:
    cohort = COIN_CLINIC.loader(LoadLog())
    predictor = Boosting().fit(cohort, cohort, seed=0)
    estimator = SlotMean().fit(cohort, cohort, predictor, seed=0)
    observation = Observation(
        history=History.empty(cohort.catalog, cohort.context[:3]),
        time=np.full(3, -1),
        remaining=np.full(3, np.inf),
        catalog=cohort.catalog,
        rows=np.arange(3),
    )
    nothing, everything = np.zeros((4, 2), dtype=bool), np.ones((4, 2), dtype=bool)
    scores = estimator.score_plans(observation, np.stack([nothing, everything]))
    assert scores.shape == (3, 2)
    assert (scores[:, 1] < scores[:, 0]).all()


def test_the_data_set_is_what_its_card_says() -> None:
    cohort = COIN_CLINIC.loader(LoadLog(), n_subjects=50, seed=1)
    assert (len(cohort), cohort.name) == (50, COIN_CLINIC.name)
