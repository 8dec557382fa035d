"""Data in: the cohort, the price list, and what has been acquired so far."""

from nocta.cohort.catalog import Catalog, Feature
from nocta.cohort.cohort import Cohort
from nocta.cohort.history import History

__all__ = ["Catalog", "Cohort", "Feature", "History"]
