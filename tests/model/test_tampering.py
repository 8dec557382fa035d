"""Models from strangers: whatever was changed, and hashed again, is refused with a sentence."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import nocta
from nocta.core.errors import ModelError
from nocta.methods.saving import load_saved
from nocta.model import archive, manifest
from nocta.model.archive import ARRAYS, MANIFEST
from nocta.model.nocta import NOCTA


@pytest.fixture(scope="module")
def original(tiny_models: dict[str, NOCTA], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stranger") / "model"
    tiny_models["amortized"].save(path)
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    for file in original.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    return path


def rewrite(folder: Path, *, drop: str = "", arrays: bytes | None = None, **changes: Any) -> None:
    """Change a folder and hash it again, as somebody who knows the format would."""
    body = json.loads((folder / MANIFEST).read_text("utf-8"))
    body.pop("checksum")
    body |= changes
    body.pop(drop, None)
    if arrays is not None:
        (folder / ARRAYS).write_bytes(arrays)
        body["sha256"] = {ARRAYS: archive._hash(arrays)}
    body["checksum"] = archive._hash(archive._canonical(body))
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")


CHANGES: dict[str, dict[str, Any]] = {
    "estimator of code": {"estimator": "os.system"},
    "estimator of a number": {"estimator": 1},
    "no estimator": {"estimator": ""},
    "unknown preset": {"preset": "best"},
    "options in a list": {"options": [1]},
    "seed as text": {"seed": "x"},
    "negative seed": {"seed": -1},
    "seed as truth": {"seed": True},
    "no classes": {"classes": []},
    "classes as numbers": {"classes": [1, 2]},
    "negative format": {"format": -1},
    "format as truth": {"format": True},
    "format as text": {"format": "1"},
    "unknown kind": {"kind": "nocta-virus"},
    "unknown key": {"run": "rm -rf /"},
    "record in a list": {"record": []},
    "cost weights as text": {"record": {"cost_weights": ["much"]}},
    "negative cost weight": {"record": {"cost_weights": [-1.0]}},
    "infinite cost": {"record": {"cost_of_everything": float("inf")}},
    "catalog in a list": {"catalog": []},
    "empty catalog": {"catalog": {}},
    "empty schema": {"schema": {}},
    "unknown key of the schema": {"schema": {"subject": "s", "visit": "v", "shell": "rm"}},
    "config in a list": {"config": []},
    "empty config": {"config": {}},
    "versions in a list": {"versions": []},
    "created as a number": {"created": 0},
    "hash of another length": {"sha256": {ARRAYS: "ab"}},
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("load", [nocta.load, load_saved])
def test_a_changed_manifest_is_refused(name: str, load: Any, folder: Path) -> None:
    rewrite(folder, **CHANGES[name])
    with pytest.raises(ModelError):
        load(folder)


@pytest.mark.parametrize(
    "key", ["estimator", "seed", "classes", "catalog", "schema", "record", "config", "sha256"]
)
def test_a_manifest_without_an_entry_is_refused(key: str, folder: Path) -> None:
    rewrite(folder, drop=key)
    with pytest.raises(ModelError, match=f"'{key}' is missing"):
        nocta.load(folder)


def test_notes_of_later_versions_are_kept(folder: Path) -> None:
    rewrite(folder, record={"operating_point": {"sensitivity": 0.9}})
    assert nocta.load(folder).record_ == {"operating_point": {"sensitivity": 0.9}}


def with_array(change: Any) -> Any:
    def changed(folder: Path) -> None:
        arrays = load_file(folder / ARRAYS)
        name = next(k for k, v in arrays.items() if v.dtype == np.float32 and v.ndim == 2)
        change(arrays, name)
        rewrite(folder, arrays=save(arrays))

    return changed


def with_number(value: float) -> Any:
    def fill(arrays: dict[str, Any], name: str) -> None:
        arrays[name] = np.full_like(arrays[name], value)

    return with_array(fill)


def grow(folder: Path) -> None:
    config = json.loads((folder / MANIFEST).read_text("utf-8"))["config"]
    config["amortized"]["hidden"] = 10**9
    rewrite(folder, config=config)


ARRAY_CHANGES = {
    "NaN": (with_number(np.nan), "not finite numbers"),
    "infinity": (with_number(np.inf), "not finite numbers"),
    "another shape": (with_array(lambda a, k: a.update({k: a[k][:1].copy()})), "not fit|damaged"),
    "another type": (
        with_array(lambda a, k: a.update({k: a[k].astype(np.float64)})),
        "do not fit together",
    ),
    "one less": (with_array(lambda a, k: a.pop(k)), "not fit|damaged"),
    "one more": (with_array(lambda a, k: a.update({"more": a[k]})), "do not fit together"),
    "a huge network": (grow, "arrays are too small for that"),
    "a broken header": (lambda f: rewrite(f, arrays=b"\xff" * 64), "header cannot be read"),
    "a deep header": (
        lambda f: rewrite(f, arrays=struct.pack("<Q", 8000) + b"[" * 8000),
        "header cannot be read",
    ),
    "no header": (lambda f: rewrite(f, arrays=b""), "header cannot be read"),
    "deep manifest": (lambda f: (f / MANIFEST).write_text("[" * 99999), "not a manifest|no mani"),
}


@pytest.mark.parametrize("name", ARRAY_CHANGES)
def test_changed_arrays_are_refused(name: str, folder: Path) -> None:
    change, said = ARRAY_CHANGES[name]
    change(folder)
    with pytest.raises(ModelError, match=said):
        nocta.load(folder)


def test_arrays_cannot_be_swapped_between_models(
    tiny_models: dict[str, NOCTA], folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    tiny_models["contrastive"].save(other)
    (folder / ARRAYS).write_bytes((other / ARRAYS).read_bytes())
    with pytest.raises(ModelError, match="do not match the manifest"):
        nocta.load(folder)


def test_files_that_are_too_large_are_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_ARRAYS", 100)
    with pytest.raises(ModelError, match="at most 100 are read"):
        nocta.load(folder)
