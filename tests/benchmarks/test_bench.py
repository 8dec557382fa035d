"""The benchmark command: parts run alone, go on where they stopped, and end in a page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import bench
import measure
import page
import part_growth
import scenes

CURVE = {
    "estimator": "contrastive",
    "what": "n",
    "time_exponent": 0.9,
    "memory_exponent": 1.0,
    "points": [{"size": n, "cpu_seconds": 1e-3 * n, "peak_mb": 2.0 * n} for n in (100, 200, 400)],
}
FOLLOWED = {"decisions_per_subject": 6.0}
RATIO = {
    "decisions": 30,
    "ratio": 12.0,
    "target": 10.0,
    "subjects": 5,
    "subjects_alike": 5,
    "widest_tie": 0.0,
}
RESULTS = {
    "reference": {
        "sizes": "full",
        "about": {
            "versions": {"torch": "2", "numpy": "2"},
            "cores": 2,
            "machine": "x86_64",
            "vector": "AVX2",
        },
        "contrastive": RATIO,
        "amortized": RATIO | {"ratio": 4.0, "target": 5.0, "subjects_alike": 4, "widest_tie": 1e-6},
    },
    "default": {
        "amortized": {"target_ms": 5.0, "points": [FOLLOWED | {"ms": 1.0}, FOLLOWED | {"ms": 2.0}]},
        "contrastive": {"target_ms": 50.0, "points": [FOLLOWED | {"ms": 60.0}]},
        "released_ras_ms": [7.0, 18.0],
    },
    "decide": {
        "target_ms": 20.0,
        "calls": [
            {"estimator": "amortized", "median_ms": 8.0},
            {"estimator": "contrastive", "median_ms": 30.0},
        ],
    },
    "growth": {"curves": [CURVE]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts of the smallest version, run for good."""
    out = tmp_path_factory.mktemp("bench")
    common = ["--tiny", "--out", str(out), "--models", str(out / "models")]
    bench.main([*common, "reference", "growth", "methods", "--page", str(out / "page.md")])
    return out


def test_parts_leave_files_a_figure_and_a_page(folder: Path) -> None:
    assert {f.name for f in folder.glob("*.*")} >= {
        "reference.json",
        "growth.json",
        "methods.json",
        "growth.png",
        "growth.svg",
        "page.md",
    }
    found = json.loads((folder / "reference.json").read_text())
    assert found["sizes"] == "tiny"
    for name in ("contrastive", "amortized"):
        assert found[name]["subjects_alike"] == found[name]["subjects"]
        assert found[name]["ratio"] > 0
    curves = json.loads((folder / "growth.json").read_text())["curves"]
    assert {(c["estimator"], c["what"]) for c in curves} == set(page.ON_PAPER)
    assert "paper contrastive against the reference" in (folder / "page.md").read_text()


def test_what_was_measured_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "methods.json").read_bytes()
    bench.main(["--tiny", "--out", str(folder), "--models", str(folder / "models"), "methods"])
    assert (folder / "methods.json").read_bytes() == before
    assert "methods: kept" in capsys.readouterr().out


def test_a_part_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(["speed"])
    assert "there is no part 'speed'" in capsys.readouterr().err


def test_short_versions_leave_the_results_of_record_alone() -> None:
    assert bench.parse([]).out == Path("results/bench")
    assert bench.parse(["--quick"]).out == Path("build/bench/quick")
    assert bench.parse(["--quick"]).page is None


def test_targets_are_said_to_be_met_or_missed() -> None:
    verdicts = {row.what: row.met for row in page.rows(RESULTS)}
    assert verdicts == {
        "paper contrastive against the reference": True,
        "paper amortized against the reference": False,
        "default amortized: a trajectory": True,
        "default contrastive: a trajectory": False,
        "default amortized against released RAS (7 to 18 ms)": False,
        "default amortized: one decision of one subject": True,
        "default contrastive: one decision of one subject": None,
    }


def test_stopping_at_once_is_no_trajectory_and_meets_no_target() -> None:
    idle = [{"ms": 0.01, "decisions_per_subject": 1.0}]
    part = RESULTS["default"] | {"amortized": {"target_ms": 5.0, "points": idle}}
    ratio = {"contrastive": RATIO, "amortized": RATIO | {"decisions": 5}}
    found = {row.what: row for row in page.rows({"reference": ratio, "default": part})}
    for what in ("default amortized: a trajectory", "paper amortized against the reference"):
        assert found[what].met is None
        assert found[what].measured == page.IDLE


def test_the_page_extrapolates_from_the_largest_cohort(tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    names = ("subjects", "step", "jobs", "cpu_seconds", "seconds", "peak_mb", "anonymous_mb")
    with large.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerow((10_000, "score", 1, 36, 40, 300, 200))
        writer.writerow((100_000, "score", 1, 360, 400, 310, 200))
    page.write_page(RESULTS, large, tmp_path / "scaling.md")
    text = (tmp_path / "scaling.md").read_text()
    assert "time ~ n^1.00, own memory ~ n^0.00" in text
    assert "3.6 ms of one core" in text
    assert "100 hours of one core" in text
    assert "only the short version has been run so far: `default`" in text


def test_exponents_are_recovered_from_noise_free_growth() -> None:
    assert measure.exponent([10, 20, 40], [1.0, 4.0, 16.0]) == pytest.approx(2.0)


def test_memory_that_is_held_for_a_moment_is_seen() -> None:
    found = measure.peak_mb(lambda: np.ones(4 * 2**20).sum())
    if found is None:
        pytest.skip("peak memory is read from Linux")
    assert 25 < found < 60


def test_training_for_an_instant_ends_with_the_benchmark() -> None:
    from nocta.predictors import neural, training

    with scenes.training_of(scenes.TINY):
        assert neural.train is not training.train
    assert neural.train is training.train
    with scenes.training_of(scenes.FULL):
        assert neural.train is training.train


def test_queries_have_seen_nothing_of_later_slots() -> None:
    cohort = scenes.random_cohort(12, 8, 3)
    observation = part_growth.queries(cohort)
    later = np.arange(8)[None, :, None] > observation.time[:, None, None]
    assert not (observation.history.requested & later).any()
    assert observation.history.requested.any(axis=(1, 2)).all()
