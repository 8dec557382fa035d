"""C-MAPSS on made-up engines, in the layout NASA publishes."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from dataset_layouts import write_cmapss, write_engines

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataError, DataFileMissing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cmapss(tmp_path / "CMAPSSData")


def load(folder: Path, **options: object) -> Cohort:
    return datasets.load("cmapss", path=folder, subsets=["FD001"], **options)


def test_every_twentieth_cycle_is_a_slot(folder: Path) -> None:
    cohort = load(folder, relative=False)
    assert cohort.subjects.tolist() == ["FD001-train-1", "FD001-train-2", "FD001-test-1"]
    assert cohort.visits.sum(axis=1).tolist() == [3, 2, 3]
    assert cohort.slot_times is not None
    assert (len(cohort.slot_times), cohort.slot_times[0], cohort.slot_times[-1]) == (18, 20, 360)
    fan = cohort.values[0, :3, cohort.catalog.columns.index("Nf")]  # sensor 8
    np.testing.assert_allclose(fan, [802, 804, 406], atol=4)  # cycle 60 is flown at altitude


def test_each_sensor_has_its_own_column(folder: Path) -> None:
    cohort = load(folder, relative=False)
    sensors = {
        "T24": 2, "T30": 3, "T50": 4, "P15": 6, "P30": 7, "Nf": 8, "Nc": 9, "epr": 10, "Ps30": 11,
        "phi": 12, "NRf": 13, "NRc": 14, "BPR": 15, "farB": 16, "htBleed": 17, "W31": 20, "W32": 21,
    }  # fmt: skip
    first = dict(zip(cohort.catalog.columns, cohort.values[0, 0], strict=True))
    assert set(first) == {*sensors, "altitude", "mach", "throttle"}
    assert all(abs(first[name] - 100 * j) < 10 for name, j in sensors.items())
    assert (first["altitude"], first["throttle"]) == (0, 100)


def test_labels_look_forty_cycles_ahead(folder: Path) -> None:
    labels = load(folder).labels[:, :4].tolist()
    assert labels[0] == [0, 1, 1, -1]  # fails after cycle 70: 50, 30 and 10 cycles are left
    assert labels[1] == [1, 1, -1, -1]
    assert labels[2] == [0, 0, 1, -1]  # cut off at cycle 65 with 30 left: fails at 95
    assert load(folder, horizon=50).labels[:, 0].tolist() == [1, 1, 0]
    assert load(write_cmapss(folder, left=5)).labels[2, :3].tolist() == [0, 1, 1]


def test_readings_are_relative_to_new_engines_at_the_same_condition(folder: Path) -> None:
    cohort = load(folder)
    fan = cohort.values[0, :3, cohort.catalog.columns.index("Nf")]
    raw = load(folder, relative=False).values
    assert (np.abs(fan) < 12).all()  # the change of condition at cycle 60 is gone
    settings = slice(0, 3)
    np.testing.assert_array_equal(cohort.values[0, :3, settings], raw[0, :3, settings])


def test_the_reference_knows_no_slot(folder: Path) -> None:
    before = load(folder).values[:, :2]
    lines = (folder / "train_FD001.txt").read_text().splitlines()
    changed = [" ".join([*p[:5], *["7"] * 21]) if int(p[1]) > 40 else " ".join(p)
               for p in (line.split() for line in lines)]  # fmt: skip
    (folder / "train_FD001.txt").write_text("\n".join(changed))
    np.testing.assert_array_equal(load(folder).values[:, :2], before)


def test_short_engines_and_incomplete_files_are_counted(folder: Path) -> None:
    _, summary = datasets.load_with_summary("cmapss", path=folder, subsets=["FD001"])
    assert "1 engines: fewer than 20 cycles recorded" in str(summary)
    assert summary.warnings[0] == "train_FD001.txt has 3 engines; the whole file has 100."
    assert summary.n_subjects == 3


def test_packed_files_and_the_folder_above_work(folder: Path) -> None:
    plain = load(folder)
    for file in folder.glob("*.txt"):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    np.testing.assert_array_equal(load(folder.parent).values, plain.values)


def test_prices_are_those_of_the_card(folder: Path) -> None:
    catalog, card = load(folder).catalog, datasets.card("cmapss")
    assert list(catalog.features) == [m.feature() for m in card.measurements]
    assert catalog.visit_fee == card.visit_fee == 0.2
    np.testing.assert_allclose(catalog.cost_per_visit(catalog.open_slots), 10.5)
    assert "any acquisition 0.2" in dict(card.facts())["Fees per visit"]
    assert load(folder, visit_fee=0).catalog.visit_fee == 0


def test_its_own_split_is_by_file(folder: Path) -> None:
    assert load(folder).fixed_split.tolist() == ["train", "train", "test"]


def test_missing_file_is_named(folder: Path) -> None:
    (folder / "RUL_FD001.txt").unlink()
    with pytest.raises(DataFileMissing, match=r"RUL_FD001\.txt is missing"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("RUL_FD001.txt", "30\n20\n", "has 2 lines for the 1 engines"),
        ("test_FD001.txt", "1 1 0.0 0.0 100.0 518.67\n", "has 6 columns"),
        ("test_FD001.txt", "unit cycle\n", "is damaged"),
    ],
)
def test_damaged_file_is_named(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_condition_that_no_new_engine_flies_is_an_error(folder: Path) -> None:
    write_engines(folder / "train_FD001.txt", [2])
    with pytest.raises(DataError, match=r"altitude 20,000 ft .* set relative=False"):
        load(folder)


def test_impossible_options_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"no subset 'FD01'\. Did you mean 'FD001'"):
        datasets.load("cmapss", path=folder, subsets="FD01")
    with pytest.raises(ConfigError, match="horizon is 0"):
        load(folder, horizon=0)
