"""A package that strangers install is found by name, in worker processes too."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXTENDING = Path(__file__).parents[1] / "examples" / "extending"
METHODS = ("cheapest-first", "nocta-slot-mean", "static")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables of a process that finds the installed example package.

    `pip install --target` puts the package and its entry points into a folder of their own, so
    nothing is installed into the running environment. With hatchling there (extra `dev`), building
    needs no network.
    """
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--disable-pip-version-check"]
    if find_spec("hatchling") is not None:
        options.append("--no-build-isolation")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    done = subprocess.run([*command, str(EXTENDING)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    paths = [str(target), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_nocta(environment: dict[str, str], *args: object) -> str:
    command = [sys.executable, "-c", "import nocta.cli; nocta.cli.main()", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def test_a_comparison_finds_all_four_by_name(installed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    data = ["coin-clinic", "--data-option", "n_subjects=120"]
    what = ["--methods", ",".join(METHODS), "--predictor", "boosting"]
    how = ["--seeds", 2, "--jobs", 2, "--points", 3, "--quick", "--quiet", "--out", out]
    run_nocta(installed, "compare", *data, *what, *how)
    with (out / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["seed"]) for row in rows} == {
        (method, seed) for method in METHODS for seed in "01"
    }
    assert {row["dataset"] for row in rows} == {"coin-clinic"}


def test_a_method_is_fitted_saved_and_evaluated(installed: dict[str, str], tmp_path: Path) -> None:
    data = ["coin-clinic", "--data-option", "n_subjects=120"]
    how = ["--method", "cheapest-first", "--points", 2, "--quick", "--quiet"]
    run_nocta(installed, "fit", *data, *how, "--out", tmp_path / "m")
    assert '"nocta-extending": "0.1.0"' in (tmp_path / "m" / "log.json").read_text("utf-8")
    run_nocta(installed, "evaluate", tmp_path / "m", "coin-clinic", "--out", tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"cheapest-first", "static"}


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["methods"], ["boosting", "cheapest-first", "nocta-slot-mean"]),
        (["datasets"], ["coin-clinic"]),
    ],
)
def test_the_lists_show_them(installed: dict[str, str], args: list[str], names: list[str]) -> None:
    shown = run_nocta(installed, *args)
    assert all(name in shown for name in names)


@pytest.mark.parametrize("name", ["policy", "estimator", "predictor", "dataset"])
def test_a_template_has_fewer_than_forty_lines(name: str) -> None:
    lines = (EXTENDING / "nocta_extending" / f"{name}.py").read_text("utf-8").splitlines()
    assert len(lines) < 40
