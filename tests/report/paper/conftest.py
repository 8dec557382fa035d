"""Small requests: few drawn subjects, methods that need no training."""

from __future__ import annotations

from pathlib import Path

import pytest

from nocta.report.paper import Request
from nocta.runs.setup import DataSource


@pytest.fixture
def small(tmp_path: Path) -> Request:
    """Sixty synthetic subjects, one seed, one process."""
    source = DataSource("synthetic", max_subjects=60)
    return Request(
        tmp_path,
        sources=(source,),
        n_seeds=2,
        n_jobs=1,
        rules={"predictor": "bayes", "audit_subjects": 4},
    )
