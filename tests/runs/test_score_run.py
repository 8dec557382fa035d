"""Scoring part by part: resumable, never half, the same as planning for one subject."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fake_methods import FragilePart
from pyarrow import parquet

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, ProcessKilled
from nocta.model.files import FileState
from nocta.model.nocta import NOCTA
from nocta.runs import score_run
from nocta.runs.score_run import ScorePart, ScoreRequest, score_cohort
from nocta.testing import tiny_cohort

FEW = (3, 6, 1)


def history_table(cohort: Cohort, seed: int = 0) -> pd.DataFrame:
    """What is known of each subject by some visit, as a long table."""
    rng = np.random.default_rng(seed)
    catalog = cohort.catalog
    rows = []
    for i, name in enumerate(cohort.subjects):
        now = int(rng.integers(-1, cohort.n_times - 1))
        for t in range(max(now, 0) + 1):
            cells = np.where(rng.random(len(catalog.columns)) < 0.6, cohort.values[i, t], np.nan)
            cells = cells if now >= 0 else np.full_like(cells, np.nan)
            visit = t if now >= 0 else None
            free = dict(zip(catalog.context, cohort.context[i], strict=True))
            known = dict(zip(catalog.columns, cells, strict=True))
            rows.append({"subject": f"p{name}", "visit": visit, **free, **known})
    return pd.DataFrame(rows).astype({"visit": "Int64"})


def score_inputs(model: NOCTA, folder: Path, sizes: tuple[int, ...]) -> tuple[Path, Path]:
    """A saved model, and a folder of histories with this many subjects per part."""
    model.record_ = {"cost_weights": [0.02, 0.005, 0.001]}
    model.save(folder / "model")
    cohort = folder / "cohort"
    cohort.mkdir()
    people = tiny_cohort(sum(sizes), seed=7)
    table = history_table(people)
    first = 0
    for i, size in enumerate(sizes):
        names = {f"p{s}" for s in people.subjects[first : first + size]}
        table[table["subject"].isin(names)].to_parquet(cohort / f"part-{i}.parquet")
        first += size
    return folder / "model", cohort


@pytest.fixture
def inputs(tiny_models: dict[str, NOCTA], tmp_path: Path) -> tuple[Path, Path]:
    return score_inputs(tiny_models["amortized"], tmp_path, FEW)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the parts that are scored."""
    found: list[str] = []
    real = ScorePart.__call__

    def spy(self: ScorePart, expected: dict[str, Any]) -> bytes:
        found.append(self.part.name)
        return real(self, expected)

    monkeypatch.setattr(ScorePart, "__call__", spy)
    return found


def test_a_folder_of_parts_becomes_a_folder_of_results(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    model, cohort = inputs
    out = tmp_path / "scores"
    assert score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1) == sum(FEW)
    assert sorted(f.name for f in out.glob("[!.]*")) == [f"part-{i}.parquet" for i in range(3)]
    sizes = [parquet.read_metadata(out / f"part-{i}.parquet").num_rows for i in range(3)]
    assert sizes == list(FEW)


def test_one_file_holds_all_parts_in_order(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    request = ScoreRequest.of(model, 0.005)
    score_cohort(request, cohort, tmp_path / "scores", n_jobs=1)
    score_cohort(request, cohort, tmp_path / "scores.parquet", n_jobs=1)
    one = parquet.read_table(tmp_path / "scores.parquet")
    parts = [parquet.read_table(tmp_path / "scores" / f"part-{i}.parquet") for i in range(3)]
    assert (
        one.to_pylist() == pa.concat_tables(p.replace_schema_metadata() for p in parts).to_pylist()
    )
    left = [f.name for f in tmp_path.iterdir() if f.name.startswith(".")]
    assert left == []


def test_a_stopped_run_goes_on_where_it_was(
    inputs: tuple[Path, Path], tmp_path: Path, computed: list[str]
) -> None:
    model, cohort = inputs
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "scores"
    score_cohort(request, cohort, out, n_jobs=1)
    whole = (out / "part-1.parquet").read_bytes()
    (out / "part-1.parquet").write_bytes(whole[: len(whole) // 2])  # half written
    (out / "part-2.parquet").unlink()
    computed.clear()
    said: list[str] = []
    score_cohort(request, cohort, out, n_jobs=1, say=said.append)
    assert computed == ["part-1", "part-2"]
    assert said == ["1 of 3 parts were finished before."]
    assert (out / "part-1.parquet").read_bytes() == whole


def test_a_file_of_somebody_else_is_left_alone(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    out = tmp_path / "scores"
    out.mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(out / "mine.parquet")
    for force in (False, True):
        with pytest.raises(ConfigError, match="was not made by nocta score") as told:
            score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1, force=force)
        assert "--force" not in str(told.value)
    assert pd.read_parquet(out / "mine.parquet")["a"].tolist() == [1]
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a folder"):
        score_cohort(ScoreRequest.of(model, 0.005), cohort, tmp_path / "folder.parquet")
    with pytest.raises(ConfigError, match="is a file"):
        score_cohort(ScoreRequest.of(model, 0.005), cohort, tmp_path / "file")


def test_one_file_of_somebody_else_is_left_alone_even_by_force(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    model, cohort = inputs
    part = cohort / "part-0.parquet"
    before = part.read_bytes()
    request = ScoreRequest.of(model, 0.005)
    with pytest.raises(ConfigError, match="was not made by nocta score; choose another --out"):
        score_cohort(request, part, part, force=True)
    assert part.read_bytes() == before


def test_a_kill_in_the_middle_of_one_file_keeps_finished_parts(
    inputs: tuple[Path, Path],
    tmp_path: Path,
    computed: list[str],
    interrupted: Callable[[str], pytest.MonkeyPatch],
) -> None:
    model, cohort = inputs
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "scores.parquet"
    stop = interrupted("part-1.parquet")
    with pytest.raises(KeyboardInterrupt):
        score_cohort(request, cohort, out, n_jobs=1)
    stop.undo()
    assert not out.exists()
    computed.clear()
    score_cohort(request, cohort, out, n_jobs=1)
    assert computed == ["part-1", "part-2"]
    computed.clear()
    said: list[str] = []
    score_cohort(request, cohort, out, n_jobs=1, say=said.append)
    assert computed == []
    assert "is finished already" in said[0]


def test_a_changed_part_is_scored_again(
    inputs: tuple[Path, Path], tmp_path: Path, computed: list[str]
) -> None:
    model, cohort = inputs
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "scores"
    score_cohort(request, cohort, out, n_jobs=1)
    part = cohort / "part-0.parquet"
    pd.read_parquet(part).iloc[:-1].to_parquet(part)
    computed.clear()
    score_cohort(request, cohort, out, n_jobs=1)
    assert computed == ["part-0"]


def test_results_of_other_settings_are_not_mixed(
    inputs: tuple[Path, Path], tmp_path: Path, computed: list[str]
) -> None:
    model, cohort = inputs
    for out in (tmp_path / "scores", tmp_path / "scores.parquet"):
        score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1)
        with pytest.raises(ConfigError, match="was made with other settings"):
            score_cohort(ScoreRequest.of(model, 0.001), cohort, out, n_jobs=1)
        computed.clear()
        score_cohort(ScoreRequest.of(model, 0.001), cohort, out, n_jobs=1, force=True)
        assert len(computed) == 3


@pytest.mark.parametrize("name", ["scores", "scores.parquet"])
def test_a_stopped_run_with_force_goes_on_with_force(
    name: str,
    inputs: tuple[Path, Path],
    tmp_path: Path,
    computed: list[str],
    interrupted: Callable[[str], pytest.MonkeyPatch],
) -> None:
    model, cohort = inputs
    out = tmp_path / name
    score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1)
    request = ScoreRequest.of(model, 0.001)
    stop = interrupted("part-2.parquet")
    with pytest.raises(KeyboardInterrupt):
        score_cohort(request, cohort, out, n_jobs=1, force=True)
    stop.undo()
    computed.clear()
    said: list[str] = []
    score_cohort(request, cohort, out, n_jobs=1, force=True, say=said.append)
    assert said == ["2 of 3 parts were finished before."]
    assert computed == ["part-2"]
    computed.clear()
    score_cohort(request, cohort, out, n_jobs=1, force=True)
    assert computed == []


def test_results_of_parts_that_are_gone_are_not_left_among_the_others(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    model, cohort = inputs
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "scores"
    score_cohort(request, cohort, out, n_jobs=1)
    (cohort / "part-2.parquet").rename(cohort / "other.parquet")
    with pytest.raises(ConfigError, match=r"not in this cohort: part-2.parquet.*Use --force"):
        score_cohort(request, cohort, out, n_jobs=1)
    assert (out / "part-2.parquet").is_file()
    score_cohort(request, cohort, out, n_jobs=1, force=True)
    names = ["other.parquet", "part-0.parquet", "part-1.parquet"]
    assert sorted(file.name for file in out.glob("[!.]*")) == names
    assert pd.read_parquet(out)["subject"].is_unique


def test_a_part_without_rows_has_no_result(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    pd.read_parquet(cohort / "part-0.parquet").iloc[:0].to_parquet(cohort / "empty.parquet")
    out = tmp_path / "scores"
    assert score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1) == sum(FEW)
    assert sorted(file.name for file in out.glob("[!.]*")) == [
        f"part-{i}.parquet" for i in range(3)
    ]


def test_scoring_begins_before_every_input_is_hashed(
    inputs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, cohort = inputs
    events: list[str] = []
    hashed, scored = score_run._hash_of, ScorePart.__call__

    def hash_of(path: str, state: FileState) -> str:
        events.append(f"hash {Path(path).stem}")
        return hashed(path, state)

    def call(self: ScorePart, expected: dict[str, Any]) -> bytes:
        events.append(f"score {self.part.name}")
        return scored(self, expected)

    monkeypatch.setattr(score_run, "_hash_of", hash_of)
    monkeypatch.setattr(ScorePart, "__call__", call)
    score_cohort(ScoreRequest.of(model, 0.005), cohort, tmp_path / "scores", n_jobs=1)
    assert events.index("score part-0") < events.index("hash part-1")


def test_a_result_says_what_it_was_made_from(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    score_cohort(ScoreRequest.of(model, 0.005, 3.0), cohort, tmp_path / "s", n_jobs=1)
    text = parquet.read_schema(tmp_path / "s" / "part-0.parquet").metadata[b"nocta.score"]
    found = json.loads(text)
    assert (found["cost_weight"], found["budget"]) == (0.005, 3.0)
    assert str(tmp_path) not in text.decode()


def test_subjects_keep_the_type_of_the_input(tiny_models: dict[str, NOCTA], tmp_path: Path) -> None:
    model, cohort = score_inputs(tiny_models["amortized"], tmp_path, (2, 2))
    first = pd.read_parquet(cohort / "part-0.parquet")
    first["subject"] = [str(int(name[2:])) for name in first["subject"]]  # text, like a number
    first.to_parquet(cohort / "part-0.parquet")
    score_cohort(ScoreRequest.of(model, 0.005), cohort, tmp_path / "one.parquet", n_jobs=1)
    subjects = parquet.read_table(tmp_path / "one.parquet")["subject"].to_pylist()
    assert subjects == ["0", "1", "ps002", "ps003"]


def test_a_mistake_in_a_part_names_it(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    part = pd.read_parquet(cohort / "part-1.parquet")
    part["visit"] = part["visit"].fillna(0) - 99
    part.to_parquet(cohort / "part-1.parquet")
    out = tmp_path / "scores"
    with pytest.raises(DataError, match=r"part-1.parquet"):
        score_cohort(ScoreRequest.of(model, 0.005), cohort, out, n_jobs=1)
    assert [f.name for f in out.glob("[!.]*")] == ["part-0.parquet"]


def test_another_model_under_the_same_name_is_noticed(
    inputs: tuple[Path, Path], tmp_path: Path, tiny_models: dict[str, NOCTA]
) -> None:
    model, cohort = inputs
    request = ScoreRequest.of(model, 0.005)
    tiny_models["amortized"].record_ = {"cost_weights": [1.0]}
    tiny_models["amortized"].save(model)
    with pytest.raises(ConfigError, match="differs on the worker"):
        score_cohort(request, cohort, tmp_path / "scores", n_jobs=1)


def test_two_processes_give_the_same_files(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    request = ScoreRequest.of(model, 0.005)
    score_cohort(request, cohort, tmp_path / "one", n_jobs=1)
    score_cohort(request, cohort, tmp_path / "two", n_jobs=2)
    for i in range(3):
        name = f"part-{i}.parquet"
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_part_whose_process_dies_is_scored_once_more(
    deaths: int, inputs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, cohort = inputs
    request, out = ScoreRequest.of(model, 0.005), tmp_path / "out"
    score_cohort(request, cohort, tmp_path / "calm", n_jobs=1)
    monkeypatch.setattr(score_run, "ScorePart", FragilePart)
    (cohort / "deaths").write_text(f"part-1 {deaths}")
    if deaths == 2:
        with pytest.raises(ProcessKilled, match="Part 'part-1' crashed its process twice"):
            score_cohort(request, cohort, out, n_jobs=2)
        assert (out / "part-0.parquet").is_file()
    score_cohort(request, cohort, out, n_jobs=2)
    for i in range(3):
        name = f"part-{i}.parquet"
        assert (out / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()


def test_a_folder_of_something_else_is_refused(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = inputs
    request = ScoreRequest.of(model, 0.005)
    with pytest.raises(ConfigError, match="holds a saved model; choose another --out"):
        score_cohort(request, cohort, model, n_jobs=1, force=True)
    out = tmp_path / "scores"
    score_cohort(request, cohort, out, n_jobs=1)
    (out / ".checkpoint.json").unlink()
    with pytest.raises(ConfigError, match="not the settings they were made with"):
        score_cohort(request, cohort, out, n_jobs=1)
