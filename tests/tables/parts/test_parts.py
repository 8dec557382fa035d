"""Partitioned cohorts: parts hold whole subjects and together equal one table."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import DataError, DataFileMissing
from nocta.tables.labels import order_classes
from nocta.tables.parts.parts import CohortParts, _occurring_twice
from nocta.tables.parts.stored import StorageLimits, StoredCohort, gather_parts, store
from nocta.tables.table import read_table
from nocta.tables.validate import DIVIDING
from nocta.testing import tiny_cohort

SCHEMA = """subject = "id"
visit = "visit"
label = "stage"
group = "family"
[features.alt]
cost = 3
[features.mri]
cost = 9
"""


def long_table(n: int = 30) -> pd.DataFrame:
    """Subjects with one to four visits; the last class and the last visit are rare."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        for visit in range(1 + i % 4):
            stage = 10 if i == n - 1 else rng.integers(0, 3)
            rows.append((f"s{i:02d}", visit, stage, f"f{i // 2}", *rng.normal(size=2)))
    frame = pd.DataFrame(rows, columns=["id", "visit", "stage", "family", "alt", "mri"])
    frame.loc[rng.random(len(frame)) < 0.2, "mri"] = np.nan
    return frame


def write_parts(folder: Path, frame: pd.DataFrame, sizes: tuple[int, ...]) -> Path:
    """A folder in which each part has this many subjects."""
    folder.mkdir()
    (folder / "schema.toml").write_text(SCHEMA)
    names = frame["id"].unique()
    for i, some in enumerate(np.split(names, np.cumsum(sizes)[:-1])):
        frame[frame["id"].isin(some)].to_parquet(folder / f"part-{i}.parquet")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_parts(tmp_path / "clinic", long_table(), (1, 17, 12))


def test_every_part_has_the_slots_and_classes_of_all(folder: Path) -> None:
    parts = CohortParts.open(folder, folder / "schema.toml")
    assert parts.n_subjects.tolist() == [1, 17, 12]
    cohorts = [reading.cohort for reading in parts.cohorts()]
    assert {c.n_times for c in cohorts} == {4}
    assert {c.classes for c in cohorts} == {("0", "1", "2", "10")}
    assert [len(c) for c in cohorts] == [1, 17, 12]


def test_parts_together_equal_the_whole_table(folder: Path) -> None:
    stored = gather_parts(folder, folder / "schema.toml").cohort
    whole = Cohort.from_table(long_table(), folder / "schema.toml")
    assert isinstance(stored, StoredCohort)
    for name in ("values", "labels", "visits", "context", "subjects", "groups"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(whole, name))
    assert stored.classes == whole.classes
    assert stored.catalog == whole.catalog
    assert stored.name == "clinic"


def test_a_folder_of_parts_can_be_read_like_a_table(folder: Path) -> None:
    cohort = Cohort.from_table(folder, folder / "schema.toml")
    assert len(cohort) == 30
    parts = cohort.split((0.6, 0.2, 0.2), seed=3)
    same = Cohort.from_table(long_table(), folder / "schema.toml").split((0.6, 0.2, 0.2), seed=3)
    for a, b in zip(parts, same, strict=True):
        np.testing.assert_array_equal(a.subjects, b.subjects)


def test_what_not_every_part_says_of_groups_counts_for_none(folder: Path) -> None:
    file = folder / "part-1.parquet"
    pd.read_parquet(file).drop(columns="family").to_parquet(file)
    with pytest.raises(DataError, match=r"part-1\.parquet has no column 'family'"):
        gather_parts(folder, folder / "schema.toml")
    cohort = gather_parts(folder, folder / "schema.toml", optional=DIVIDING).cohort
    assert len(cohort) == 30
    assert cohort.groups is None


def test_counts_of_all_parts_are_added_up(tmp_path: Path) -> None:
    table = long_table()
    folder = write_parts(tmp_path / "timed", table, (10, 20))
    schema = folder / "schema.toml"
    schema.write_text(SCHEMA.replace('visit = "visit"', 'time = "visit"\ngrid = [0, 2]\nend = 4'))
    whole = read_table(table, schema).notes
    assert any("share a slot with a later row" in note for note in whole)
    assert gather_parts(folder, schema).notes == whole


def test_one_sorted_file_is_cut_where_a_subject_begins(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "one", long_table(), (30,))
    file = folder / "part-0.parquet"
    parts = CohortParts.open(file, folder / "schema.toml", rows_per_part=20)
    assert len(parts) > 2
    assert parts.n_subjects.sum() == 30
    cohorts = [reading.cohort for reading in parts.cohorts()]
    assert [len(c) for c in cohorts] == parts.n_subjects.tolist()
    names = np.concatenate([c.subjects for c in cohorts])
    whole = Cohort.from_table(long_table(), folder / "schema.toml")
    np.testing.assert_array_equal(names, whole.subjects)
    np.testing.assert_array_equal(np.concatenate([c.values for c in cohorts]), whole.values)


def test_a_piece_of_a_file_is_named_in_errors(tmp_path: Path) -> None:
    frame = long_table()
    frame["alt"] = frame["alt"].astype(object)
    frame.loc[len(frame) - 1, "alt"] = "high"
    folder = write_parts(tmp_path / "one", frame.astype({"alt": str}), (30,))
    parts = CohortParts.open(folder / "part-0.parquet", folder / "schema.toml", rows_per_part=20)
    with pytest.raises(DataError, match=r"part-0.parquet, from row \d+: .*\n.*'high'"):
        list(parts.cohorts())


def test_an_unsorted_file_stays_whole(tmp_path: Path) -> None:
    frame = long_table().sort_values("visit", kind="stable")
    folder = write_parts(tmp_path / "one", frame, (30,))
    parts = CohortParts.open(folder / "part-0.parquet", folder / "schema.toml", rows_per_part=20)
    assert len(parts) == 1
    assert parts.n_subjects.tolist() == [30]


def test_files_without_a_row_are_left_out(folder: Path, tmp_path: Path) -> None:
    before = CohortParts.open(folder, folder / "schema.toml")
    first = pd.read_parquet(folder / "part-0.parquet")
    first.iloc[:0].to_parquet(folder / "part-9.parquet")
    found = CohortParts.open(folder, folder / "schema.toml")
    assert [part.name for part in found.parts] == [part.name for part in before.parts]
    assert len(gather_parts(folder, folder / "schema.toml").cohort) == before.n_subjects.sum()
    nobody = tmp_path / "nobody"
    nobody.mkdir()
    first.iloc[:0].to_parquet(nobody / "part-0.parquet")
    with pytest.raises(DataError, match="nobody' has no rows"):
        CohortParts.open(nobody, folder / "schema.toml")


def test_looking_for_torn_subjects_copies_their_hashes_once() -> None:
    hashes = [np.arange(i, 4_000_000, 4, dtype=np.uint64) for i in range(4)]
    n_bytes = sum(own.nbytes for own in hashes)
    tracemalloc.start()
    try:
        assert _occurring_twice(hashes).size == 0
        assert tracemalloc.get_traced_memory()[1] < 1.25 * n_bytes
    finally:
        tracemalloc.stop()
    assert _occurring_twice([*hashes, np.array([7, 9], dtype=np.uint64)]).tolist() == [7, 9]


def test_a_subject_in_two_parts_is_an_error_that_names_both(folder: Path) -> None:
    last = pd.read_parquet(folder / "part-2.parquet")
    more = pd.read_parquet(folder / "part-1.parquet").iloc[[0]]
    pd.concat([last, more]).to_parquet(folder / "part-2.parquet")
    with pytest.raises(DataError, match=r"subject s01 \(part-1.parquet and part-2.parquet\)"):
        CohortParts.open(folder, folder / "schema.toml")


def test_equal_hashes_of_different_subjects_are_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nocta.tables.parts.parts._hash", lambda ids: np.zeros(len(ids), np.uint64))
    assert len(CohortParts.open(folder, folder / "schema.toml")) == 3


def test_what_is_no_cohort_is_said_so(tmp_path: Path, folder: Path) -> None:
    schema = folder / "schema.toml"
    with pytest.raises(DataFileMissing, match="does not exist"):
        CohortParts.open(tmp_path / "nowhere", schema)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataFileMissing, match="holds no Parquet file"):
        CohortParts.open(tmp_path / "empty", schema)
    (folder / "part-3.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(DataError, match=r"part-3.parquet' cannot be read as Parquet"):
        CohortParts.open(folder, schema)
    (folder / "part-3.parquet").unlink()
    pd.DataFrame({"name": [1]}).to_parquet(folder / "part-4.parquet")
    with pytest.raises(DataError, match=r"part-4.parquet has no column 'id'"):
        CohortParts.open(folder, schema)


def test_hidden_files_are_no_parts(folder: Path) -> None:
    (folder / ".part-9.parquet").write_bytes(b"half")
    (folder / "_SUCCESS").write_bytes(b"")
    assert len(CohortParts.open(folder, folder / "schema.toml")) == 3


def test_a_stored_cohort_takes_large_subsets_to_disk() -> None:
    cohort = tiny_cohort(20)
    rows = np.random.default_rng(0).permutation(20)[:15]
    stored = store(cohort, StorageLimits(bytes_in_memory=100, rows_per_copy=4))
    some, expected = stored.subset(rows), cohort.subset(rows)
    assert isinstance(some.values.base, np.memmap)
    for name in ("values", "labels", "visits", "context", "subjects"):
        np.testing.assert_array_equal(getattr(some, name), getattr(expected, name))


def test_classes_are_ordered_by_value_or_alphabet() -> None:
    assert order_classes({"10", "9", "1"}) == ["1", "9", "10"]
    assert order_classes({"b", "10", "a"}) == ["10", "a", "b"]
