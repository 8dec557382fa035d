"""Comparisons: one job is one method at one seed; a sweep runs many, a summary reads them.

`compare` does all of it. The parts, in the order in which data flows: `setup` (what is held
fixed), `tuning` (options tried on validation), `job` (fit, roll out, judge), `audits` (of every
operating point), `store` (files of finished jobs), `sweep` (which jobs are left, on how many
processes), `results` (results.csv), `summary` (areas, paired differences, share of the optimum).
"""

from nocta.runs.compare import Comparison, compare, make_jobs
from nocta.runs.job import Job
from nocta.runs.results import COLUMNS, read_results, write_results
from nocta.runs.setup import DataSource, Setup

__all__ = [
    "COLUMNS",
    "Comparison",
    "DataSource",
    "Job",
    "Setup",
    "compare",
    "make_jobs",
    "read_results",
    "write_results",
]
