"""One small comparison, made once, that every test of the report reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nocta.runs.compare import Comparison, compare, make_jobs
from nocta.runs.setup import DataSource, Setup
from nocta.runs.sweep import Failure


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two seeds of three methods, with one failure noted."""
    source = DataSource("synthetic", max_subjects=60)
    setup = Setup(source, n_points=3, predictor="bayes", audit_subjects=6)
    out: Path = tmp_path_factory.mktemp("comparison")
    found = compare(setup, make_jobs(["static", "random", "nothing"], [0, 1]), out, n_jobs=1)
    return replace(found, failures=[Failure("difa", 1, "RuntimeError: a < b & c")])
