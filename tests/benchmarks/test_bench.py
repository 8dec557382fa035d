"""The benchmark command: parts run alone, go on where they stopped, and end in a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import bench
import large
import measure
import page
import part_bank
import part_growth
import scenes
import tables
import targets

ABOUT = {
    "measured": "2026-01-02T00:00:00+00:00",
    "source": "new",
    "versions": {"torch": "2", "numpy": "2"},
    "cores": 2,
    "machine": "x86_64",
    "vector": "AVX2",
}
PART = {"sizes": "full", "about": ABOUT}
CURVE = {
    "estimator": "contrastive",
    "what": "n",
    "fitted_from": 200,
    "time_exponent": 0.9,
    "time_error": 0.05,
    "memory_exponent": 1.0,
    "points": [{"size": n, "cpu_seconds": 1e-3 * n, "peak_mb": 2.0 * n} for n in (100, 200, 400)],
}
FOLLOWED = {
    "subjects": 10,
    "cost": 3.0,
    "decisions_per_subject": 6.0,
    "decisions_per_second": 500.0,
}
POINT = {
    "cost_weight": 0.1,
    "cost": 4.0,
    "decisions_per_subject": 6.0,
    "ratio": 12.0,
    "subjects": 5,
    "subjects_alike": 5,
    "widest_tie": 0.0,
    "fast": {"cpu_seconds": 1.0},
    "reference": {"cpu_seconds": 12.0},
}
NEAR_TIE = POINT | {"subjects_alike": 4, "widest_tie": 1e-6}
CALL = {"now": 2, "mean_ms": 8.0}
RESULTS = {
    "reference": PART
    | {
        "contrastive": {"target": 10.0, "points": [POINT, NEAR_TIE]},
        "amortized": {"target": 5.0, "points": [POINT, NEAR_TIE | {"ratio": 4.0}]},
    },
    "default": PART
    | {
        "amortized": {"target_ms": 5.0, "points": [FOLLOWED | {"ms": 1.0}, FOLLOWED | {"ms": 2.0}]},
        "contrastive": {"target_ms": 50.0, "points": [FOLLOWED | {"ms": 60.0}]},
        "released_ras_ms": [7.0, 18.0],
    },
    "decide": PART
    | {
        "target_ms": 20.0,
        "calls": [
            CALL | {"estimator": "amortized", "mask": "new", "median_ms": 28.0},
            CALL | {"estimator": "amortized", "mask": "seen", "median_ms": 8.0},
            CALL | {"estimator": "contrastive", "mask": "new", "median_ms": 60.0},
            CALL | {"estimator": "contrastive", "mask": "seen", "median_ms": 30.0},
        ],
    },
    "growth": PART | {"curves": [CURVE]},
}
SHORT_PARTS = ("reference", "growth", "methods")
FIT = {"step": "fit", "jobs": "1", "options": "-o width=4"}


def row(subjects: int, seconds: float, peak: float = 300, **kind: str) -> dict[str, str]:
    """A row of the table of large cohorts."""
    measured = {"cpu_seconds": seconds, "seconds": seconds, "peak_mb": peak, "anonymous_mb": 200}
    return {"subjects": str(subjects), **FIT, **kind} | {k: str(v) for k, v in measured.items()}


def run_tiny(out: Path, parts: Sequence[str]) -> str:
    """The smallest version of some parts, run for good; gives the page."""
    common = ["--tiny", "--out", str(out), "--models", str(out / "models")]
    bench.main([*common, *parts, "--page", str(out / "page.md")])
    return (out / "page.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts that are quick."""
    out = tmp_path_factory.mktemp("bench")
    run_tiny(out, SHORT_PARTS)
    return out


def test_parts_leave_files_and_a_page(folder: Path) -> None:
    found = json.loads((folder / "reference.json").read_text())
    assert found["sizes"] == "tiny"
    assert found["about"]["source"] == measure.source_hash()
    for name in ("contrastive", "amortized"):
        first, second = found[name]["points"]
        assert first["factor"] > second["factor"] > 0
        for point in (first, second):
            assert point["subjects_alike"] == point["subjects"]
            assert point["ratio"] > 0
    text = (folder / "page.md").read_text()
    assert "paper contrastive against the reference" in text
    assert "the shared predictor" in text
    assert "## The bank" not in text  # it was not measured


@pytest.mark.slow
def test_every_part_ends_in_the_page(folder: Path) -> None:
    text = run_tiny(folder, tuple(bench.PARTS))
    assert set(bench.read_results(folder)) == set(bench.PARTS)
    for title in ("Targets", "Decisions", "Growth", "Threads", "Every method", "The bank"):
        assert f"## {title}" in text
    curves = json.loads((folder / "growth.json").read_text())["curves"]
    assert {(c["estimator"], c["what"]) for c in curves} == set(tables.ON_PAPER)
    assert {f.name for f in folder.glob("growth.*")} >= {"growth.png", "growth.svg"}


def test_what_was_measured_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "methods.json").read_bytes()
    bench.main(["--tiny", "--out", str(folder), "--models", str(folder / "models"), "methods"])
    assert (folder / "methods.json").read_bytes() == before
    said = capsys.readouterr().out
    assert "methods: kept" in said
    assert "other code" not in said
    assert "make bench-large" in said


def test_a_file_of_another_format_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "methods.json").write_text('{"part": "methods", "sizes": "full"}')
    assert bench.read_results(tmp_path) == {}


def test_a_kept_model_of_another_recipe_is_fitted_again(folder: Path) -> None:
    kept = folder / "models" / "tiny-paper-amortized"
    file = kept / scenes.RECIPE
    wanted = file.read_text()
    arrays = next(kept.glob("*.safetensors"))
    arguments = "paper", "amortized", scenes.TINY, folder / "models"
    before = arrays.stat().st_ino
    scenes.fitted(*arguments)
    assert arrays.stat().st_ino == before
    file.write_text(wanted.replace('"seed": 0', '"seed": 1'))
    scenes.fitted(*arguments)
    assert arrays.stat().st_ino != before
    assert file.read_text() == wanted


def test_a_part_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(["speed"])
    assert "there is no part 'speed'" in capsys.readouterr().err


def test_short_versions_leave_the_results_of_record_alone() -> None:
    assert bench.parse([]).out == Path("results/bench")
    assert bench.parse(["--quick"]).out == Path("build/bench/quick")
    assert bench.parse(["--quick"]).page is None


def verdicts(results: targets.Results, large: targets.Table = ()) -> dict[str, bool | None]:
    """What is met, by the beginning of the line."""
    return {line.what: line.met for line in targets.rows(results, large)}


def test_targets_are_said_to_be_met_or_missed() -> None:
    assert verdicts(RESULTS) == {
        "paper contrastive against the reference": True,
        "paper amortized against the reference": False,
        "default amortized: a trajectory": True,
        "default contrastive: a trajectory": False,
        "default amortized beside released RAS, a trajectory": None,
        "default amortized: one decision of one subject, new mask": False,
        "default amortized: one decision of one subject, seen mask": True,
        "default contrastive: one decision of one subject, new mask": None,
        "default contrastive: one decision of one subject, seen mask": None,
        "fit, growth with subjects": None,
        "rollout, growth with subjects": None,
        "score, 1,000,000 subjects: peak memory": None,
    }


@pytest.mark.parametrize("tie", [1e-3, np.inf, np.nan])
def test_speed_without_equal_choices_meets_nothing(tie: float) -> None:
    other = NEAR_TIE | {"widest_tie": tie}
    part = RESULTS["reference"] | {"contrastive": {"target": 10.0, "points": [POINT, other]}}
    assert verdicts({"reference": part})["paper contrastive against the reference"] is False
    assert "does not always agree" in "".join(page._reference({"reference": part}))
    assert "makes the same choices" in "".join(page._reference(RESULTS))


def test_stopping_at_once_is_no_trajectory_and_meets_no_target() -> None:
    idle = [FOLLOWED | {"ms": 0.01, "decisions_per_subject": 1.0}]
    part = RESULTS["default"] | {"amortized": {"target_ms": 5.0, "points": idle}}
    still = {"target": 5.0, "points": [POINT, POINT | {"decisions_per_subject": 1.0}]}
    results = {"reference": RESULTS["reference"] | {"amortized": still}, "default": part}
    found = {line.what: line for line in targets.rows(results)}
    for what in ("default amortized: a trajectory", "paper amortized against the reference"):
        assert found[what].met is None
        assert found[what].measured == targets.IDLE


def test_growth_is_fitted_within_one_kind_of_rows() -> None:
    rows = [
        row(10_000, 10),
        row(1_000_000, 1000),
        row(10_000, 500, options="-o width=8"),
        row(100_000, 1, jobs="2"),
    ]
    (found,) = large.growth(rows)
    assert (found.kind, found.fewest, found.most) == (large.Kind(**FIT), 10_000, 1_000_000)
    assert found.exponents["cpu_seconds"] == pytest.approx(1.0)


def test_a_step_is_not_measured_from_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "results.csv").write_text("")
    large.forget("score", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["results.csv"]
    large.forget("rollout", tmp_path)
    assert not list(tmp_path.iterdir())


def test_large_cohorts_meet_or_miss_their_targets() -> None:
    rows = [
        row(10_000, 10),
        row(1_000_000, 1000),
        row(10_000, 10, step="rollout"),
        row(1_000_000, 9000, step="rollout"),
        row(1_000_000, 9000, peak=5000, step="score"),
    ]
    kind = "(`-o width=4`, 1 process)"
    assert verdicts({}, rows) == {
        f"fit {kind}, 10,000 to 1,000,000 subjects": True,
        f"rollout {kind}, 10,000 to 1,000,000 subjects": False,
        f"score {kind}, 1,000,000 subjects: peak memory": False,
    }
    shorter = [row(10_000, 10), row(100_000, 100)]
    assert verdicts({}, shorter)[f"fit {kind}, 10,000 to 100,000 subjects"] is None


def test_the_page_extrapolates_from_the_largest_cohort(tmp_path: Path) -> None:
    rows = [row(10_000, 36, step="score"), row(100_000, 360, step="score")]
    page.write_page(RESULTS, rows, tmp_path / "scaling.md")
    text = (tmp_path / "scaling.md").read_text()
    assert "time ~ n^1.00, own memory ~ n^0.00" in text
    assert "3.6 ms of one core" in text
    assert "100 hours of one core" in text
    assert "414 bytes per subject" in text


def test_the_page_says_what_was_measured_otherwise(tmp_path: Path) -> None:
    old = ABOUT | {"measured": "2026-01-01T00:00:00+00:00", "source": "old"}
    old |= {"versions": {"torch": "1", "numpy": "2"}}
    growth = RESULTS["growth"] | {"about": old, "sizes": "quick"}
    page.write_page(RESULTS | {"growth": growth}, [], tmp_path / "scaling.md")
    text = (tmp_path / "scaling.md").read_text()
    assert "earlier state of the package than the others: `growth`." in text
    assert "`reference`, `default`, `decide` with torch 2" in text
    assert "`growth` with torch 1" in text
    assert "only the short version has been run so far: `growth`" in text


def test_empty_sections_are_left_out(tmp_path: Path) -> None:
    page.write_page({}, [], tmp_path / "scaling.md")
    text = (tmp_path / "scaling.md").read_text()
    assert "Nothing has been measured yet." in text
    assert [line for line in text.splitlines() if line.startswith("##")] == ["## Targets"]


def test_exponents_are_recovered_from_noise_free_growth() -> None:
    assert measure.exponent([10, 20, 40], [1.0, 4.0, 16.0]) == pytest.approx(2.0)


def test_noise_around_growth_shows_in_its_error() -> None:
    power, error = measure.exponent_with_error([10, 20, 40], [1.0, 2.2, 4.0])
    assert power == pytest.approx(1.0)
    assert error == pytest.approx(np.log(1.1) / np.log(2) / np.sqrt(3), rel=1e-3)
    assert measure.exponent_with_error([10, 20], [1.0, 2.0])[1] is None


def test_the_bootstrap_finds_the_error_of_a_mean() -> None:
    amounts = np.random.default_rng(0).normal(size=400)
    assert part_bank.bootstrap_error(amounts) == pytest.approx(0.05, rel=0.15)


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
