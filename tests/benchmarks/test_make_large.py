"""The large cohort of the benchmark is drawn from the process it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.tables.parts.parts import CohortParts

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "make_large.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_large", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("large")
    assert list(script.write_large(out, 2500, per_part=1000, seed=3)) == [1000, 2000, 2500]
    return out


def test_stages_move_as_the_process_says(script: ModuleType) -> None:
    stage = script.draw_stages(40_000, np.random.default_rng(0))
    moves = np.zeros((3, 3))
    np.add.at(moves, (stage[:, :-1].ravel(), stage[:, 1:].ravel()), 1)
    np.testing.assert_allclose(moves / moves.sum(1, keepdims=True), script.STEP, atol=0.01)
    np.testing.assert_allclose(np.bincount(stage[:, 0]) / 40_000, script.START, atol=0.01)


def test_the_cohort_can_be_read_and_dear_tests_tell_more(folder: Path) -> None:
    cohort = Cohort.from_table(folder / "cohort", folder / "cohort" / "schema.toml")
    assert cohort.values.shape == (2500, 10, 8)
    assert np.isnan(cohort.values).mean() == pytest.approx(0.1, abs=0.01)
    told = [
        np.corrcoef(cohort.labels[~np.isnan(v)], v[~np.isnan(v)])[0, 1]
        for v in np.moveaxis(cohort.values, 2, 0)
    ]
    assert told == sorted(told)


def test_histories_hold_a_part_of_the_records_and_nobody_is_finished(folder: Path) -> None:
    cohort = Cohort.from_table(folder / "cohort", folder / "cohort" / "schema.toml")
    parts = CohortParts.open(folder / "history", folder / "history" / "schema.toml")
    assert parts.n_subjects.tolist() == [1000, 1000, 500]
    table = parts.parts[0].read_histories(parts.schema, cohort.catalog)
    assert set(table.time.tolist()) == set(range(-1, 9))
    known = table.history.acquired
    np.testing.assert_array_equal(table.history.values[known], cohort.values[:1000][known])
    later = np.arange(10)[:, None] > table.time[:, None, None]
    assert not (known & later).any()


def test_the_same_seed_gives_the_same_files(
    script: ModuleType, folder: Path, tmp_path: Path
) -> None:
    list(script.write_large(tmp_path, 2500, per_part=1000, seed=3))
    files = sorted(folder.rglob("*.parquet"))
    assert len(files) == 6  # parts of the cohort and of its history
    for file in files:
        assert (tmp_path / file.relative_to(folder)).read_bytes() == file.read_bytes()
