"""Cohorts larger than memory: a folder of Parquet files, each with whole subjects.

`parts` reads them one at a time, `stored` gathers them into one cohort with its arrays on disk.
"""

from nocta.tables.parts.parts import CohortParts, Part, is_parts
from nocta.tables.parts.stored import StorageLimits, StoredCohort, gather_parts, store

__all__ = [
    "CohortParts",
    "Part",
    "StorageLimits",
    "StoredCohort",
    "gather_parts",
    "is_parts",
    "store",
]
