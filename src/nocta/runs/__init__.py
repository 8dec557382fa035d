"""Comparisons: one job is one method at one seed; a sweep runs many, a summary reads them.

`compare` does all of it. The parts, in the order in which data flows: `setup` (what is held fixed),
`tuning` (options tried on validation), `job` (fit, roll out, audit) and its `record`, `tasks` (what
a worker does), `scheduler` (processes or a Dask `cluster`), `sweep` (which tasks are left), `store`
 (files of finished jobs, a `checkpoint`), `results` (results.csv), `summary`.
"""

from nocta.runs.compare import Comparison, compare, make_jobs
from nocta.runs.record import Job
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
