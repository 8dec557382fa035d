"""A small clinic as a frame, a schema for it, and the folder of broken files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest


@pytest.fixture
def broken() -> Path:
    return Path(__file__).parent / "data"


@pytest.fixture
def visits() -> pd.DataFrame:
    """Three patients: ragged, with empty cells, an unlabeled visit and text."""
    return pd.DataFrame(
        {
            "patient": ["a", "a", "a", "b", "b", "c"],
            "visit": [0, 1, 2, 0, 2, 0],
            "age": [61, 61, 61, 47, 47, 70],
            "sex": ["F", "F", "F", "M", "M", None],
            "alt": [31.0, None, 36.5, 52.0, 50.0, 20.0],
            "left": [1.0, 2.0, None, None, 5.0, 6.0],
            "right": [1.5, None, None, None, 5.5, 6.5],
            "stage": ["mild", "mild", "severe", "mild", None, "moderate"],
        }
    )


@pytest.fixture
def schema() -> dict[str, Any]:
    return {
        "subject": "patient",
        "visit": "visit",
        "label": "stage",
        "context": ["age", "sex"],
        "categories": {"sex": ["F", "M"]},
        "features": {
            "alt": {"cost": 3.0, "group": "blood"},
            "scan": {"columns": ["left", "right"], "cost": [9.0, 8.0, 7.0]},
        },
        "groups": {"blood": {"fee": 2.0}},
        "visit_fee": {"cost": 1.0},
    }
