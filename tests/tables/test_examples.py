"""The files in `examples/` are what their script draws, and hold what the schema can say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nocta.core.cohort import Cohort

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def make_clinic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_clinic", EXAMPLES / "make_clinic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_script_draws(make_clinic: ModuleType) -> None:
    drawn = {"clinic.csv": make_clinic.draw_clinic(), "one-patient.csv": make_clinic.one_patient()}
    for name, frame in drawn.items():
        assert (EXAMPLES / name).read_text("utf-8") == frame.to_csv(index=False)


def test_the_clinic_is_ragged_and_its_label_learnable() -> None:
    cohort = Cohort.from_table(EXAMPLES / "clinic.csv", EXAMPLES / "clinic.schema.toml")
    assert len(cohort) == 300
    assert cohort.visits.mean() < 0.9
    assert (cohort.visits & ~cohort.labeled).any()
    stiffness = cohort.values[:, :, cohort.catalog.columns.index("stiffness")]
    known = cohort.labeled & ~np.isnan(stiffness)
    assert np.corrcoef(np.log(stiffness[known]), cohort.labels[known])[0, 1] > 0.6
