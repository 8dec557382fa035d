"""A small clinic and a predictor for it, shared by the tests of several methods."""

from __future__ import annotations

import pytest

from nocta.core.cohort import Cohort
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.fitting import fit_predictor
from nocta.testing import tiny_cohort


@pytest.fixture(scope="module")
def clinic() -> list[Cohort]:
    return tiny_cohort(90).split((0.5, 0.25, 0.25), seed=0)


@pytest.fixture(scope="module")
def predictor(clinic: list[Cohort]) -> CrossFittedPredictor:
    return fit_predictor(clinic[0], clinic[1], seed=0, quick=True)
