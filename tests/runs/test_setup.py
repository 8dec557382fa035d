"""What is held fixed over a comparison, and who belongs to which part."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError
from nocta.datasets import synthetic
from nocta.runs.setup import DataSource, Setup, _read_parts, hash_data


def test_synthetic_data_are_drawn_with_the_seed() -> None:
    source = DataSource("synthetic", max_subjects=30)
    assert source.is_drawn
    assert not np.array_equal(source.load(0).values, source.load(1).values)
    assert np.array_equal(source.load(1).values, source.load(1).values)


def test_a_table_is_the_same_for_every_seed_and_its_split_is_not(
    clinic: tuple[Path, Path],
) -> None:
    source = DataSource(str(clinic[0]), schema=str(clinic[1]))
    cohort = source.load(3)
    assert not source.is_drawn
    assert np.array_equal(cohort.subjects, source.load(4).subjects)
    test_3, test_4 = (source.split(cohort, seed)[2].subjects.tolist() for seed in (3, 4))
    assert test_3 != test_4
    assert test_3 == source.split(cohort, 3)[2].subjects.tolist()


def test_the_parts_of_a_seed_share_nobody(clinic: tuple[Path, Path]) -> None:
    source = DataSource(str(clinic[0]), schema=str(clinic[1]), fractions=(0.5, 0.2, 0.3))
    cohort = source.load(0)
    parts = [set(part.subjects.tolist()) for part in source.split(cohort, 0)]
    assert [len(p) for p in parts] == [150, 60, 90]
    assert len(set.union(*parts)) == len(cohort)


def test_a_split_column_decides_who_is_tested(clinic: tuple[Path, Path], tmp_path: Path) -> None:
    with clinic[0].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["part"] = "test" if int(row["patient"][1:]) % 3 == 0 else "train"
    table = tmp_path / "with-parts.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    source = DataSource(str(table), schema=str(clinic[1]), split_column="part")
    train, val, test = source.split(source.load(0), 0)
    assert {int(str(s)[1:]) % 3 for s in test.subjects} == {0}
    assert {int(str(s)[1:]) % 3 for s in (*train.subjects, *val.subjects)} == {1, 2}
    assert len(val) < len(train)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train", "val", "test"], (1, 1, 1)),
        (["Training", "Validation", "Testing"], (1, 1, 1)),
        (["train", "test"], (1, None, 1)),
        (["a", "b", "b"], (1, None, 2)),
    ],
)
def test_parts_are_recognised_by_name(
    names: list[str], expected: tuple[int, int | None, int]
) -> None:
    parts = _read_parts(np.array(names))
    assert tuple(None if p is None else int(p.sum()) for p in parts) == expected


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["train", "other", "test"]])
def test_other_parts_are_refused(names: list[str]) -> None:
    with pytest.raises(DataError, match="expected train, val and test"):
        _read_parts(np.array(names))


def test_a_table_read_without_its_split_column_is_refused(clinic: tuple[Path, Path]) -> None:
    source = DataSource(str(clinic[0]), schema=str(clinic[1]))
    with pytest.raises(ConfigError, match="read without its split column 'part'; name it"):
        replace(source, split_column="part").split(source.load(0), 0)


def test_fractions_beside_a_whole_split_are_refused(clinic: tuple[Path, Path]) -> None:
    source = DataSource(str(clinic[0]), schema=str(clinic[1]))
    cohort = source.load(0)
    names = np.array(["train", "val", "test"])[np.arange(len(cohort)) % 3]
    parted = replace(cohort, fixed_split=names)
    assert [len(part) for part in source.split(parted, 0)] == [100, 100, 100]
    with pytest.raises(ConfigError, match="--fractions has nothing to divide"):
        replace(source, fractions=(0.5, 0.3, 0.2)).split(parted, 0)


def test_data_without_parts_of_their_own_are_refused() -> None:
    source = DataSource("synthetic", split_column="set", max_subjects=20)
    with pytest.raises(ConfigError, match="has no split of its own"):
        source.split(source.load(0), 0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("preset", "papper", "use 'default' or 'paper'"),
        ("availability", "always", "use 'on-arrival' or 'known'"),
        ("results", "soon", "use 'after-visit' or 'at-once'"),
        ("n_points", 0, "use a whole number of at least 1"),
        ("cost_weights", (-1.0,), "at least 0"),
        ("budgets", (float("nan"),), "at least 0"),
        ("predictor", "magic", "Known: learned, bayes"),
    ],
)
def test_impossible_values_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(Setup(DataSource("synthetic")), **{field: value})


def test_differences_are_told_in_words() -> None:
    one = Setup(DataSource("synthetic"))
    other = Setup(DataSource("pbc-stage"), n_points=5)
    assert one.differences(one.to_dict()) == []
    assert one.differences(other.to_dict()) == [
        "data is 'pbc-stage' there and 'synthetic' here",
        "n_points is 5 there and 10 here",
    ]


def test_another_rule_of_results_is_another_setup() -> None:
    older = Setup(DataSource("synthetic")).to_dict()
    del older["results"]
    assert Setup(DataSource("synthetic")).differences(older) == []
    assert Setup(DataSource("synthetic"), results="at-once").differences(older) == [
        "results is 'after-visit' there and 'at-once' here"
    ]


def test_other_data_options_are_another_setup_and_an_older_one_had_none() -> None:
    plain = Setup(DataSource("synthetic"))
    small = Setup(DataSource("synthetic", data_options={"n_subjects": 5}))
    older = plain.to_dict()
    del older["source"]["data_options"]
    assert plain.differences(older) == []
    assert small.differences(older) == ["data_options is {} there and {'n_subjects': 5} here"]
    assert small.differences(json.loads(json.dumps(small.to_dict()))) == []


def test_data_options_reach_the_loader() -> None:
    few = DataSource("synthetic", data_options={"n_subjects": 5})
    more = replace(few, data_options={"n_subjects": 8})
    assert [len(few.load(0)), len(more.load(0)), len(few.load(0))] == [5, 8, 5]
    assert few.summary(0).n_subjects == 5
    with pytest.raises(ConfigError, match="Did you mean 'n_subjects'"):
        replace(few, data_options={"n_subject": 5}).load(0)


def test_data_drawn_with_a_seed_of_their_own_are_the_same_for_every_seed() -> None:
    source = DataSource("synthetic", data_options={"seed": 4, "n_subjects": 20})
    assert not source.is_drawn
    assert np.array_equal(source.load(0).values, source.load(1).values)
    drawn = replace(source, data_options={"n_subjects": 20})
    assert np.array_equal(source.load(0).values, drawn.load(4).values)


def test_data_options_are_plain_data() -> None:
    source = DataSource("oai-klg", data_options={"visits": ("00", "01"), "read_project": {8: 37}})
    assert source.data_options == {"visits": ["00", "01"], "read_project": {"8": 37}}
    with pytest.raises(ConfigError, match="must be plain data"):
        DataSource("oai-klg", data_options={"clinical": [object()]})


def test_a_table_has_no_data_options(clinic: tuple[Path, Path]) -> None:
    source = DataSource(str(clinic[0]), str(clinic[1]), data_options={"min_labels": 2})
    with pytest.raises(ConfigError, match="for built-in data sets"):
        source.load(0)


def test_what_is_cut_from_the_data_does_not_make_them_be_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = []
    load = synthetic.load

    def counted(n_subjects: int, seed: int) -> Cohort:
        reads.append(seed)
        return load(n_subjects, seed)

    monkeypatch.setattr(synthetic, "load", counted)
    source = DataSource("synthetic", data_options={"n_subjects": 31})
    assert source.summary(0).n_subjects == 31
    assert len(replace(source, max_subjects=9, fractions=(0.5, 0.25, 0.25)).load(0)) == 9
    assert reads == [0]


def test_changed_data_have_another_hash() -> None:
    cohort = DataSource("synthetic", max_subjects=10).load(0)
    labels = cohort.labels.copy()
    labels[3, 4] += 1
    costlier = cohort.with_catalog(cohort.catalog.with_costs({"digit": 2.0}))
    found = {hash_data(c) for c in (cohort, replace(cohort, labels=labels), costlier)}
    assert len(found) == 3
    assert hash_data(cohort) == hash_data(cohort.subset(slice(None)))
