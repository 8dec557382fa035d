"""Small fitted models, one fit per session, shared by the tests of everything around them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.model.nocta import NOCTA
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.testing import tiny_cohort
from small_models import ESTIMATORS, QUICK, QUICK_FIT, Parts

#: Folders, files and tests that take over a second; `make test-quick` leaves them out.
MEDIUM = (
    "benchmarks/",
    "cli/test_app.py::test_being_told_to_end",
    "cli/test_choose.py",
    "cli/test_compare_command.py",
    "cli/test_data_options.py",
    "cli/test_demo.py",
    "cli/test_evaluate.py",
    "cli/test_fit.py",
    "cli/test_large_cohorts.py",
    "cli/test_messy.py::test_it_goes",
    "cli/test_plan.py",
    "datasets/test_oai.py",
    "datasets/test_physionet2012.py",
    "evaluation/test_rollout_pieces.py",
    "exact/test_exact_noct.py",
    "exact/test_optimum.py",
    "exact/test_theory.py",
    "methods/",
    "model/",
    "planning/estimators/",
    "predictors/test_cde.py",
    "predictors/test_fitting.py",
    "predictors/test_mlp.py",
    "predictors/test_recurrent.py",
    "report/",
    "runs/",
    "service/",
    "test_extending.py",
)


#: Fixtures that train for some seconds.
TRAINED = {"tiny_models", "tiny_predictor", "fitted_model"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test-quick` leaves out."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            place = f"{item.path.relative_to(here).as_posix()}::{item.name}"
            if place.startswith(MEDIUM) or TRAINED & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.medium)


@pytest.fixture(scope="session")
def tiny_parts() -> Parts:
    """Train, validation and test subjects of the tiny clinic."""
    train, val, test = tiny_cohort(n_subjects=96, seed=0).split((0.6, 0.2, 0.2), seed=0)
    return train, val, test


@pytest.fixture(scope="session")
def tiny_predictor(tiny_parts: Parts) -> CrossFittedPredictor:
    """Two networks, each of which never saw half of the training subjects."""
    import numpy as np

    from nocta.predictors.recurrent import RecurrentPredictor
    from nocta.predictors.training import TrainingConfig

    train, val, _ = tiny_parts
    fold = np.arange(len(train)) % 2
    training = TrainingConfig(epochs=30, batch_size=16, learning_rate=1e-2)
    members = [
        RecurrentPredictor(hidden=16, dropout=0.1, training=training, seed=i).fit(
            train.subset(np.flatnonzero(fold != i)), val
        )
        for i in range(2)
    ]
    return CrossFittedPredictor(members, fold)


@pytest.fixture(scope="session")
def tiny_models(tiny_parts: Parts, tiny_predictor: CrossFittedPredictor) -> dict[str, NOCTA]:
    """The default preset with each of its estimators."""
    train, val, _ = tiny_parts
    options = {**QUICK, "amortized_share": 0.5}
    return {
        name: NOCTA(name, seed=0, options=options).fit(train, val, predictor=tiny_predictor)
        for name in ESTIMATORS
    }


EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="session")
def small_clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first seventy patients of the example, with its schema."""
    folder = tmp_path_factory.mktemp("clinic")
    lines = (EXAMPLES / "clinic.csv").read_text("utf-8").splitlines()
    few = [line for line in lines[1:] if int(line[1:4]) <= 70]
    (folder / "clinic.csv").write_text("\n".join([lines[0], *few]) + "\n", "utf-8")
    shutil.copy(EXAMPLES / "clinic.schema.toml", folder)
    return folder / "clinic.csv"


@pytest.fixture(scope="session")
def fitted_output(small_clinic: Path) -> tuple[Path, str]:
    """A model folder and what `nocta fit` said."""
    out = small_clinic.parent / "model"
    args = ["fit", str(small_clinic), "--out", str(out), *QUICK_FIT]
    found = CliRunner().invoke(app, args)
    assert found.exit_code == 0, found.output
    return out, " ".join(found.output.split())


@pytest.fixture(scope="session")
def fitted_model(fitted_output: tuple[Path, str]) -> Path:
    return fitted_output[0]
