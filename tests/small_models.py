"""What the tests of fitted models have in common."""

from __future__ import annotations

from nocta.cohort.cohort import Cohort
from nocta.presets.base import EstimatorName

Parts = tuple[Cohort, Cohort, Cohort]
#: Short fits of the default preset; everything else is as recommended.
QUICK = {"hidden": 16, "n_rounds": 0, "n_neighbors": 8, "width": 8, "voting_width": 4}
ESTIMATORS: tuple[EstimatorName, ...] = ("amortized", "contrastive", "ensemble")
#: A cost weight at which every one of them acquires something, and not everything.
WEIGHT = 0.005
