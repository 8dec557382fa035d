"""The Bayes filter as a predictor: exact where it can be, and under the same contract."""

from __future__ import annotations

import numpy as np
import pytest

from nocta.core.errors import DataError
from nocta.core.history import History
from nocta.exact import label_posterior, synthetic_task
from nocta.predictors.bayes import BayesPredictor
from nocta.testing import check_predictor, tiny_cohort, tiny_counter_cohort


def test_it_keeps_the_predictor_contract():
    check_predictor(BayesPredictor(synthetic_task(horizon=4)), tiny_counter_cohort())


def test_it_equals_the_filter_on_any_history():
    cohort, task = tiny_counter_cohort(20), synthetic_task(horizon=4)
    requested = np.random.default_rng(0).random(cohort.recorded.shape) < 0.5
    history = History.of(cohort, requested)
    expected = label_posterior(task, cohort.values, requested)
    assert BayesPredictor(task).predict_proba(history) == pytest.approx(expected, abs=1e-6)


def test_nothing_acquired_gives_the_base_rates():
    cohort = tiny_counter_cohort(2000)
    nothing = History.of(cohort, np.zeros_like(cohort.recorded))
    predicted = BayesPredictor(synthetic_task(horizon=4)).predict_proba(nothing)[0]
    for t in range(4):
        share = np.bincount(cohort.labels[:, t], minlength=9) / len(cohort)
        assert predicted[t] == pytest.approx(share, abs=0.04)


def test_a_history_of_another_shape_is_refused():
    cohort = tiny_cohort(3)
    with pytest.raises(DataError, match=r"\(4, 3\) times and columns.*has \(4, 2\)"):
        BayesPredictor(synthetic_task(horizon=4)).predict_proba(
            History.empty(cohort.catalog, cohort.context)
        )
