"""A small synthetic comparison and methods that misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_methods import FAKES

from nocta.methods.registry import METHODS
from nocta.runs import score_run
from nocta.runs.checkpoint import Checkpoint
from nocta.runs.score_run import ScorePart
from nocta.runs.setup import DataSource, Setup


@pytest.fixture
def small_setup() -> Setup:
    """Few synthetic subjects and the exact predictor: a job takes a fraction of a second."""
    source = DataSource("synthetic", max_subjects=60)
    return Setup(source, n_points=3, predictor="bayes", audit_subjects=6)


@pytest.fixture(autouse=True)
def _fake_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, target in FAKES.items():
        monkeypatch.setitem(METHODS, name, target)


@pytest.fixture
def clinic() -> tuple[Path, Path]:
    """A table of 300 subjects and its schema."""
    folder = Path(__file__).parents[2] / "examples"
    return folder / "clinic.csv", folder / "clinic.schema.toml"


@pytest.fixture
def interrupted() -> Iterator[Callable[[str], pytest.MonkeyPatch]]:
    """Stop when the result of this name is to be written, until undone."""
    patch, real = pytest.MonkeyPatch(), score_run._keep

    def stop_at(name: str) -> pytest.MonkeyPatch:
        def keep(finished: Checkpoint, job: ScorePart, data: bytes) -> None:
            if job.file == name:
                raise KeyboardInterrupt
            real(finished, job, data)

        patch.setattr(score_run, "_keep", keep)
        return patch

    yield stop_at
    patch.undo()
