"""Models are folders of plain data; what was loaded decides as what was saved, to the bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nocta
from nocta.core.errors import ModelError, NotFittedError
from nocta.core.history import History
from nocta.model import archive
from nocta.model.archive import ARRAYS, FORMAT, MANIFEST
from nocta.model.nocta import NOCTA
from nocta.model.persistence import load_predictor, save_predictor
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.mlp import MLPPredictor
from nocta.predictors.training import TrainingConfig
from nocta.testing import RunningMeanPredictor
from small_models import ESTIMATORS, WEIGHT, Parts


@pytest.fixture
def folder(tiny_models: dict[str, NOCTA], tmp_path: Path) -> Path:
    tiny_models["amortized"].save(tmp_path / "model")
    return tmp_path / "model"


def resign(folder: Path, **changes: object) -> None:
    """Change a manifest and sign it again, as somebody who knows the format would."""
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    manifest.pop("checksum")
    manifest |= changes
    manifest["checksum"] = archive._hash(archive._canonical(manifest))
    (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_loaded_model_acts_the_same_to_the_bit(
    estimator: str, tiny_models: dict[str, NOCTA], tiny_parts: Parts, tmp_path: Path
) -> None:
    model, test = tiny_models[estimator], tiny_parts[2]
    model.save(tmp_path / "m")
    again = nocta.load(tmp_path / "m")
    for weight in (0.0, WEIGHT, 0.05):
        before, after = model.rollout(test, weight), again.rollout(test, weight)
        np.testing.assert_array_equal(before.history.requested, after.history.requested)
        np.testing.assert_array_equal(before.probabilities, after.probabilities)
    history = History.empty(model.catalog_, test.context[:1])
    assert model.decide(history, WEIGHT) == again.decide(history, WEIGHT)


def test_a_loaded_model_knows_what_it_was_fitted_with(
    tiny_models: dict[str, NOCTA], folder: Path
) -> None:
    model, again = tiny_models["amortized"], nocta.load(folder)
    assert again.get_params() == model.get_params()
    assert again.catalog_ == model.catalog_
    assert again.classes_ == model.classes_
    assert again.schema_ == model.schema_


def test_plain_records_are_kept(tiny_models: dict[str, NOCTA], tmp_path: Path) -> None:
    model = nocta.NOCTA(**tiny_models["amortized"].get_params())
    model.__dict__ |= tiny_models["amortized"].__dict__
    model.record_ = {"cost_weights": np.array([0.5, 0.25]), "n_train": np.int64(57)}
    model.save(tmp_path / "m")
    again = nocta.load(tmp_path / "m").record_
    assert (again["cost_weights"], again["n_train"]) == ([0.5, 0.25], 57)
    assert again["default"]["setting"]["cost_weight"] in (0.5, 0.25)


def test_saving_twice_writes_the_same_arrays(
    tiny_models: dict[str, NOCTA], folder: Path, tmp_path: Path
) -> None:
    nocta.load(folder).save(tmp_path / "copy")
    assert (folder / ARRAYS).read_bytes() == (tmp_path / "copy" / ARRAYS).read_bytes()


def test_of_many_subjects_only_retrieval_keeps_any(
    tiny_models: dict[str, NOCTA], tiny_parts: Parts, tmp_path: Path
) -> None:
    recorded = tiny_parts[0].values.tobytes()
    for name, model in tiny_models.items():
        model.save(tmp_path / name)
        kept = recorded in (tmp_path / name / ARRAYS).read_bytes()
        assert kept == (name != "amortized")
        assert "s001" not in (tmp_path / name / MANIFEST).read_text("utf-8")


def test_nothing_in_the_folder_is_pickled(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == [ARRAYS, MANIFEST]
    assert isinstance(json.loads((folder / MANIFEST).read_text("utf-8")), dict)


def test_a_flipped_byte_is_noticed(folder: Path) -> None:
    data = bytearray((folder / ARRAYS).read_bytes())
    data[-1] ^= 1
    (folder / ARRAYS).write_bytes(bytes(data))
    with pytest.raises(ModelError, match=r"arrays\.safetensors' is damaged"):
        nocta.load(folder)


def test_an_edited_manifest_is_noticed(folder: Path) -> None:
    text = (folder / MANIFEST).read_text("utf-8")
    (folder / MANIFEST).write_text(text.replace('"seed": 0', '"seed": 1'), "utf-8")
    with pytest.raises(ModelError, match="was changed after it was written"):
        nocta.load(folder)


def test_half_a_manifest_is_noticed(folder: Path) -> None:
    text = (folder / MANIFEST).read_text("utf-8")
    (folder / MANIFEST).write_text(text[: len(text) // 2], "utf-8")
    with pytest.raises(ModelError, match="is damaged"):
        nocta.load(folder)


def test_missing_arrays_are_noticed(folder: Path) -> None:
    (folder / ARRAYS).unlink()
    with pytest.raises(ModelError, match=r"arrays\.safetensors is missing"):
        nocta.load(folder)


def test_a_newer_format_is_refused(folder: Path) -> None:
    resign(folder, format=FORMAT + 1, versions={"nocta": "9.0"})
    with pytest.raises(ModelError, match=r"format 2 by nocta 9\.0.*newer nocta"):
        nocta.load(folder)


def test_configuration_that_does_not_fit_is_refused(folder: Path) -> None:
    config = json.loads((folder / MANIFEST).read_text("utf-8"))["config"]
    config["amortized"]["individuals"][0]["hidden"] += 1
    resign(folder, config=config)
    with pytest.raises(ModelError, match="do not fit together"):
        nocta.load(folder)


def test_an_unknown_class_is_refused(folder: Path) -> None:
    config = json.loads((folder / MANIFEST).read_text("utf-8"))["config"]
    config["predictor"]["members"][0]["kind"] = "os.system"
    resign(folder, config=config)
    with pytest.raises(ModelError, match=r"has kind 'os\.system'; known: recurrent"):
        nocta.load(folder)


def test_another_kind_is_refused(folder: Path, tiny_predictor: CrossFittedPredictor) -> None:
    with pytest.raises(ModelError, match="holds a model; expected a predictor"):
        load_predictor(folder)
    save_predictor(tiny_predictor, folder.parent / "p")
    with pytest.raises(ModelError, match="holds a predictor; expected a model"):
        nocta.load(folder.parent / "p")


@pytest.mark.parametrize("found", ["nothing", "file", "folder"])
def test_what_is_no_model_is_named(found: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    if found == "file":
        path.write_text("hello")
    if found == "folder":
        path.mkdir()
    said = {"nothing": "does not exist", "file": "is a file", "folder": "has no manifest"}
    with pytest.raises(ModelError, match=said[found]):
        nocta.load(path)


def test_an_older_model_is_replaced_and_other_files_stay(
    tiny_models: dict[str, NOCTA], folder: Path
) -> None:
    (folder / "results.csv").write_text("mine")
    (folder / "card.md").write_text("of the older model")
    tiny_models["contrastive"].save(folder)
    assert nocta.load(folder).estimator == "contrastive"
    assert (folder / "results.csv").read_text() == "mine"
    assert not (folder / "card.md").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["model"]


def test_a_folder_of_other_things_is_never_replaced(
    tiny_models: dict[str, NOCTA], tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelError, match="is not a saved model, so it is not replaced"):
        tiny_models["amortized"].save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_write_that_fails_leaves_the_older_model(
    tiny_models: dict[str, NOCTA], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / MANIFEST).read_bytes()

    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        tiny_models["contrastive"].save(folder)
    assert (folder / MANIFEST).read_bytes() == before
    assert [p.name for p in folder.parent.iterdir()] == ["model"]


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        NOCTA().save(tmp_path / "m")


def test_predictors_come_back_the_same(
    tiny_predictor: CrossFittedPredictor, tiny_parts: Parts, tmp_path: Path
) -> None:
    train, val, test = tiny_parts
    single = tiny_predictor.members[0]
    paper = MLPPredictor(hidden=6, training=TrainingConfig(epochs=4), seed=1).fit(train, val)
    history = History.of(test, np.ones_like(test.recorded))
    for i, predictor in enumerate((tiny_predictor, single, paper)):
        save_predictor(predictor, tmp_path / f"p{i}")
        again = load_predictor(tmp_path / f"p{i}")
        assert type(again) is type(predictor)
        np.testing.assert_array_equal(
            predictor.predict_proba(history), again.predict_proba(history)
        )
    reread = load_predictor(tmp_path / "p0")
    assert isinstance(reread, CrossFittedPredictor)
    np.testing.assert_array_equal(reread.fold, tiny_predictor.fold)


def test_a_predictor_without_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="RunningMeanPredictor cannot be saved"):
        save_predictor(RunningMeanPredictor(2), tmp_path / "p")
