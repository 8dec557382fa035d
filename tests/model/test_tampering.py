"""Models from strangers: whatever was changed, and hashed again, is refused with a sentence."""

from __future__ import annotations

import json
import struct
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save

import nocta
from nocta.core.errors import ModelError, NoctaError
from nocta.methods.saving import load_saved
from nocta.model import archive, manifest
from nocta.model.archive import ARRAYS, MANIFEST
from nocta.model.nocta import NOCTA
from nocta.model.presets.auto import AutoPlanner, Lead
from nocta.model.presets.base import Planner
from nocta.model.presets.direct import DirectPlanner
from nocta.model.presets.options import DirectOptions
from nocta.planning.direct.network import GateNet, GateShape, log_prices
from nocta.planning.direct.policy import DirectPlans
from nocta.planning.direct.promise import PromiseNet
from nocta.predictors.cross_fitted import CrossFittedPredictor
from small_models import Parts


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
    "default without a setting": {"record": {"default": {"reason": "why"}}},
    "default weight as text": {
        "record": {"default": {"setting": {"cost_weight": "x"}, "reason": ""}}
    },
    "threshold as text": {"record": {"threshold": "0.5"}},
    "training of nobody": {"record": {"training": {"n_subjects": 0, "columns": []}}},
    "ranges in a list": {"ranges": []},
    "a range of one number": {"ranges": {"x": [1.0]}},
    "an infinite range": {"ranges": {"x": [0.0, float("inf")]}},
    "constraints of code": {"catalog": {"constraints": {"run": "rm"}}},
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


# -- planners that are not trained here, because only their states matter ---------------


def direct_planner(parts: Parts, predictor: CrossFittedPredictor) -> DirectPlanner:
    encoder = predictor.networks[0].encoder_
    prices = torch.from_numpy(parts[0].catalog.costs)
    context = 2 * encoder.context_.width
    everything = 5e7  # an amount of money is no size
    shape = GateShape(
        encoder.width, encoder.slot_width, context, encoder.n_features_, 8, everything=everything
    )
    net = GateNet(shape, log_prices(prices, 1.0)).eval()
    plans = DirectPlans(net, encoder, PromiseNet(8, len(prices)).eval())
    return DirectPlanner(DirectOptions(), predictor, plans, 1.0)


@pytest.fixture(params=["direct", "auto"])
def newer(
    request: pytest.FixtureRequest,
    tiny_models: dict[str, NOCTA],
    tiny_parts: Parts,
    tiny_predictor: CrossFittedPredictor,
    tmp_path: Path,
) -> Path:
    model = copy(tiny_models["amortized"])
    model.estimator, model.options = request.param, None
    planner: Planner = direct_planner(tiny_parts, tiny_predictor)
    if request.param == "auto":
        planner = AutoPlanner("direct", planner, (Lead("direct", 0.0, 0.0),))
    model.planner_ = planner
    default = {"setting": {"cost_weight": 0.01}, "reason": "it is"}
    model.record_ = {"default": default, "cost_weights": [0.01]}
    model.val_ = None
    model.save(tmp_path / "newer")
    again = nocta.load(tmp_path / "newer")
    test = tiny_parts[2]
    assert again.rollout(test).costs.tolist() == model.rollout(test).costs.tolist()
    return tmp_path / "newer"


def in_config(part: str, **changes: Any) -> Any:
    """Change the configuration of the direct planner, or of the auto planner around it."""

    def change(folder: Path) -> None:
        config = json.loads((folder / MANIFEST).read_text("utf-8"))["config"]
        place = config.get("planner", config)
        (place[part] if part else place).update(changes)
        rewrite(folder, config=config)

    return change


def net_array(value: float) -> Any:
    def change(folder: Path) -> None:
        arrays = load_file(folder / ARRAYS)
        name = next(k for k in arrays if k.endswith("net.worth.weight"))
        arrays[name] = np.full_like(arrays[name], value)
        rewrite(folder, arrays=save(arrays))

    return change


NEWER_CHANGES = {
    "a huge network": (in_config("shape", hidden=10**9), "arrays are too small"),
    "many features": (in_config("shape", n_features=10**9), "arrays are too small"),
    "another width": (in_config("shape", hidden=9), "do not fit together"),
    "unknown size": (in_config("shape", shell=1), "do not fit together"),
    "no number": (in_config("", loss_level=float("nan")), "loss_level is nan"),
    "infinite share": (in_config("", individual_share=float("inf")), "share is inf"),
    "unknown option": (in_config("options", run="rm"), "run"),
    "NaN": (net_array(np.nan), "not finite numbers"),
    "infinity": (net_array(np.inf), "not finite numbers"),
}


@pytest.mark.parametrize("name", NEWER_CHANGES)
def test_changed_planners_are_refused(name: str, newer: Path) -> None:
    change, said = NEWER_CHANGES[name]
    change(newer)
    with pytest.raises(NoctaError, match=said):
        nocta.load(newer)


@pytest.mark.parametrize("newer", ["auto"], indirect=True)
@pytest.mark.parametrize("chosen", ["os.system", "amortized", ["direct"], None])
def test_a_choice_of_something_else_is_refused(chosen: Any, newer: Path) -> None:
    config = json.loads((newer / MANIFEST).read_text("utf-8"))["config"]
    rewrite(newer, config={**config, "chosen": chosen})
    with pytest.raises(NoctaError):
        nocta.load(newer)
